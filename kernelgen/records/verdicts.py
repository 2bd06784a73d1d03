"""Verdicts: how far up the ladder a candidate came."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from kernelgen.config import Frozen
from kernelgen.records.asks import Ask
from kernelgen.records.base import Id, Level


class Finding(Frozen):
    """One thing that is wrong with a candidate."""

    check: str
    """Dotted id of the check that found it, as in `compile.shared_memory`."""
    reason: str
    """In a sentence."""
    detail: str = ""
    """The decisive lines, uncut."""
    line: int | None = None
    """Line of the judged source, where it has one."""
    facts: dict[str, bool | int | float | str] = Field(default_factory=dict)
    """What a rule can be made of, keys as in `kernelgen.constraints.rules.FACTS`, `block.NAME` for a constexpr."""


class LevelResult(Frozen):
    """What one level of the ladder found."""

    level: Level
    """Which level."""
    outcome: Literal["passed", "failed", "suspect", "inconclusive"]
    """suspect: refused until a person looks at it; inconclusive: this machine cannot tell."""
    reason: str
    """In a sentence; for a failure the decisive line."""
    findings: tuple[Finding, ...] = ()
    """What was wrong, the decisive one first."""
    notes: tuple[str, ...] = ()
    """What a reader should know beside."""
    environment: dict[str, str] = Field(default_factory=dict)
    """What it depends on: compilers and their versions, the GPU, what contained the candidate."""
    seconds: float = 0.0
    """Wall time."""

    @model_validator(mode="after")
    def _findings_say_why(self) -> LevelResult:
        if self.findings and self.outcome not in ("failed", "suspect"):
            raise ValueError(f"a level that is {self.outcome} has no findings")
        return self


class Verdict(Frozen):
    """How far up the ladder a candidate came."""

    iteration_id: Id
    """The candidate."""
    levels: tuple[LevelResult, ...]
    """In order, as far as it was taken; a level that is absent was not reached."""
    speedup: float | None = None
    """Champion's time over the candidate's, geometric mean over the shapes; only with L3."""

    @model_validator(mode="after")
    def _speedup_needs_l3(self) -> Verdict:
        if self.speedup is not None and not any(r.level == "L3" for r in self.levels):
            raise ValueError("a speedup needs an L3 result")
        return self

    def failed(self) -> LevelResult | None:
        """The first level that failed, or None."""
        return next((r for r in self.levels if r.outcome == "failed"), None)

    def refused(self) -> LevelResult | None:
        """The first level that failed or is suspect, or None."""
        return next((r for r in self.levels if r.outcome in ("failed", "suspect")), None)

    def highest(self) -> Level | None:
        """The highest level passed with every one below it passed or inconclusive; None where none passed."""
        passed: Level | None = None
        for result in self.levels:
            if result.outcome in ("failed", "suspect"):
                break
            if result.outcome == "passed":
                passed = result.level
        return passed


Ask.model_rebuild()
