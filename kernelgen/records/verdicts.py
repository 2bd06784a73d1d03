"""Verdicts: how far up the ladder a candidate came."""

from __future__ import annotations

from typing import Literal

from pydantic import model_validator

from kernelgen.config import Frozen
from kernelgen.records.asks import Ask
from kernelgen.records.base import Id, Level


class LevelResult(Frozen):
    """What one level of the ladder found."""

    level: Level
    """Which level."""
    outcome: Literal["passed", "failed", "inconclusive"]
    """inconclusive: this machine cannot tell."""
    reason: str
    """In a sentence; for a failure the decisive line."""


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


Ask.model_rebuild()
