"""The ranking of targets by recoverable microseconds a decode step."""

from __future__ import annotations

import pytest
from profile_samples import target

from kernelgen.profile.headroom import headroom
from tests.factories import profile


def test_targets_rank_by_time_over_the_floor_times_calls() -> None:
    near = (target(name="near", calls_per_step=60), profile(shape="t4096", time_us=100.0, floor_us=95.0), None)
    far = (target(name="far", calls_per_step=1), profile(shape="t4096", time_us=500.0, floor_us=100.0), None)
    rows = headroom([near, far])
    assert [(row.target, row.recoverable_us) for row in rows] == [("far", 400), ("near", pytest.approx(300))]
    assert (rows[0].time_us, rows[0].floor_us, rows[0].calls_per_step) == (500, 100, 1)
    assert all(row.measured and row.note == "" for row in rows)


def test_unmeasured_targets_come_last_by_name_and_say_so() -> None:
    done = (target(name="done"), profile(shape="t4096", time_us=9.0, floor_us=9.5), None)
    rows = headroom([(target(name="b"), None, None), (target(name="a"), None, None), done])
    assert [(row.target, row.note) for row in rows] == [("done", ""), ("a", "not measured"), ("b", "not measured")]
    assert rows[0].recoverable_us == 0
    assert (rows[1].time_us, rows[1].floor_us, rows[1].recoverable_us) == (None, None, None)
    assert not rows[1].measured


def test_a_profile_at_another_shape_does_not_stand_for_a_decode_step() -> None:
    (row,) = headroom([(target(), profile(shape="t64"), None)])
    assert not row.measured
    assert row.note == "not measured at t4096, only at t64"


def test_a_frozen_region_keeps_its_rank_and_carries_the_reason() -> None:
    at = {"shape": "t4096", "floor_us": 10.0}
    frozen = (target(name="frozen"), profile(time_us=90.0, **at), "shipped in March")
    rows = headroom([(target(name="open"), profile(time_us=50.0, **at), None), frozen])
    assert [(row.target, row.frozen) for row in rows] == [("frozen", "shipped in March"), ("open", None)]
