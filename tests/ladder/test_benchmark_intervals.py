"""Intervals are what they say, bear outliers, and tell faster, slower and no difference apart."""

from __future__ import annotations

import math
import random

import pytest

from kernelgen.ladder.benchmark.intervals import interval, quantile, together
from kernelgen.ladder.benchmark.judgement import decided


@pytest.mark.parametrize(
    ("confidence", "freedom", "known"),
    [(0.99, 1, 63.657), (0.99, 9, 3.2498), (0.95, 19, 2.0930), (0.99, 1000, 2.5808), (0.99, 2.5, 7.17)],
)
def test_quantiles_are_those_of_the_tables(confidence: float, freedom: float, known: float) -> None:
    assert quantile(confidence, freedom) == pytest.approx(known, rel=2e-3)


@pytest.mark.parametrize("count", [8, 10, 20, 30])
def test_an_interval_of_99_percent_misses_the_truth_about_once_in_a_hundred(count: int) -> None:
    draw = random.Random(count)
    found = [interval([draw.gauss(0.0, 0.01) for _ in range(count)], 0.99) for _ in range(1500)]
    missed = sum(abs(one.mean) > one.reach for one in found) / len(found)
    assert missed <= 0.02


def test_a_disturbed_block_moves_a_ratio_little() -> None:
    draw = random.Random(1)
    quiet = [draw.gauss(math.log(1.03), 0.003) for _ in range(20)]
    disturbed = interval([*quiet[:-1], math.log(5.0)], 0.99)
    assert disturbed.ratio == pytest.approx(1.03, abs=0.003)
    assert disturbed.low > 1.02


def test_the_mean_over_shapes_is_geometric_and_no_surer_than_its_parts_allow() -> None:
    draw = random.Random(2)
    parts = [interval([draw.gauss(math.log(ratio), 0.01) for _ in range(20)], 0.99) for ratio in (2.0, 0.5)]
    over_all = together(parts, 0.99)
    assert over_all.ratio == pytest.approx(1.0, abs=0.01)
    assert over_all.low < 1.0 < over_all.high
    assert over_all.error == pytest.approx(math.hypot(*(part.error for part in parts)) / 2)


@pytest.mark.parametrize(
    ("mean", "noise", "word"),
    [
        (1.05, 0.002, "faster"),
        (0.95, 0.002, "slower"),
        (1.0, 0.002, "no_difference"),
        (1.005, 0.0005, "no_difference"),  # sure, and less than counts
        (0.995, 0.0005, "no_difference"),
        (1.05, 0.5, "no_difference"),  # large, and not sure
    ],
)
def test_only_a_sure_and_large_enough_difference_is_one(mean: float, noise: float, word: str) -> None:
    draw = random.Random(3)
    over_all = interval([draw.gauss(math.log(mean), noise) for _ in range(12)], 0.99)
    assert decided(over_all, 0.01) == word


def test_the_same_figures_give_the_same_interval() -> None:
    values = [0.1, 0.3, 0.2, 0.15, 0.12]
    assert interval(values, 0.99) == interval(list(reversed(values)), 0.99)
