"""L4's decision: a win that counts, surely above 1, and no shape that pays for it."""

from __future__ import annotations

import pytest

from kernelgen.ladder.decide import LOSS, NO_GAIN, decide
from kernelgen.ladder.results import Fault, Result


def measured(mean: tuple[float, float, float], **shapes: float) -> Result:
    def figure(ratio: float, low: float, high: float) -> dict[str, float]:
        return {"ratio": ratio, "low": low, "high": high}

    details = {
        "geometric_mean": figure(*mean),
        "shapes": {name: figure(ratio, ratio - 0.005, ratio + 0.005) for name, ratio in shapes.items()},
    }
    return Result("L4", "passed", "measured", details=details)


def decided(result: Result) -> Result:
    return decide(result, minimum_effect=0.01, largest_loss=0.02)


def test_a_clear_win_on_every_shape_promotes() -> None:
    result = decided(measured((1.2, 1.15, 1.25), small=1.1, large=1.3))
    assert (result.outcome, result.faults) == ("passed", ())
    assert result.details["decision"] == {"minimum_effect": 0.01, "largest_loss": 0.02, "promote": True}
    assert "at the worst, small, 1.1 x" in result.reason


@pytest.mark.parametrize(
    "mean", [(1.009, 1.005, 1.013), (1.05, 0.999, 1.1), (0.9, 0.88, 0.92)], ids=["too small", "not sure", "slower"]
)
def test_a_win_that_is_too_small_or_not_sure_does_not(mean: tuple[float, float, float]) -> None:
    result = decided(measured(mean, one=mean[0]))
    assert result.outcome == "failed"
    assert result.faults[0].check == NO_GAIN
    assert result.details["decision"]["promote"] is False


def test_one_shape_that_loses_too_much_refuses_a_win_over_all() -> None:
    allowed, too_much = 1 / 1.0199, 1 / 1.0201
    assert decided(measured((1.3, 1.2, 1.4), fast=2.0, slow=allowed)).outcome == "passed"
    result = decided(measured((1.3, 1.2, 1.4), fast=2.0, slow=too_much, slower=0.9))
    assert [fault.check for fault in result.faults] == [LOSS, LOSS]
    assert result.faults[0].reason.startswith("11.11% slower than the champion at the held-out shape slower")


@pytest.mark.parametrize("outcome", ["failed", "suspect", "inconclusive"])
def test_a_measurement_that_cannot_be_trusted_is_not_decided_upon(outcome: str) -> None:
    refused = Result("L4", outcome, "why", (Fault("benchmark.clocks", "why"),))  # type: ignore[arg-type]
    assert decided(refused) is refused
