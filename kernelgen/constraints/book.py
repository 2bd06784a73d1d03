"""What the constraint database says now: its constraints, which of them are retracted, and why.

The order of the records does not matter; a retraction may stand before what it retracts.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from functools import cached_property

from kernelgen.constraints.lines import Record
from kernelgen.constraints.select import ConstraintIndex
from kernelgen.errors import ConstraintError, nearest
from kernelgen.records import Constraint, Retraction

MOST_NAMES_LISTED = 20
"""Known ids a sentence lists; of more it names only the nearest."""


class ConstraintBook:
    """The database, folded. Raises ConstraintError where a retraction names no constraint."""

    def __init__(self, records: Iterable[Record]) -> None:
        self._constraints: dict[str, Constraint] = {}
        self._retractions: dict[str, Retraction] = {}
        retractions: list[Retraction] = []
        for record in records:
            if isinstance(record, Constraint):
                self._constraints[record.id] = record
            else:
                retractions.append(record)
        for retraction in retractions:
            if retraction.retracts not in self._constraints:
                raise ConstraintError(
                    f"{retraction.id} retracts '{retraction.retracts}', which is no constraint"
                    f"{self._near(retraction.retracts)}"
                )
            self._retractions.setdefault(retraction.retracts, retraction)
        self.retractions = tuple(retractions)
        """All retractions."""

    @cached_property
    def all(self) -> tuple[Constraint, ...]:
        """Every constraint, retracted ones too, in the order of the file."""
        return tuple(self._constraints.values())

    @cached_property
    def active(self) -> tuple[Constraint, ...]:
        """The constraints that hold: those not retracted, in the order of the file."""
        return tuple(c for c in self._constraints.values() if c.id not in self._retractions)

    def get(self, constraint_id: str) -> Constraint:
        """A constraint by id, retracted or not; ConstraintError with the nearest id where there is none."""
        found = self._constraints.get(constraint_id)
        if found is None:
            raise ConstraintError(f"There is no constraint '{constraint_id}'{self._near(constraint_id)}")
        return found

    def retraction(self, constraint_id: str) -> Retraction | None:
        """The retraction of a constraint, or None while it holds."""
        return self._retractions.get(constraint_id)

    def index(self) -> ConstraintIndex:
        """The active constraints, ready for selecting."""
        return self._index

    @cached_property
    def _index(self) -> ConstraintIndex:
        return ConstraintIndex(self.active)

    def _near(self, constraint_id: str) -> str:
        if len(self._constraints) <= MOST_NAMES_LISTED:
            return nearest(constraint_id, self._constraints)
        close = difflib.get_close_matches(constraint_id, self._constraints, n=1)
        return f"; did you mean '{close[0]}'?" if close else "; `kernelgen constraints list --all` shows them"
