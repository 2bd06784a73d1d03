"""Confidence intervals of ratios, by the trimmed t interval on the logarithms of pairs.

A block that something else disturbed is a far outlier on one side, which moves a mean and widens a plain t interval;
a percentile bootstrap of some ten to thirty pairs is too narrow at 99%. So a tenth of the pairs is trimmed at each end
and the variance is the winsorised one (Tukey and McLaughlin 1963; Yuen 1974): close to the stated confidence where the
noise is symmetric, and the same for the same figures, since nothing is drawn.
"""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

TRIMMED = 0.1
_STEPS, _HALVINGS, _WIDEST = 400, 60, 1e6


@dataclass(frozen=True)
class Interval:
    """A mean of logarithms with its uncertainty."""

    mean: float
    """Trimmed mean of the logarithms."""
    error: float
    """Its standard error."""
    freedom: float
    """Degrees of freedom of that error."""
    reach: float
    """Half the width of the interval."""

    @property
    def ratio(self) -> float:
        """The mean as a ratio."""
        return math.exp(self.mean)

    @property
    def low(self) -> float:
        """The least ratio within the interval."""
        return math.exp(self.mean - self.reach)

    @property
    def high(self) -> float:
        """The largest ratio within the interval."""
        return math.exp(self.mean + self.reach)

    def as_dict(self) -> dict[str, float]:
        """Ratio and interval as a record has them."""
        return {"ratio": round(self.ratio, 5), "low": round(self.low, 5), "high": round(self.high, 5)}


def interval(logarithms: Sequence[float], confidence: float) -> Interval:
    """The trimmed t interval of at least two values."""
    ordered = sorted(logarithms)
    count, cut = len(ordered), int(TRIMMED * len(ordered))
    kept = ordered[cut : count - cut]
    winsorised = [kept[0]] * cut + kept + [kept[-1]] * cut
    error = statistics.stdev(winsorised) / ((1 - 2 * cut / count) * math.sqrt(count))
    freedom = len(kept) - 1
    return Interval(statistics.fmean(kept), error, freedom, quantile(confidence, freedom) * error)


def together(parts: Sequence[Interval], confidence: float) -> Interval:
    """The mean over shapes, each measured by itself: the geometric mean of their ratios (Welch, Satterthwaite)."""
    count = len(parts)
    squares = [(part.error / count) ** 2 for part in parts]
    error = math.sqrt(sum(squares))
    weights = sum(square**2 / part.freedom for square, part in zip(squares, parts, strict=True))
    freedom = sum(squares) ** 2 / weights if weights else min(part.freedom for part in parts)
    mean = statistics.fmean(part.mean for part in parts)
    return Interval(mean, error, freedom, quantile(confidence, freedom) * error)


@functools.cache
def quantile(confidence: float, freedom: float) -> float:
    """The t that a variable of Student's distribution exceeds in size with probability 1 - confidence."""
    low, high = 0.0, _WIDEST
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * high) if low else high / 2
        low, high = (middle, high) if _within(middle, freedom) < confidence else (low, middle)
    return high


def _within(size: float, freedom: float) -> float:
    """Probability that a variable of Student's distribution is at most this large: Simpson's rule over the angle."""
    log_scale = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2) - math.log(math.pi) / 2
    end = math.atan(size / math.sqrt(freedom))
    step = end / _STEPS
    total = sum(
        (1 if place in (0, _STEPS) else 4 if place % 2 else 2) * math.cos(place * step) ** (freedom - 1)
        for place in range(_STEPS + 1)
    )
    return min(1.0, float(2 * math.exp(log_scale) * total * step / 3))
