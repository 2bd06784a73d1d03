"""The levels of the ladder in order, for one candidate, as far as asked and as far as this machine can tell.

A level that fails or is suspect ends the climb; one that this machine cannot tell does not, and is never reported as
passed. Processes that have a compiler or interpreter loaded are started when first needed and serve many candidates.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Self

from kernelgen.config import Policy
from kernelgen.errors import BadInput
from kernelgen.judging.rules_check import rule_findings
from kernelgen.judging.subjects import Judged
from kernelgen.ladder import compile as compiling
from kernelgen.ladder import correctness, policy
from kernelgen.ladder.results import Fault, Result
from kernelgen.ladder.server import Server
from kernelgen.playbook import library
from kernelgen.records import Constraint, Level

JUDGED_LEVELS: tuple[Level, ...] = ("L0", "L1", "L2")
PORTING_STATES = (3, 4)
"""States whose job is to adapt a known kernel: likeness is a note there."""
SEED_DIGITS = 15
"""Longest seed, in decimal digits: it fits every random generator's 64 bits."""


class Servers:
    """Processes with a DSL loaded, started when first asked for; a context manager."""

    def __init__(self, *, contained: bool) -> None:
        self.contained = contained
        self._started: dict[str, Server] = {}

    def get(self, kind: str) -> Server:
        """The server of a kind."""
        if kind not in self._started:
            self._started[kind] = Server(kind, contained=self.contained)
        return self._started[kind]

    def close(self) -> None:
        """End all of them."""
        while self._started:
            self._started.popitem()[1].close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


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
    """Seed of the inputs; None draws one, which the verdict tells."""
    device: str | None = None
    """`cpu` or `cuda`; None takes the GPU where there is one."""
    known: Mapping[str, str] = field(default_factory=dict)
    """Further sources by name that a candidate may not be a copy of."""


def climb(judged: Judged, upto: Level, terms: Terms) -> list[Result]:
    """The results of the levels up to `upto`, ending at the first that refuses the candidate."""
    steps: dict[Level, Callable[[Judged, Terms], Result]] = {"L0": _l0, "L1": _l1, "L2": _l2}
    results: list[Result] = []
    for level in JUDGED_LEVELS[: JUDGED_LEVELS.index(upto) + 1]:
        started = time.monotonic()
        result = replace(judged.step(level, terms, steps[level]), seconds=round(time.monotonic() - started, 3))
        results.append(result)
        if result.outcome in ("failed", "suspect"):
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
        seed=secrets.randbelow(10**SEED_DIGITS) if terms.seed is None else terms.seed,
        timeout_s=terms.policy.level_timeout_s,
    )


def level_named(text: str) -> Level:
    """A level that `judge` climbs to. Raises BadInput for another."""
    for level in JUDGED_LEVELS:
        if text == level:
            return level
    raise BadInput(f"level={text} is not one of {', '.join(JUDGED_LEVELS)}.")
