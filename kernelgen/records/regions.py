"""What is known of a region: its champion, and where its state vector stands."""

from __future__ import annotations

from typing import Literal

from kernelgen.config import Frozen
from kernelgen.records.base import Id, Language, Level


class Measured(Frozen):
    """Figures of a kernel at one shape, by one recipe."""

    shape: str
    """The target's shape."""
    time_us: float
    """Median."""
    tflops: float
    """By the target's formula."""
    gbytes_per_s: float
    """By the target's formula."""
    occupancy_percent: float | None
    """Where a profiler said so."""
    source: str
    """Event id, or file and date, of the measurement."""


class Champion(Frozen):
    """The best promoted kernel of a target on a hardware."""

    id: Id
    """Iteration id, import id, or `naive`."""
    target: str
    """Target name."""
    hardware: str
    """Hardware name."""
    origin: Literal["naive", "imported", "promoted"]
    """How it became champion."""
    language: Language
    """Of the source."""
    entry_point: str
    """Host function."""
    source: str
    """The whole source."""
    figures: tuple[Measured, ...] = ()
    """What was measured of it; empty means nothing was."""


class Attempt(Frozen):
    """One earlier generation of a target on a hardware."""

    iteration_id: Id
    """Of the generation."""
    state: int
    """Its state."""
    outcome: Literal["candidate", "failed", "promoted", "no_gain"]
    """candidate: written and not judged further; failed: no candidate, or it failed a level."""
    reason: str
    """What failed and why, in a sentence; for a candidate its hypothesis."""
    level: Level | None = None
    """Highest level passed, or the one that failed."""
    configs: str = ""
    """The autotune configs it tried, as canonical JSON, so that they are not tried again."""


class Position(Frozen):
    """Where the state vector of a target on a hardware stands, and what was tried."""

    target: str
    """Target name."""
    hardware: str
    """Hardware name."""
    state: int | None
    """The state to take next; None when all six are used up."""
    chosen_by: Literal["vector", "user"]
    """Whether the vector or a number from the user chose it."""
    failures: dict[str, int]
    """Failures by state number since the vector last moved there."""
    attempts: tuple[Attempt, ...]
    """The latest earlier attempts, oldest first, as many as the policy shows."""
    attempts_total: int
    """Earlier attempts in all."""
    frozen: str | None
    """Why the region is frozen, or None."""
