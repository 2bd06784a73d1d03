"""L3 and the measuring of L4: is a candidate faster than the champion, each in a contained process of its own?

`measure` times both at the tune shapes, pair by pair in random order; `confirm` does the same at held-out shapes in
fresh processes. The judge's clock decides: it starts before a block of calls is asked for and stops when the judge has
its own copy of an answer, which is then compared with the reference. What a process says of itself can only speak
against it. On a CPU the same protocol runs through Triton's interpreter, to refuse cheats; its times mean nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelgen.ladder.benchmark.terms import Ceilings, Recipe, Terms3

if TYPE_CHECKING:
    from collections.abc import Callable

    from kernelgen.ladder.results import Result
    from kernelgen.ladder.server import Server
    from kernelgen.ladder.subject import Subject

__all__ = ["Ceilings", "Recipe", "Terms3", "confirm", "measure"]


def measure(
    subject: Subject,
    champion: Subject,
    *,
    server_for: Callable[[str], Server],
    device: str | None = None,
    policy: Terms3,
    seed: int | None = None,
    ceilings: Ceilings | None = None,
) -> Result:
    """Judge one candidate at L3: passed where it is faster than the champion over the tune shapes.

    Args:
        subject: the candidate.
        champion: what it must beat, for the same target.
        server_for: gives the server of a kind.
        device: `cpu` or `cuda`; None takes the GPU where there is one.
        policy: pairs, least effect, confidence, time, and the recipe.
        seed: of inputs and order; None draws one, and the result's details tell it.
        ceilings: of the GPU; without them there is no fraction of the floor, and no time is impossible.

    Raises:
        BadInput: the target cannot be loaded or computed, or the policy makes no sense.
        HarnessError: the measuring itself failed.
    """
    # only here: the called process imports this package too, and must not come to load targets
    from kernelgen.ladder.benchmark.level import benchmark

    shapes = subject.goal.tune
    result: Result = benchmark(
        subject,
        champion,
        shapes,
        "L3",
        server_for=server_for,
        device=device,
        terms=policy,
        seed=seed,
        ceilings=ceilings,
    )
    return result


def confirm(
    subject: Subject,
    champion: Subject,
    *,
    server_for: Callable[[str], Server],
    device: str | None = None,
    policy: Terms3,
    seed: int | None = None,
    ceilings: Ceilings | None = None,
) -> Result:
    """Measure a candidate at the held-out shapes, for L4: passed where the figures can be trusted, whoever wins.

    Arguments and errors are those of `measure`; give it a seed that no earlier measuring had.
    """
    from kernelgen.ladder.benchmark.level import benchmark

    shapes = subject.goal.heldout
    result: Result = benchmark(
        subject,
        champion,
        shapes,
        "L4",
        server_for=server_for,
        device=device,
        terms=policy,
        seed=seed,
        ceilings=ceilings,
    )
    return result
