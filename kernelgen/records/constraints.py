"""Constraints as lines of the database, and as a selection for a prompt."""

from __future__ import annotations

from pydantic import Field

from kernelgen.config import Dsl, Frozen, Severity
from kernelgen.records.base import Id


class Scope(Frozen):
    """Where a constraint holds; None means everywhere."""

    target: str | None = None
    """Target name."""
    hardware: str | None = None
    """Hardware name."""
    dsl: Dsl | None = None
    """DSL of the candidate."""
    state: int | None = Field(default=None, ge=0, le=5)
    """State number."""
    compiler: str | None = None
    """For what a compiler said: its name, as in `triton`."""
    compiler_version: str | None = None
    """And its version."""


class Evidence(Frozen):
    """What a constraint rests on."""

    events: tuple[Id, ...] = ()
    """Ids of the events that show it."""
    lines: tuple[str, ...] = ()
    """The decisive lines of the log, uncut."""


class Constraint(Frozen):
    """One line of `constraints.jsonl`: what a candidate must, should not, or did well to do."""

    id: Id
    """Unique; a line without one is named after its content."""
    severity: Severity
    """hard: cannot be overridden. soft: avoid without a reason. positive: worked before."""
    statement: str = Field(min_length=1)
    """One sentence a kernel author can follow."""
    scope: Scope = Scope()
    """Where it holds."""
    evidence: Evidence = Evidence()
    """What it rests on."""
    source: str = ""
    """Where it comes from: a datasheet, a level of the ladder, a person."""
    architecture: bool = False
    """An architecture fact: the last of the hard ones to give way."""
    time: str = ""
    """ISO 8601 UTC; empty sorts as oldest."""
    rule: str | None = None
    """Where possible a predicate a program can check, in the language of `kernelgen.constraints.rules`."""


class Retraction(Frozen):
    """A line of `constraints.jsonl` that withdraws an earlier one."""

    id: Id
    """Unique."""
    retracts: Id
    """Id of the constraint that no longer holds."""
    why: str = Field(min_length=1)
    """One sentence."""
    time: str = ""
    """ISO 8601 UTC."""


class SelectedConstraint(Frozen):
    """One entry of the prompt: a constraint, or several that say the same, merged."""

    ids: tuple[Id, ...]
    """Ids merged into this entry, the most recent first."""
    severity: Severity
    """Of all of them."""
    statement: str
    """As the most recent one puts it."""
    evidence: str
    """The evidence in one line, or empty."""
    rule: str | None = None
    """The checkable rule, if there is one."""
    tokens: int
    """Tokens of the rendered line."""


class Selection(Frozen):
    """What is injected of the constraints, and what is left out."""

    chosen: tuple[SelectedConstraint, ...]
    """In the order of the prompt: hard, soft, positive; within each by recency."""
    left_out: tuple[Id, ...]
    """Ids that hold here but did not fit the budget."""
    considered: int
    """Constraints that hold here, before merging and budget."""
    tokens: int
    """Tokens of the rendered [CONSTRAINTS] body."""
    budget: int
    """Tokens allowed."""
    encoding: str
    """What counted them."""
