"""The floor, the class of the bottleneck, the metric that says so, and the goal."""

from __future__ import annotations

from pathlib import Path

import pytest
from profile_samples import DRAM, SM, TIME, Metrics, load, metrics, raw_csv

from kernelgen.errors import ProfileError
from kernelgen.records import Profile
from tests.factories import hardware

STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"


def profile_of(tmp_path: Path, *launches: Metrics, **changes: object) -> Profile:
    path = tmp_path / "p.csv"
    path.write_text(raw_csv(*((f"kernel_{i}", one) for i, one in enumerate(launches))), encoding="utf-8")
    return load(path, **changes)[0]


def moved(dram_share: float, time_ns: str = "100,000") -> dict[str, tuple[str, str]]:
    """Bytes that make a share of the sample's 4.3 TB/s in 100 us."""
    return {"dram__bytes_read.sum": ("byte", f"{dram_share * 4.3e8:.0f}"), TIME: ("ns", time_ns)}


@pytest.mark.parametrize(
    ("flops", "floor_bytes", "floor_us", "floor_by"),
    [(1e9, 43e6, 10.0, "dram bytes"), (7.9e10, 43e6, 100.0, "flops"), (1.0, 8.6, 2.0, "launch")],
)
def test_the_floor_is_the_largest_of_bytes_flops_and_launch(
    tmp_path: Path, flops: float, floor_bytes: float, floor_us: float, floor_by: str
) -> None:
    profile = profile_of(tmp_path, metrics("200,000.0"), flops=flops, floor_bytes=floor_bytes)
    assert (profile.floor_us, profile.floor_by) == (pytest.approx(floor_us), floor_by)
    assert profile.intensity == flops / floor_bytes
    assert profile.ridge == pytest.approx(790e12 / 4.3e12)


def test_the_peak_is_bf16_unless_fp8_is_named(tmp_path: Path) -> None:
    profile = profile_of(tmp_path, metrics("200,000.0"), flops=1.5e11, peak="fp8")
    assert profile.floor_us == pytest.approx(100)
    with pytest.raises(ProfileError, match="hardware h200 has no fp8 peak"):
        profile_of(tmp_path, metrics(), peak="fp8", hardware=hardware(fp8_flops_per_s=None))


@pytest.mark.parametrize(
    ("dram", "sm", "bottleneck", "factor", "metric"),
    [
        (0.80, "30.00", "memory_bound", "DRAM bandwidth", DRAM),
        (0.30, "80.00", "compute_bound", "SM throughput", SM),
        (0.96, "30.00", "at_roofline", "DRAM bandwidth", DRAM),
        (0.30, "95.00", "at_roofline", "SM throughput", SM),
        (0.61, "30.00", "memory_bound", "DRAM bandwidth", DRAM),
        (0.59, "59.00", "underutilised", "occupancy", "sm__warps_active.avg.pct_of_peak_sustained_active"),
    ],
)
def test_the_busier_unit_decides_the_class(
    tmp_path: Path, dram: float, sm: str, bottleneck: str, factor: str, metric: str
) -> None:
    profile = profile_of(tmp_path, metrics(sm=sm, dram="50.00") | moved(dram))
    assert profile.dram_percent == pytest.approx(100 * dram, rel=1e-3)
    assert profile.bottleneck == bottleneck
    assert (profile.limiting_factor.name, profile.limiting_factor.metric) == (factor, metric)
    assert metric in profile.limiting_factor.sentence


def test_a_region_that_takes_its_floor_is_at_the_roofline(tmp_path: Path) -> None:
    profile = profile_of(tmp_path, {TIME: ("us", "10.40")})
    assert profile.floor_us / profile.time_us > 0.95
    assert profile.bottleneck == "at_roofline"


def test_short_launches_that_hold_half_the_time_make_a_region_latency_bound(tmp_path: Path) -> None:
    short, long = metrics("9,000.0", dram="1.00"), metrics("26,000.0", dram="1.00")
    quiet = {"dram__bytes_read.sum": ("byte", "1,000,000")}
    profile = profile_of(tmp_path, *[short | quiet] * 3, long | quiet)
    assert profile.bottleneck == "latency_bound"
    factor = profile.limiting_factor
    assert (factor.name, factor.metric, factor.value, factor.unit) == ("launch count", TIME, 26000, "ns")
    assert factor.sentence.startswith("4 launches take 53.0 us; the longest, kernel_3, takes 49% of it; 3 of them, 51%")
    assert "launches: 4 now, goal 1" in profile.target_metric
    profile = profile_of(tmp_path, *[short | quiet] * 2, long | quiet)
    assert profile.bottleneck == "underutilised"


def test_one_short_kernel_is_latency_bound_and_a_busy_one_is_not(tmp_path: Path) -> None:
    quiet = {"dram__bytes_read.sum": ("byte", "1,000,000")}
    profile = profile_of(tmp_path, metrics("4,000.0") | quiet, floor_bytes=1e3, flops=1.0)
    assert (profile.bottleneck, profile.limiting_factor.name) == ("latency_bound", "launch latency")
    profile = profile_of(tmp_path, metrics("4,000.0", sm="70.00") | quiet, floor_bytes=1e3, flops=1.0)
    assert profile.bottleneck == "compute_bound"


def test_an_idle_kernel_names_its_top_stall_with_its_share(tmp_path: Path) -> None:
    stalls = {
        STALL.format("long_scoreboard"): ("inst", "6.00"),
        STALL.format("not_selected"): ("inst", "7.00"),
        STALL.format("selected"): ("inst", "1.00"),
        STALL.format("wait"): ("inst", "2.00"),
    }
    profile = profile_of(tmp_path, metrics() | moved(0.2) | stalls)
    factor = profile.limiting_factor
    assert profile.bottleneck == "underutilised"
    assert (factor.name, factor.metric) == ("long scoreboard stalls", STALL.format("long_scoreboard"))
    assert (factor.value, factor.unit) == (6, "inst")
    assert "wait for data from global or local memory for 38% of their time" in factor.sentence  # 6 of 16


@pytest.mark.parametrize(
    ("name", "reason"),
    [("smsp__average_warps_issue_stalled_barrier_per_warp_active.pct", "barrier stalls"),
     ("smsp__pcsamp_warps_issue_stalled_warpgroup_arrive", "warpgroup arrive stalls")],
)  # fmt: skip
def test_older_and_sampled_stall_names_are_understood(tmp_path: Path, name: str, reason: str) -> None:
    extra = {name: ("", "12.5"), "smsp__pcsamp_warps_issue_stalled_wait_not_issued": ("warp", "99")}
    assert profile_of(tmp_path, metrics() | moved(0.2) | extra).limiting_factor.name == reason


def test_the_goal_is_fewer_bytes_where_more_than_needed_are_moved(tmp_path: Path) -> None:
    profile = profile_of(tmp_path, metrics() | moved(0.80))
    assert profile.target_metric == (
        "time: 100.0 us now, the floor is 10.0 us (by dram bytes); DRAM traffic: 344.00 MB now, 43.00 MB needed"
    )
    profile = profile_of(tmp_path, metrics() | moved(0.80), floor_bytes=3.4e8)
    assert profile.target_metric.endswith("DRAM throughput: 80.0% of 4.30 TB/s now, goal 95%")


def test_a_compute_bound_region_is_told_its_arithmetic(tmp_path: Path) -> None:
    profile = profile_of(tmp_path, metrics(sm="80.00") | moved(0.2), flops=2e10)
    assert profile.target_metric.endswith("useful arithmetic: 200.0 TFLOP/s now, the ceiling is 790 TFLOP/s")


def test_without_counters_the_time_against_the_floor_is_all_that_is_said(tmp_path: Path) -> None:
    profile = profile_of(tmp_path, {TIME: ("us", "50.00")})
    assert (profile.dram_percent, profile.sm_percent, profile.occupancy_percent) == (None, None, None)
    assert profile.bottleneck == "underutilised"
    assert profile.limiting_factor.name == "time"
    assert "5.0 times the floor, and no counter says why" in profile.limiting_factor.sentence


def test_a_region_full_of_bytes_has_a_witness_without_a_percentage(tmp_path: Path) -> None:
    profile = profile_of(tmp_path, moved(0.8, "100,000.0") | {"dram__bytes_write.sum": ("byte", "0")})
    assert (profile.bottleneck, profile.limiting_factor.name) == ("memory_bound", "DRAM bandwidth")
    assert (profile.limiting_factor.metric, profile.limiting_factor.value) == ("dram__bytes_read.sum", 344e6)
    assert "with bytes read from DRAM at 3.44e+08 byte" in profile.limiting_factor.sentence


def test_an_average_needs_figures_for_nearly_all_of_the_time(tmp_path: Path) -> None:
    lacking = metrics("20,000.0", sm="n/a")
    assert profile_of(tmp_path, metrics("90,000.0", sm="30.00"), lacking).sm_percent is None
    assert profile_of(tmp_path, metrics("990,000.0", sm="30.00"), lacking).sm_percent == pytest.approx(30)
    gone = lacking | {"dram__bytes_read.sum": ("byte", "n/a")}
    assert profile_of(tmp_path, metrics("990,000.0"), gone).dram_bytes is None


def test_dram_share_without_bytes_is_put_on_the_measured_ceiling(tmp_path: Path) -> None:
    profile = profile_of(tmp_path, {TIME: ("us", "50.00"), DRAM: ("%", "40.00")})
    assert profile.dram_percent == pytest.approx(40 * 4.8 / 4.3)


def test_a_persistent_kernel_is_not_blamed_for_its_occupancy(tmp_path: Path) -> None:
    one_block_an_sm = {"launch__grid_size": ("", "132")}
    profile = profile_of(tmp_path, metrics(occupancy="12.50") | moved(0.2) | one_block_an_sm)
    assert profile.bottleneck == "underutilised"
    assert profile.limiting_factor.name == "time"
    profile = profile_of(tmp_path, metrics(occupancy="12.50") | moved(0.2) | {"launch__grid_size": ("", "133")})
    assert profile.limiting_factor.name == "occupancy"
