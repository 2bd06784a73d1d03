"""L4's decision: does a measurement at the held-out shapes make a candidate the champion? Pure arithmetic.

It is made where the measurement was, by the same function everywhere; what follows a pass is the log's affair. A
candidate wins where the geometric mean of its ratios counts for something and surely lies above 1, and where no single
shape pays for it by more than the policy allows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kernelgen.ladder.results import Fault, Result

MEAN, SHAPES = "geometric_mean", "shapes"
"""Keys of a measurement's details: the champion's time over the candidate's, with its interval."""
NO_GAIN, LOSS = "promotion.no_gain", "promotion.loss"


def decide(measured: Result, *, minimum_effect: float, largest_loss: float) -> Result:
    """The result of L4: a measurement that passed, as `benchmark.confirm` gives it, and what it decides.

    A measurement that refused the candidate, or could not be trusted, is the result itself.

    Args:
        measured: the measurement at the held-out shapes.
        minimum_effect: smallest relative speedup that counts as one.
        largest_loss: largest relative time that the candidate may lose at any shape.

    Raises:
        KeyError, TypeError: the measurement has other details than `benchmark.confirm` gives.
    """
    if measured.outcome != "passed":
        return measured
    mean, shapes = measured.details[MEAN], measured.details[SHAPES]
    faults = [*_without_gain(mean, minimum_effect), *_losses(shapes, largest_loss)]
    terms = {"minimum_effect": minimum_effect, "largest_loss": largest_loss}
    details = {**measured.details, "decision": {**terms, "promote": not faults}}
    if faults:
        return replace(measured, outcome="failed", reason=faults[0].reason, faults=tuple(faults), details=details)
    worst = min(shapes, key=lambda name: float(shapes[name]["ratio"]))
    reason = (
        f"{float(mean['ratio']):.4g} x the champion's speed over {len(shapes)} held-out shapes "
        f"({_span(mean)}); at the worst, {worst}, {float(shapes[worst]['ratio']):.4g} x"
    )
    return replace(measured, reason=reason, details=details)


def _without_gain(mean: Mapping[str, Any], minimum_effect: float) -> list[Fault]:
    """Why the whole counts for nothing."""
    ratio, low = float(mean["ratio"]), float(mean["low"])
    if ratio >= 1 + minimum_effect and low > 1:
        return []
    wanted = f"it takes {1 + minimum_effect:.4g} x with an interval above 1 to become champion"
    reason = f"{ratio:.4g} x the champion's speed at the held-out shapes ({_span(mean)}): {wanted}"
    return [Fault(NO_GAIN, reason)]


def _losses(shapes: Mapping[str, Mapping[str, Any]], largest_loss: float) -> list[Fault]:
    """The shapes at which the candidate takes too much longer than the champion, the worst first."""
    slower = {name: 1 / float(shape["ratio"]) - 1 for name, shape in shapes.items()}
    lost = sorted((name for name, share in slower.items() if share > largest_loss), key=lambda name: -slower[name])
    return [
        Fault(
            LOSS,
            f"{slower[name]:.2%} slower than the champion at the held-out shape {name}; {largest_loss:.2%} is allowed",
            f"{name}: {_span(shapes[name])}",
        )
        for name in lost
    ]


def _span(figure: Mapping[str, Any]) -> str:
    return f"interval {float(figure['low']):.4g} to {float(figure['high']):.4g}"
