"""Blocks side by side, the shape they belong to, and the time of a call that comes of them: plain data."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field

from kernelgen.ladder.benchmark.said import Role
from kernelgen.targets.findings import Dims

# below it a time is not known at all
LEAST_S = 1e-9


@dataclass(frozen=True)
class Pair:
    """One block of each side on the same set of inputs, in random order."""

    walls: Mapping[Role, float]
    """Seconds by the judge's clock."""
    said: Mapping[Role, float]
    """Seconds by the events in the process."""


@dataclass
class Shape:
    """A shape while it is measured."""

    name: str
    """Its name."""
    dims: Dims
    """Its dimensions."""
    calls: int = 1
    """Calls of a round."""
    rounds: int = 1
    """Rounds of a block."""
    pairs: int = 0
    """Pairs to measure."""
    far: bool = False
    """Whether the candidate was seen to be far slower in its first block."""
    sets: int = 0
    """Sets of inputs made."""
    checked: int = 0
    """Answers compared with the reference."""
    setup_s: dict[str, float] = field(default_factory=dict)
    """Seconds of the first call by role, by the process' own clock."""
    chosen: dict[str, str] = field(default_factory=dict)
    """Configurations chosen by role, as the process says."""
    unchanged_s: float | None = None
    """Longest time of a call of the candidate on contents that do not change, of the probes."""
    warm_s: float | None = None
    """Time of a call of the candidate that no flush precedes."""
    launch_s: float | None = None
    """Time of an empty kernel."""


def per_call(pairs: list[Pair], calls: int) -> dict[Role, list[float]]:
    """Seconds of a call by side, pair by pair: its block less the usual block without a call."""
    blank_s = statistics.median(pair.walls["blank"] for pair in pairs)
    sides: tuple[Role, ...] = ("candidate", "champion")
    return {role: [max(LEAST_S, (pair.walls[role] - blank_s) / calls) for pair in pairs] for role in sides}
