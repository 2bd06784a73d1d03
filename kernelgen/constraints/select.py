"""Which constraints a prompt carries, under a budget of tokens that counts the whole [CONSTRAINTS] body.

Shown: hard, soft, positive; within each the most recent first. Filled: architecture facts, then the other hard ones,
soft, positive, each class by recency. An entry that does not fit is left out, and one after it takes room only that it
could not use; once `LOOK_AHEAD` entries of a class did not fit, the rest of that class is left out. Constraints that
say the same are one entry with a count. Every constraint that holds here is in an entry or named in `left_out`, and
nothing depends on the order they are given in. A statement is never cut.
"""

from __future__ import annotations

import gc
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import accumulate, compress, pairwise
from math import inf
from operator import attrgetter
from types import MappingProxyType
from typing import NamedTuple

from kernelgen import tokens
from kernelgen.config import Severity
from kernelgen.constraints.merge import Merger
from kernelgen.constraints.render import (
    HEADINGS,
    NONE,
    evidence_text,
    plain,
    render_entry,
    render_line,
    render_lists,
)
from kernelgen.errors import ConfigError, ConstraintError
from kernelgen.records import Constraint, Scope, SelectedConstraint, Selection

LOOK_AHEAD = 50
"""Entries of a class that may fail to fit before the rest of it is left out."""
RANK: Mapping[Severity, int] = MappingProxyType({severity: rank for rank, severity in enumerate(HEADINGS)})
"""hard 0, soft 1, positive 2."""

_scope_fields = attrgetter(*Scope.model_fields)


class _Chosen(NamedTuple):
    """An entry that got room, and the positions of the constraints merged into it."""

    positions: list[int]
    entry: SelectedConstraint


def select(constraints: Iterable[Constraint], scope: Scope, *, budget: int, encoding: str) -> Selection:
    """What to inject for a scope; see `ConstraintIndex.select`."""
    return ConstraintIndex(constraints).select(scope, budget=budget, encoding=encoding)


def holds(constraint: Scope, here: Scope) -> bool:
    """Whether a constraint's scope covers a request's.

    None in the constraint covers all; target, hardware, dsl and state must otherwise be equal. What a compiler said
    holds for that compiler and version, and wherever the request does not name them.
    """
    return (
        constraint.target in (None, here.target)
        and constraint.hardware in (None, here.hardware)
        and constraint.dsl in (None, here.dsl)
        and constraint.state in (None, here.state)
        and (here.compiler is None or constraint.compiler in (None, here.compiler))
        and (here.compiler_version is None or constraint.compiler_version in (None, here.compiler_version))
    )


def moment(time: str) -> float:
    """Seconds of an ISO 8601 time, UTC unless it says otherwise; empty or unreadable is before all others."""
    try:
        read = datetime.fromisoformat(time)
    except ValueError:
        return -inf
    return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()


@contextmanager
def collector_paused() -> Iterator[None]:
    """Hold back the garbage collector while many records are made.

    They hold no cycles, and walking them over and over takes longer than making them.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class ConstraintIndex:
    """Constraints sorted and grouped once, so that selecting is quick; a position is a place in that order."""

    def __init__(self, constraints: Iterable[Constraint]) -> None:
        """Raises ConstraintError where two have the same id."""
        with collector_paused():
            self._build(constraints)

    def _build(self, constraints: Iterable[Constraint]) -> None:
        self._ordered = sorted(constraints, key=lambda c: (RANK[c.severity], -moment(c.time), c.id))
        self._ids = [constraint.id for constraint in self._ordered]
        if len(set(self._ids)) < len(self._ids):
            twice = next(a for a, b in pairwise(sorted(self._ids)) if a == b)
            raise ConstraintError(f"Two constraints have the id '{twice}'; give one of them another id")
        # by their fields, since hashing a record takes longer than all else here
        numbers: dict[tuple[object, ...], int] = {}
        self._scope_of = [numbers.setdefault(_scope_fields(c.scope), len(numbers)) for c in self._ordered]
        self._scopes = [Scope.model_validate(dict(zip(Scope.model_fields, fields, strict=True))) for fields in numbers]
        severities = Counter(constraint.severity for constraint in self._ordered)
        self._severity_starts = list(accumulate((severities[severity] for severity in HEADINGS), initial=0))
        hard = self._ordered[: severities["hard"]]
        self._architecture = [position for position, constraint in enumerate(hard) if constraint.architecture]
        self._merger = Merger(self._ordered)

    def select(self, scope: Scope, *, budget: int, encoding: str) -> Selection:
        """What to inject for a scope, within `budget` tokens of `encoding`.

        Raises ConfigError where the budget does not even hold the headings.
        """
        covers = [holds(there, scope) for there in self._scopes]
        here = list(compress(range(len(self._ids)), map(covers.__getitem__, self._scope_of)))
        chosen = self._fill(here, covers, budget, encoding)
        # lines were counted one by one, which holds as long as no token spans two; the body as a whole must fit
        while (total := _body_tokens(chosen, encoding)) > budget:
            del chosen[-1]
        taken = {position for entry in chosen for position in entry.positions}
        return Selection(
            chosen=tuple(entry for _, entry in sorted(chosen, key=lambda c: c.positions)),
            left_out=tuple(self._ids[position] for position in here if position not in taken),
            considered=len(here),
            tokens=total,
            budget=budget,
            encoding=encoding,
        )

    def _fill(self, here: list[int], covers: list[bool], budget: int, encoding: str) -> list[_Chosen]:
        """The entries that get room, in the order they get it."""
        least = _body_tokens([], encoding)
        if least > budget:
            raise ConfigError(f"constraint_tokens={budget} holds not even the headings of [CONSTRAINTS]; give {least}")
        # with every line end, the last one too, the tokens of the lines add up
        used = tokens.count(render_lists(()) + "\n", encoding)
        none_tokens = tokens.count(NONE + "\n", encoding)
        chosen: list[_Chosen] = []
        begun: set[Severity] = set()
        seen: set[int] = set()
        for fill_class in self._fill_classes(here, covers):
            misses = 0
            for position in fill_class:
                if position in seen:
                    continue
                positions = self._merger.group(position, lambda p: covers[self._scope_of[p]])
                seen.update(positions)
                entry = self._entry(positions, encoding)
                after = used + entry.tokens - (0 if entry.severity in begun else none_tokens)
                if after <= budget:
                    used = after
                    begun.add(entry.severity)
                    chosen.append(_Chosen(positions, entry))
                elif (misses := misses + 1) == LOOK_AHEAD:
                    break
        return chosen

    def _fill_classes(self, here: list[int], covers: list[bool]) -> Iterator[Iterable[int]]:
        """Positions that hold here, by who gets room first; an architecture fact comes again among the hard ones."""
        yield (position for position in self._architecture if covers[self._scope_of[position]])
        for start, end in pairwise(self._severity_starts):
            yield here[bisect_left(here, start) : bisect_left(here, end)]

    def _entry(self, positions: list[int], encoding: str) -> SelectedConstraint:
        latest = self._ordered[positions[0]]
        ids = tuple(self._ids[position] for position in positions)
        statement = plain(latest.statement)
        rule = next((rule for position in positions if (rule := self._ordered[position].rule)), None)
        evidence = next((text for position in positions if (text := evidence_text(self._ordered[position]))), "")
        return SelectedConstraint(
            ids=ids,
            severity=latest.severity,
            statement=statement,
            evidence=evidence,
            rule=rule,
            tokens=tokens.count(render_line(ids, statement, rule, evidence) + "\n", encoding),
        )


def _body_tokens(chosen: list[_Chosen], encoding: str) -> int:
    shown = [entry for _, entry in sorted(chosen, key=lambda c: c.positions)]
    return tokens.count(render_lists((entry.severity, render_entry(entry)) for entry in shown), encoding)
