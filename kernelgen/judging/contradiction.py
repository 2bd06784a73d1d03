"""What a later measurement of a kernel takes back of what was learned of it: all, or all but one compiler version.

The retraction's id names the verdict's event, so that it counts no more where that verdict falls itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from kernelgen.constraints.book import ConstraintBook
from kernelgen.constraints.distil import name_of
from kernelgen.constraints.lines import Record
from kernelgen.eventlog.chain import Row
from kernelgen.eventlog.store import EventLog
from kernelgen.judging.trials import compiler_version
from kernelgen.records import Constraint, Retraction

CONTRADICTED = "contradicted_by_"
"""Begins the id of such a retraction; the verdict's event and the constraint follow."""


def is_contradiction(retraction: Retraction) -> bool:
    """Whether a later measurement made it."""
    return retraction.id.startswith(CONTRADICTED)


def contradicting(retraction: Retraction) -> str:
    """Event id of the verdict that a contradiction rests on."""
    return retraction.id.removeprefix(CONTRADICTED).partition(".")[0]


def contradicted_by(book: ConstraintBook, gone: frozenset[str]) -> list[Constraint]:
    """The constraints whose contradiction fell with its verdict, and that may hold again."""
    retractions = ((constraint, book.retraction(constraint.id)) for constraint in book.all)
    return [c for c, r in retractions if r is not None and is_contradiction(r) and contradicting(r) in gone]


def records_against(fingerprint: str, row: Row, book: ConstraintBook, log: EventLog) -> Iterator[list[Record]]:
    """What is to be appended, where a verdict speaks against a lesson that stands: a retraction, what is left first."""
    compiler, now = compiler_version(row, log)
    for known in book.active:
        rests_on = [log.row(event) for event in known.evidence.events] if _is_of(known, fingerprint) else []
        if not rests_on or any(one.seq >= row.seq for one in rests_on):
            continue
        told = (compiler_version(one, log)[1] for one in rests_on)
        then = known.scope.compiler_version or next((version for version in told if version), None)
        if now == then or now is None or then is None:
            yield [_retraction(known, row, f"the same kernel, measured again, showed otherwise ({row.id})")]
        elif known.scope.compiler_version is None:
            left = _narrowed(known, row, compiler, then, now)
            why = f"{left.id} says it of {compiler} {then} alone: {row.id} showed otherwise with {now}"
            yield [left, _retraction(known, row, why)]


def _is_of(constraint: Constraint, fingerprint: str) -> bool:
    return constraint.id.partition(".")[0] == name_of(fingerprint)


def _retraction(known: Constraint, row: Row, why: str) -> Retraction:
    return Retraction(id=f"{CONTRADICTED}{row.id}.{known.id}", retracts=known.id, why=why, time=row.time)


def _narrowed(known: Constraint, row: Row, compiler: str, then: str, now: str) -> Constraint:
    """What is left of a constraint that a verdict with another version of the compiler contradicts."""
    stem, _, number = known.id.partition(".")
    statement = f"{known.statement} So it was with {compiler} {then}, and not with {now}."
    scope = known.scope.model_copy(update={"compiler": compiler, "compiler_version": then})
    changes = {"id": f"{stem}.{int(number or 1) + 1}", "statement": statement, "scope": scope, "time": row.time}
    return known.model_copy(update=changes)
