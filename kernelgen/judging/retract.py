"""Takes back what the log says, by a further event, and withdraws what came from it.

For now a verdict: its event's id, or the id of a candidate that has one standing verdict. A constraint all of whose
evidence is retracted is withdrawn with a line that says why; one that other verdicts show too stays. The event comes
first, the rest follows from it and is finished by `learn.catch_up` where a kill came between.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kernelgen.config import Policy
from kernelgen.constraints.store import ConstraintBook, ConstraintFile, reconcile
from kernelgen.errors import BadInput
from kernelgen.eventlog.chain import Row
from kernelgen.eventlog.store import EventLog
from kernelgen.events import VerdictReached, VerdictRetracted
from kernelgen.generation.region import ConstraintRows, retracted_verdicts
from kernelgen.judging.learn import WITHDRAWN, is_of, learn
from kernelgen.judging.lessons import Regions, standing, taught
from kernelgen.records import Constraint, Retraction


@dataclass(frozen=True)
class Retracted:
    """What a retraction did."""

    row: Row
    """Its event."""
    withdrawn: tuple[str, ...]
    """Ids of the constraints withdrawn with it."""


def retract(told: str, why: str, *, log: EventLog, constraints: Path, policy: Policy, regions: Regions) -> Retracted:
    """Retract what an id names. Raises BadInput for what cannot be, LogError for an id the log does not know."""
    verdict = _verdict(log, told)
    assert isinstance(verdict.event, VerdictReached)
    reconcile(ConstraintFile(constraints), ConstraintRows(log))  # a broken file is told before anything is logged
    row = log.append(
        VerdictRetracted(
            verdict=verdict.id,
            iteration_id=verdict.event.iteration_id,
            target=verdict.event.target,
            hardware=verdict.event.hardware,
            why=why,
        )
    )
    withdrawn = withdraw(row, log=log, constraints=constraints, policy=policy, regions=regions)
    return Retracted(row, tuple(withdrawn))


def withdraw(row: Row, *, log: EventLog, constraints: Path, policy: Policy, regions: Regions) -> list[str]:
    """Withdraw what came from a retracted verdict; the ids of the constraints withdrawn, none where it was done."""
    event = row.event
    assert isinstance(event, VerdictRetracted)
    file, rows = ConstraintFile(constraints), ConstraintRows(log)
    gone = retracted_verdicts(log)
    why = f"verdict {event.verdict} was retracted: {event.why}"
    lines: list[Retraction] = []
    again: dict[str, Row] = {}
    book = reconcile(file, rows)
    for constraint in _derived(book, gone):
        left = _supporters(constraint, log, gone, regions)
        was_widened = len(constraint.evidence.events) > 1 and constraint.severity == "hard"
        if left and not was_widened:
            continue
        again |= {one.id: one for one in left}
        if book.retraction(constraint.id) is None:
            lines.append(Retraction(id=f"{WITHDRAWN}{constraint.id}", retracts=constraint.id, why=why, time=row.time))
    file.append(lines)
    reconcile(file, rows)
    for one in sorted(again.values(), key=lambda one: one.seq):
        learn(one, log=log, constraints=constraints, policy=policy, regions=regions)  # its part, anew
    return [line.retracts for line in lines]


def _verdict(log: EventLog, told: str) -> Row:
    """The verdict that an id means."""
    identity = log.find(told)
    rows = log.iteration(identity) or [log.row(identity)]
    verdicts = [row for row in rows if isinstance(row.event, VerdictReached)]
    if not verdicts:
        kind = rows[0].event.kind.replace("_", " ")
        has = f"{identity} has no verdict" if log.iteration(identity) else f"{identity} is a {kind}, no verdict"
        raise BadInput(f"{has}; `kernelgen log list kind=verdict_reached` shows the verdicts.")
    gone = retracted_verdicts(log)
    left = [row for row in verdicts if row.id not in gone]
    if not left:
        raise BadInput(f"{identity}: its verdict is retracted already; nothing was changed.")
    if len(left) > 1:
        raise BadInput(f"{identity} has {len(left)} verdicts; name one of them: {', '.join(row.id for row in left)}.")
    return left[0]


def _derived(book: ConstraintBook, gone: frozenset[str]) -> list[Constraint]:
    """The constraints with a retracted verdict among their evidence: those that stand, and those withdrawn for one.

    The latter so that what a kill left undone is finished.
    """
    named = [constraint for constraint in book.all if not gone.isdisjoint(constraint.evidence.events)]
    retractions = [(constraint, book.retraction(constraint.id)) for constraint in named]
    return [constraint for constraint, r in retractions if r is None or r.id == f"{WITHDRAWN}{constraint.id}"]


def _supporters(constraint: Constraint, log: EventLog, gone: frozenset[str], regions: Regions) -> list[Row]:
    """Standing verdicts that show a constraint: its other evidence, and those whose failure teaches the same."""
    named = set(constraint.evidence.events) - gone
    return [row for row in standing(log) if row.id in named or _teaches(row, constraint, log, regions)]


def _teaches(row: Row, constraint: Constraint, log: EventLog, regions: Regions) -> bool:
    event, scope = row.event, constraint.scope
    assert isinstance(event, VerdictReached)
    if scope.hardware != event.hardware or scope.target not in (None, event.target):
        return False
    return any(is_of(constraint.id, lesson) for lesson in taught(row, log, regions))
