"""What a verdict adds to the constraints, after it was appended: at once, or as proposals that wait for a person.

Learning reads the log alone and comes to the same lines whenever it is done, so that a kill between verdict and
learning loses nothing: `catch_up` does at the next start what was not done. A lesson that stands is not learned again.
One that a person withdrew, or a later measurement contradicted, is not learned from a verdict of before, and of a later
one it is only proposed. A verdict whose L4 passed names its champion first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelgen.config import Policy
from kernelgen.constraints.distil import Lesson, widened
from kernelgen.constraints.lines import Record
from kernelgen.constraints.store import ConstraintBook, ConstraintFile, reconcile
from kernelgen.errors import ConstraintError
from kernelgen.eventlog.chain import Row
from kernelgen.eventlog.store import EventLog
from kernelgen.events import ConstraintProposed, ConstraintRetracted, VerdictReached
from kernelgen.generation.region import ConstraintRows, retracted_verdicts
from kernelgen.judging.contradiction import contradicting, is_contradiction, records_against
from kernelgen.judging.lessons import Regions, standing, taught
from kernelgen.judging.mark import Mark
from kernelgen.judging.promotion import name
from kernelgen.judging.proposals import waiting
from kernelgen.judging.trials import contradicted
from kernelgen.records import Constraint, Retraction

WITHDRAWN = "withdrawn_"
"""Begins the id of a retraction that follows from a retracted verdict."""
WIDENED = "widened_"
"""Begins the id of a retraction of a constraint that a wider one replaces."""


@dataclass(frozen=True)
class Learned:
    """One constraint that a verdict added or proposed."""

    constraint: Constraint
    """As it stands in the file, or waits."""
    waits: bool
    """Whether it is a proposal that waits for `kernelgen constraints adopt`."""

    def sentence(self) -> str:
        """For a person."""
        named = f"{self.constraint.severity} constraint {self.constraint.id}: {self.constraint.statement}"
        return f"proposed, adopt it with `kernelgen constraints adopt`: {named}" if self.waits else f"learned {named}"


def learn(row: Row, *, log: EventLog, constraints: Path, policy: Policy, regions: Regions) -> list[Learned]:
    """Learn from a verdict's event: what was added or proposed, nothing for what stands already.

    `constraints` is the constraint file. Raises ConstraintError where it is broken or cannot be written.
    """
    if not isinstance(row.event, VerdictReached) or row.id in retracted_verdicts(log):
        return []
    name(row, log, regions)
    lessons, against = taught(row, log, regions), contradicted(row, log, regions)
    if not lessons and not against:
        return []
    learner = _Learner(log, ConstraintFile(constraints), policy, regions)
    left = [narrower for fingerprint in against for narrower in learner.contradict(fingerprint, row)]
    return [*left, *(made for lesson in lessons if (made := learner.learn(lesson, row)) is not None)]


def catch_up(log: EventLog, *, constraints: Path, policy: Policy, regions: Regions) -> list[Learned]:
    """Learn from every verdict since the last time, so from those whose process was killed before it did."""
    from kernelgen.judging.retract import withdraw

    mark = Mark(log)
    learned: list[Learned] = []
    for row in log.rows(kinds=("verdict_retracted", "champion_retracted"), after=mark.seq):
        withdraw(row, log=log, constraints=constraints, policy=policy, regions=regions)
    for row in standing(log, after=mark.seq):
        learned += learn(row, log=log, constraints=constraints, policy=policy, regions=regions)
    mark.advance()
    return learned


@dataclass(frozen=True)
class _Past:
    """What was made of a lesson before."""

    standing: Constraint | None
    """The constraint that says it now."""
    proposed: bool
    """Whether a proposal of it waits."""
    made: int
    """How many constraints were made or proposed of it."""
    withdrawn_at: int | None
    """Event number at which a person withdrew the last of them."""

    def next_id(self, lesson: Lesson) -> str:
        """Id of the next constraint made of it."""
        return lesson.name if self.made == 0 else f"{lesson.name}.{self.made + 1}"


class _Learner:
    """Learns the lessons of one verdict."""

    def __init__(self, log: EventLog, file: ConstraintFile, policy: Policy, regions: Regions) -> None:
        self._log, self._file, self._policy, self._regions = log, file, policy, regions
        self._rows = ConstraintRows(log)
        self._book = reconcile(file, self._rows)

    def learn(self, lesson: Lesson, row: Row) -> Learned | None:
        """What is added or proposed, or None."""
        events = self._evidence(lesson, row)
        if len({self._iteration(event) for event in events}) < self._needed(lesson):
            return None
        past = self._past(lesson)
        if past.standing is not None:
            return self._widen(past.standing, lesson, row, past)
        if past.proposed or (past.withdrawn_at is not None and row.seq < past.withdrawn_at):
            return None
        constraint = lesson.constraint(past.next_id(lesson), row.time, [event.id for event in events], lesson.rule)
        if self._policy.adopt_proposals and past.withdrawn_at is None:
            return self._add([constraint])
        return self._propose(constraint, lesson)

    def _needed(self, lesson: Lesson) -> int:
        """Candidates that must have failed so."""
        return self._policy.recurs_after if lesson.recurs else 1

    def _iteration(self, row: Row) -> str:
        assert isinstance(row.event, VerdictReached)
        return row.event.iteration_id

    def _evidence(self, lesson: Lesson, row: Row) -> list[Row]:
        """The verdicts up to this one that show it: all of the region for what must recur, else this one."""
        if not lesson.recurs:
            return [row]
        found = []
        for other in standing(self._log):
            assert isinstance(other.event, VerdictReached)
            same_region = (other.event.target, other.event.hardware) == (lesson.scope.target, lesson.scope.hardware)
            failed = other.event.verdict.failed() if same_region and other.seq <= row.seq else None
            if failed is not None and failed.level not in ("L0", "L1"):
                found += [other] if self._teaches(other, lesson) else []
        return found

    def _teaches(self, row: Row, lesson: Lesson) -> bool:
        return any(lesson.fingerprint == other.fingerprint for other in taught(row, self._log, self._regions))

    def _past(self, lesson: Lesson) -> _Past:
        """What the database and the log say of a lesson."""
        ids = {c.id: c for c in self._book.all if is_of(c.id, lesson)}
        proposals = [p for p in waiting(self._log, self._book) if p.fingerprint == lesson.fingerprint]
        told = {p.constraint.id for p in _proposed(self._log) if p.fingerprint == lesson.fingerprint}
        gone = retracted_verdicts(self._log)
        by_hand = [c for c in ids if (r := self._book.retraction(c)) is not None and not is_automatic(r, gone)]
        at = [
            row.seq
            for row in self._log.rows(kinds=("constraint_retracted",))
            if isinstance(row.event, ConstraintRetracted) and row.event.retraction.retracts in by_hand
        ]
        active = next((c for c in ids.values() if self._book.retraction(c.id) is None), None)
        return _Past(active, bool(proposals), len({*ids, *told}), max(at, default=None))

    def _widen(self, known: Constraint, lesson: Lesson, row: Row, past: _Past) -> Learned | None:
        """The constraint that also refuses this failure, in place of a known one that does not; None where it does."""
        rule = widened(known.rule, lesson)
        if rule is None or past.proposed or row.id in known.evidence.events:
            return None
        wider = lesson.constraint(past.next_id(lesson), row.time, (*known.evidence.events, row.id), rule)
        evidence = wider.evidence.model_copy(update={"lines": (*known.evidence.lines, *lesson.lines)})
        wider = wider.model_copy(update={"evidence": evidence})
        if self._policy.adopt_proposals:
            return self._add([wider, replaced(known, wider)])
        return self._propose(wider, lesson)

    def contradict(self, fingerprint: str, row: Row) -> list[Learned]:
        """Take back what a measurement speaks against; the narrower constraints that are left of it."""
        left = []
        for records in list(records_against(fingerprint, row, self._book, self._log)):
            if isinstance(records[0], Constraint):
                added = self._add(records)
                left += [] if added is None else [added]
            else:
                self._file.append(records)
                self._book = reconcile(self._file, self._rows)
        return left

    def _propose(self, constraint: Constraint, lesson: Lesson) -> Learned:
        self._log.append(ConstraintProposed(constraint=constraint, fingerprint=lesson.fingerprint))
        return Learned(constraint, waits=True)

    def _add(self, records: Sequence[Record]) -> Learned | None:
        """Append to the file and the log; None where another process was first."""
        first = records[0]
        assert isinstance(first, Constraint)
        try:
            self._file.append(records)
        except ConstraintError:
            self._book = reconcile(self._file, self._rows)
            if any(c.id == first.id for c in self._book.all):
                return None
            raise
        self._book = reconcile(self._file, self._rows)
        return Learned(first, waits=False)


def is_of(constraint_id: str, lesson: Lesson) -> bool:
    """Whether a constraint was made of a lesson, by its id."""
    return constraint_id.partition(".")[0] == lesson.name


def is_automatic(retraction: Retraction, gone: frozenset[str]) -> bool:
    """Whether it says nothing against the lesson: it follows from a verdict that fell, or from a wider constraint.

    `gone` are the verdicts that fell. A contradiction counts as long as the measurement stands that made it.
    """
    if is_contradiction(retraction):
        return contradicting(retraction) in gone
    return retraction.id.startswith((WITHDRAWN, WIDENED))


def replaced(known: Constraint, wider: Constraint) -> Retraction:
    """The retraction of a constraint that a wider one stands for."""
    why = f"{wider.id} stands for it and refuses more"
    return Retraction(id=f"{WIDENED}{known.id}", retracts=known.id, why=why, time=wider.time)


def adopt(constraint: Constraint, *, log: EventLog, constraints: Path) -> ConstraintBook:
    """Make a waiting proposal a constraint, in place of a narrower one of the same cause."""
    file, rows = ConstraintFile(constraints), ConstraintRows(log)
    book = reconcile(file, rows)
    name = constraint.id.partition(".")[0]
    narrower = [c for c in book.active if c.id.partition(".")[0] == name and c.id != constraint.id]
    file.append([constraint, *(replaced(known, constraint) for known in narrower)])
    return reconcile(file, rows)


def _proposed(log: EventLog) -> list[ConstraintProposed]:
    rows = log.rows(kinds=("constraint_proposed",))
    return [row.event for row in rows if isinstance(row.event, ConstraintProposed)]
