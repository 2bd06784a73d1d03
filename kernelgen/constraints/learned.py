"""Which constraints a verdict taught: those that rest on events of a log, and not on a datasheet or a person's word."""

from __future__ import annotations

from collections.abc import Iterable

from kernelgen.records import Constraint


def is_learned(constraint: Constraint) -> bool:
    """Whether it rests on a verdict. An architecture fact does not, whatever stands beside it."""
    return bool(constraint.evidence.events) and not constraint.architecture


def in_use(constraints: Iterable[Constraint], *, learned: bool) -> tuple[Constraint, ...]:
    """All of them, or without `learned` those that no verdict taught."""
    return tuple(constraint for constraint in constraints if learned or not is_learned(constraint))
