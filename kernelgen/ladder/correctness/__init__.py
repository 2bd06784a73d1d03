"""L2: does a candidate compute its target, called in a contained process that has never seen reference or tolerance?

`check_correctness` is the level. The judge's side (`parent`) makes inputs and compares; the called side (`caller`) maps
them, calls, and hands outputs over. Verdicts rest on tensors; what the called side says of itself can only speak
against a candidate. Through Triton's interpreter it is a logic check: no races, no limits, no fp8 codes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from kernelgen.ladder.correctness.plan import Plan
    from kernelgen.ladder.results import Result
    from kernelgen.ladder.server import Server
    from kernelgen.ladder.subject import Subject


def check_correctness(
    subject: Subject,
    *,
    server: Server | None = None,
    server_for: Callable[[str], Server] | None = None,
    device: str | None = None,
    seed: int | None = None,
    timeout_s: float,
    plan: Plan | None = None,
) -> Result:
    """Judge one candidate at L2.

    Args:
        subject: what is judged.
        server: of the kind that `level.server_kind` names.
        server_for: in its place, gives the server of a kind.
        device: `cpu` or `cuda`; None takes the GPU where there is one.
        seed: of all inputs; None draws one, and the result's details tell it.
        timeout_s: seconds that the candidate's calls may take together; the reference's time does not count.
        plan: the calls to make; None takes `plan.plan_for`.

    Raises:
        BadInput: the target cannot be loaded or computed.
        HarnessError: the check could not be made.
    """
    # only here: the called process imports this package too, and must not come to load targets
    from kernelgen.ladder.correctness.level import check

    return check(
        subject, server=server, server_for=server_for, device=device, seed=seed, timeout_s=timeout_s, plan=plan
    )
