"""Figures that no honest kernel has are a person's matter, on a GPU's clock: told from figures alone, without one."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("torch")

from kernelgen.ladder.benchmark import Ceilings, Recipe
from kernelgen.ladder.benchmark.judgement import Measured, doubts, figures, measured, not_quiet
from kernelgen.ladder.benchmark.pairs import Pair, Shape

H200 = Ceilings(bytes_per_s=4.26e12, flops_per_s=677e12, peak_bytes_per_s=4.8e12, peak_flops_per_s=1979e12)
CALLS, BLANK_S, OVERHEAD_S = 320, 320 * 47e-6, 2e-4
MOVED = 8.0 * (1 << 24)


def _one(candidate_us: float = 33.0, *, blank_noise: float = 1e-3, events: float = 1.0, **shape: Any) -> Measured:
    """A shape measured on a copy that takes 33 us; `events` is what part of its time the candidate's events tell."""
    draw = random.Random(4)
    pairs = []
    for _ in range(12):
        blank = BLANK_S * draw.gauss(1.0, blank_noise)
        calls = {"candidate": CALLS * candidate_us * 1e-6, "champion": CALLS * 33e-6, "blank": 0.0}
        said = {role: BLANK_S + time * (events if role == "candidate" else 1.0) for role, time in calls.items()}
        walls = {role: blank + time * draw.gauss(1.0, 1e-3) + OVERHEAD_S for role, time in calls.items()}
        pairs.append(Pair(walls, said))  # type: ignore[arg-type]
    return measured(Shape("n", {}, calls=32, rounds=10, **shape), pairs, 0.99, MOVED, 1.0)


def _checks(one: Measured) -> list[str]:
    return [fault.check for fault in doubts(one, Recipe(), H200, on_gpu=True)]


def test_an_honest_copy_raises_none_and_its_figures_come_out() -> None:
    one = _one(unchanged_s=33e-6, warm_s=30e-6, launch_s=0.8e-6)
    assert _checks(one) == []
    assert not_quiet([one], Recipe()) is None
    record: Any = figures(one, H200)
    assert record["candidate"]["us"] == pytest.approx(33.0, rel=0.01)
    assert record["floor_us"] == pytest.approx(31.5, rel=0.01)
    assert record["candidate"]["of_floor"] == pytest.approx(31.5 / 33.0, rel=0.01)
    assert record["low"] <= 1.0 <= record["high"]


def test_a_measured_floor_may_be_passed_and_the_vendors_rates_may_not() -> None:
    assert _checks(_one(29.5)) == []
    assert _checks(_one(25.0)) == ["benchmark.impossible"]


@pytest.mark.parametrize("events", [0.5, 1.5])
def test_events_that_tell_another_time_than_the_judges_clock(events: float) -> None:
    assert _checks(_one(events=events)) == ["benchmark.clocks"]


def test_a_call_that_is_slower_without_a_flush_ran_beside_it() -> None:
    assert _checks(replace(_one(), shape=replace(_one().shape, warm_s=60e-6))) == ["benchmark.overlap"]
    # a launch is prepared while the cache is flushed
    assert _checks(_one(33.0, warm_s=34.5e-6)) == []


def test_a_call_that_is_quick_on_unchanged_contents_remembers() -> None:
    assert _checks(_one(unchanged_s=10e-6)) == ["benchmark.remembered"]


def test_a_machine_that_does_something_else_measures_nothing() -> None:
    assert not_quiet([_one(blank_noise=0.3)], Recipe()) is not None
