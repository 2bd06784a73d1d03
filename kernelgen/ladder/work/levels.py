"""The levels that a worker climbs with one job, and L3 and L4 as every caller makes them.

A level that fails or is suspect ends the climb, and so does an L3 that this machine cannot tell: L4 rests on it. None
below ends it by being inconclusive.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kernelgen.errors import HarnessError
from kernelgen.ladder import benchmark, correctness
from kernelgen.ladder import compile as compiling
from kernelgen.ladder.benchmark.surroundings import role_digest
from kernelgen.ladder.benchmark.terms import Terms3
from kernelgen.ladder.decide import decide
from kernelgen.ladder.results import Result
from kernelgen.ladder.work.jobs import LEVELS, Clock, Job, Settings, WorkLevel

if TYPE_CHECKING:
    from kernelgen.ladder.server import Server

ServerFor = Callable[[str], "Server"]
NO_GPU = "there is no CUDA GPU here that torch can use: a CPU's times say nothing about a kernel"
MODEL = re.compile(r"[a-z]+\d+[a-z]*")
"""What tells one card from another in a vendor's name: `h200` in NVIDIA H200 SXM, not `80gb`."""


@dataclass(frozen=True)
class Bench:
    """Where and by what a job is measured."""

    settings: Settings
    """What the policy says."""
    server_for: ServerFor
    """Gives the server of a kind."""
    device: str
    """`cuda` or `cpu`."""


def climb(job: Job, bench: Bench, starting: Callable[[WorkLevel], None]) -> Iterator[Result]:
    """The results of the levels up to the asked one, each as soon as it is known; `starting` is told before it."""
    steps = {"L1": _l1, "L2": _l2, "L3": l3, "L4": l4}
    for level in LEVELS[: LEVELS.index(bench.settings.level) + 1]:
        starting(level)
        began = time.monotonic()
        result = replace(steps[level](job, bench), seconds=round(time.monotonic() - began, 3))
        yield result
        if ends(result, bench.settings.clock):
            return


def ends(result: Result, clock: Clock) -> bool:
    """Whether nothing is judged above this result; a CPU's clock never decides, and goes on to try the protocol."""
    if result.outcome in ("failed", "suspect"):
        return True
    return result.level == "L3" and result.outcome == "inconclusive" and clock == "gpu"


def _l1(job: Job, bench: Bench) -> Result:
    return compiling.compile_candidate(job.subject, server_for=bench.server_for, timeout_s=bench.settings.timeout_s)


def _l2(job: Job, bench: Bench) -> Result:
    return correctness.check_correctness(
        job.subject,
        server_for=bench.server_for,
        device=bench.device,
        seed=job.seeds["L2"],
        timeout_s=bench.settings.timeout_s,
    )


def l3(job: Job, bench: Bench) -> Result:
    """The candidate against the champion at the tune shapes, or why that cannot be measured here."""
    missing = _missing(job, bench)
    if missing is not None or job.champion is None:
        return Result("L3", "inconclusive", missing or "there is no champion to measure it against")
    result = benchmark.measure(
        job.subject,
        job.champion.subject,
        server_for=bench.server_for,
        device=bench.device,
        policy=terms(bench.settings),
        seed=job.seeds["L3"],
        ceilings=job.ceilings,
    )
    return _against(result, job)


def l4(job: Job, bench: Bench) -> Result:
    """The candidate against the champion at the held-out shapes, in fresh processes, and what that decides."""
    missing = _missing(job, bench)
    if missing is not None or job.champion is None:
        return Result("L4", "inconclusive", missing or "there is no champion to measure it against")
    measured = benchmark.confirm(
        job.subject,
        job.champion.subject,
        server_for=bench.server_for,
        device=bench.device,
        policy=terms(bench.settings),
        seed=job.seeds["L4"],
        ceilings=job.ceilings,
    )
    settings = bench.settings
    decided = decide(measured, minimum_effect=settings.minimum_effect, largest_loss=settings.largest_loss)
    return _against(decided, job)


def terms(settings: Settings) -> Terms3:
    """The terms of a measurement."""
    return Terms3(pairs=settings.pairs, minimum_effect=settings.minimum_effect)


def same_card(job: Job, name: str, compute_capability: int) -> bool:
    """Whether a GPU of this name is the one that the job is for: cards of one architecture differ in their rates."""
    words = set(name.lower().replace("-", " ").split())
    wanted = {job.hardware.lower(), *MODEL.findall(job.gpu.lower())}
    return compute_capability == job.subject.goal.compute_capability and bool(words & wanted)


def _missing(job: Job, bench: Bench) -> str | None:
    """Why nothing can be measured here; None where it can."""
    if bench.device == "cpu":
        return None if bench.settings.clock == "cpu" else NO_GPU
    import torch

    name, (major, minor) = torch.cuda.get_device_name(), torch.cuda.get_device_capability()
    if not same_card(job, name, 10 * major + minor):
        return f"the GPU here is {name}, and the candidate is for {job.gpu}: its times say nothing about that one"
    return None


def _against(result: Result, job: Job) -> Result:
    """The result with what it was measured against. Raises HarnessError where the sides are not the job's."""
    if job.champion is None or not result.details:
        return result
    sides = {"candidate": role_digest(job.subject), "champion": role_digest(job.champion.subject)}
    if result.details["roles"] != sides:
        raise HarnessError(f"{result.level} measured other sides than those of job {job.number}")
    champion = {"id": job.champion.id, "digest": job.champion.digest}
    return replace(result, details={**result.details, "champion": champion})
