"""The levels of the ladder in order, for one candidate, as far as asked and as far as this machine can tell.

A level that fails or is suspect ends the climb; one that this machine cannot tell is never reported as passed, and ends
it where the next one rests on it. L3 and L4 measure against the region's champion, on the GPU that it is judged for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from kernelgen.config import Policy
from kernelgen.errors import BadInput
from kernelgen.judging.jobs import SEED_DIGITS, Rivals, job_of, new_seed, settings_of
from kernelgen.judging.rules_check import rule_findings
from kernelgen.judging.subjects import Judged
from kernelgen.ladder import compile as compiling
from kernelgen.ladder import correctness, policy
from kernelgen.ladder.results import Fault, Result
from kernelgen.ladder.servers import Servers
from kernelgen.ladder.work import levels as measuring
from kernelgen.ladder.work.jobs import Clock, Job, WorkLevel
from kernelgen.playbook import library
from kernelgen.records import Constraint, Level

__all__ = ["JUDGED_LEVELS", "SEED_DIGITS", "Servers", "Terms", "climb", "level_named"]

JUDGED_LEVELS: tuple[Level, ...] = ("L0", "L1", "L2", "L3", "L4")
MEASURED_LEVELS = ("L3", "L4")
PORTING_STATES = (3, 4)
"""States whose job is to adapt a known kernel: likeness is a note there."""


@dataclass(frozen=True)
class Terms:
    """What a verdict rests on beside the candidate."""

    policy: Policy
    """Rules of the loop."""
    constraints: tuple[Constraint, ...]
    """Those that hold for the region."""
    servers: Servers
    """Where candidates run."""
    seed: int | None = None
    """Seed of the inputs; None draws one for each candidate, which its verdict tells."""
    device: str | None = None
    """`cpu` or `cuda`; None takes the GPU where there is one."""
    known: Mapping[str, str] = field(default_factory=dict)
    """Further sources by name that a candidate may not be a copy of."""
    rivals: Rivals | None = None
    """Finds what L3 and L4 measure against; None where nothing is measured."""
    clock: Clock = "gpu"
    """`cpu`: L3 and L4 are tried through Triton's interpreter, and decide nothing."""


def climb(judged: Judged, upto: Level, terms: Terms) -> list[Result]:
    """The results of the levels up to `upto`, ending at the first that refuses the candidate."""
    steps: dict[Level, Callable[[Judged, Terms], Result]] = {"L0": _l0, "L1": _l1, "L2": _l2, "L3": _l3, "L4": _l4}
    terms = replace(terms, seed=new_seed() if terms.seed is None else terms.seed)
    results: list[Result] = []
    for level in JUDGED_LEVELS[: JUDGED_LEVELS.index(upto) + 1]:
        started = time.monotonic()
        step = steps[level]
        found = step(judged, terms) if level in MEASURED_LEVELS else judged.step(level, terms, step)
        result = replace(found, seconds=round(time.monotonic() - started, 3))
        results.append(result)
        if measuring.ends(result, terms.clock):
            break
    return results


def _l0(judged: Judged, terms: Terms) -> Result:
    """Header, policy and hard rules; the most telling fault decides."""
    result = policy.examine(
        judged.subject,
        allow=terms.policy.allow,
        deny=terms.policy.deny,
        known=_known(judged, terms),
        similarity=terms.policy.similarity,
        same_kernel_allowed=judged.state in (None, 0),
        port_of=_port(judged),
    )
    header = tuple(Fault(f.check, f.reason, f.detail, f.line, dict(f.facts)) for f in judged.header)
    broken, pruned = rule_findings(judged.subject, judged.hardware, terms.constraints)
    faults = (*header, *result.faults, *broken)
    notes = (*judged.notes, *result.notes, *pruned)
    if header or (broken and result.outcome == "passed"):
        return replace(result, outcome="failed", reason=faults[0].reason, faults=faults, notes=notes)
    return replace(result, faults=faults, notes=notes)


def _known(judged: Judged, terms: Terms) -> dict[str, str]:
    """The sources that a candidate may not be a copy of."""
    known = dict(terms.known)
    if judged.champion is not None:
        known[f"champion {judged.champion[0]}"] = judged.champion[1]
    if not judged.is_play:
        known |= {f"play {play.name}": play.source for play in library.plays(judged.target.name)}
    return known


def _port(judged: Judged) -> str | None:
    """Where likeness is the job: said in the verdict instead of refused."""
    return f"state {judged.state}" if judged.state in PORTING_STATES else None


def _l1(judged: Judged, terms: Terms) -> Result:
    return compiling.compile_candidate(
        judged.subject, server_for=terms.servers.get, timeout_s=terms.policy.level_timeout_s
    )


def _l2(judged: Judged, terms: Terms) -> Result:
    return correctness.check_correctness(
        judged.subject,
        server_for=terms.servers.get,
        device=terms.device,
        seed=terms.seed,
        timeout_s=terms.policy.level_timeout_s,
    )


def _l3(judged: Judged, terms: Terms) -> Result:
    return measuring.l3(*_asked(judged, terms, "L3"))


def _l4(judged: Judged, terms: Terms) -> Result:
    return measuring.l4(*_asked(judged, terms, "L4"))


def _asked(judged: Judged, terms: Terms, level: WorkLevel) -> tuple[Job, measuring.Bench]:
    """What a measurement needs: the job, and where it is done."""
    import torch

    assert terms.seed is not None
    job = job_of(judged, None if terms.rivals is None else terms.rivals.of(judged), terms.seed)
    device = terms.device or ("cuda" if torch.cuda.is_available() and terms.clock == "gpu" else "cpu")
    return job, measuring.Bench(settings_of(terms.policy, level, terms.clock), terms.servers.get, device)


def level_named(text: str) -> Level:
    """A level that `judge` climbs to. Raises BadInput for another."""
    for level in JUDGED_LEVELS:
        if text == level:
            return level
    raise BadInput(f"level={text} is not one of {', '.join(JUDGED_LEVELS)}.")
