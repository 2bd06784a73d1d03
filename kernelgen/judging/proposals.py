"""The proposals that wait for a person: those neither adopted nor withdrawn, and with evidence that still stands."""

from __future__ import annotations

from kernelgen.constraints.book import ConstraintBook
from kernelgen.errors import ConstraintError, nearest
from kernelgen.eventlog.store import EventLog
from kernelgen.events import ConstraintProposed
from kernelgen.generation.region import retracted_verdicts


def waiting(log: EventLog, book: ConstraintBook) -> list[ConstraintProposed]:
    """The waiting proposals, oldest first."""
    known = {constraint.id for constraint in book.all}
    gone = retracted_verdicts(log)
    found: dict[str, ConstraintProposed] = {}
    for row in log.rows(kinds=("constraint_proposed",)):
        assert isinstance(row.event, ConstraintProposed)
        constraint = row.event.constraint
        if constraint.id not in known and not gone.issuperset(constraint.evidence.events):
            found.setdefault(constraint.id, row.event)
    return list(found.values())


def proposal(log: EventLog, book: ConstraintBook, constraint_id: str) -> ConstraintProposed:
    """One of them by its constraint's id. Raises ConstraintError with the nearest where there is none."""
    found = {one.constraint.id: one for one in waiting(log, book)}
    if constraint_id not in found:
        near = nearest(constraint_id, found) if found else "; none waits"
        raise ConstraintError(f"No proposal '{constraint_id}' waits{near}")
    return found[constraint_id]
