"""The figures of L3 and L4 as a verdict's details hold them: read in one place, and believed in one form.

A ratio is the champion's time over the candidate's: above 1 the candidate is faster.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from kernelgen.errors import BadInput

MEASURED = ("L3", "L4")
"""Levels whose details hold a measurement."""


@dataclass(frozen=True)
class Ratio:
    """How many times as fast as the champion, with the interval that the measurement gives it."""

    ratio: float
    """The champion's time over the candidate's."""
    low: float
    """Least within the interval."""
    high: float
    """Largest within the interval."""

    def told(self) -> str:
        """In words: `1.23 times as fast (99% interval 1.2 to 1.26)` without the share, which the reader adds."""
        return f"{self.ratio:.3g} ({self.low:.3g} to {self.high:.3g})"

    @property
    def slower(self) -> Ratio:
        """The candidate's time over the champion's."""
        return Ratio(1 / self.ratio, 1 / self.high, 1 / self.low)


@dataclass(frozen=True)
class ShapeFigures:
    """One shape of a measurement."""

    ratio: Ratio
    """Of this shape."""
    candidate_us: float
    """Median of the candidate."""
    champion_us: float
    """Median of the champion, in the same recipe."""
    moved_bytes: float
    """Bytes that a call must move."""
    flops: float
    """Operations of a call."""
    of_floor: float | None
    """The measured floor over the candidate's time; None where there were no ceilings."""
    chosen: str
    """Configurations that the candidate's autotuner chose, by its own word; empty where there is none."""


@dataclass(frozen=True)
class Comparison:
    """A candidate measured against a champion."""

    champion_id: str
    """The champion's id."""
    champion_digest: str
    """Digest of the champion's source."""
    over_all: Ratio
    """Geometric mean over the shapes."""
    confidence: float
    """Of every interval."""
    recipe: str
    """Id of the recipe: figures of one recipe may be compared."""
    shapes: dict[str, ShapeFigures]
    """By shape."""


def read_comparison(text: str) -> Comparison:
    """The measurement in the details of L3 or L4. Raises BadInput, with the place, for details of another form."""
    try:
        details = json.loads(text)
        return Comparison(
            champion_id=_text(details["champion"]["id"]),
            champion_digest=_text(details["champion"]["digest"]),
            over_all=_ratio(details["geometric_mean"]),
            confidence=_positive(details["recipe"]["terms"]["confidence"]),
            recipe=_text(details["recipe"]["id"]),
            shapes={_text(name): _shape(shape) for name, shape in details["shapes"].items()},
        )
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise BadInput(
            f"The figures of the measurement have another form ({type(error).__name__}: {error}); judge it again."
        ) from error


def rival_of(text: str) -> str | None:
    """Id of the champion that the details of L3 or L4 name; None where they name none."""
    try:
        return _text(json.loads(text)["champion"]["id"])
    except (KeyError, TypeError, ValueError, RecursionError):
        return None


def _shape(record: dict[str, Any]) -> ShapeFigures:
    candidate = record["candidate"]
    of_floor = candidate.get("of_floor")
    return ShapeFigures(
        ratio=_ratio(record),
        candidate_us=_positive(candidate["us"]),
        champion_us=_positive(record["champion"]["us"]),
        moved_bytes=_positive(record["bytes"]),
        flops=_number(record["flops"]),
        of_floor=None if of_floor is None else _positive(of_floor),
        chosen=_text(candidate.get("chosen", "")),
    )


def _ratio(record: dict[str, Any]) -> Ratio:
    return Ratio(_positive(record["ratio"]), _positive(record["low"]), _positive(record["high"]))


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise ValueError(f"{value!r} is no figure")
    return float(value)


def _positive(value: object) -> float:
    number = _number(value)
    if number == 0:
        raise ValueError("a figure is 0")
    return number


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value
