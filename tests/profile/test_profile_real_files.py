"""The real exports: figures read from them by hand, and two pages of one report that agree."""

from __future__ import annotations

import csv
import json

import pytest
from profile_samples import MLA_DETAILS, MLA_RAW, MOE_RAW, load

from kernelgen.ids import digest_bytes, digest_text
from kernelgen.profile import formats
from kernelgen.profile.stalls import top_stall
from kernelgen.profile.table import short_name

# gpu__time_duration.sum in ns, column by column as the file has them
MOE_NS = [
    5504, 85632, 7840, 2400, 4384, 2304, 10336, 8864, 6848, 7168, 7072, 7296, 7104, 7232, 10528, 10400, 1728,
    5152, 1920, 3104, 3712, 191776,
]  # fmt: skip
MLA_NS = [447360, 86688, 48672, 32512, 54752, 23232, 72160]
MLA_READ = [151032576, 306883072, 33588736, 67117312, 67125504, 67116032, 302017536]
MLA_WRITTEN = [278687488, 28283392, 42345984, 43388416, 46871552, 18164992, 3312896]
MLA_SM = [72.08, 23.74, 53.21, 6.58, 69.92, 8.75, 25.55]
MLA_OCCUPANCY = [93.83, 14.64, 90.77, 82.45, 93.34, 80.31, 14.04]


def test_the_moe_report_sums_its_22_launches_and_names_the_gather() -> None:
    profile, _ = load(MOE_RAW)
    assert [round(launch.time_us * 1000) for launch in profile.launches] == MOE_NS
    assert profile.time_us == pytest.approx(398.304)
    assert profile.dram_bytes == 616822528
    assert profile.dominant == 21
    assert short_name(profile.launches[21].name) == "vectorized_gather_kernel"
    assert (profile.launches[21].grid, profile.launches[21].block) == ("(32768, 4, 1)", "(256, 1, 1)")
    assert profile.subject == "eager PyTorch: 22 launches, the longest vectorized_gather_kernel"
    assert profile.subject_source_digest is None
    assert profile.device == "NVIDIA H200"
    assert profile.dram_percent == pytest.approx(100 * 616822528 / 398.304e-6 / 4.3e12)
    assert profile.bottleneck == "underutilised"
    assert "22 launches" in profile.limiting_factor.sentence
    assert (profile.limiting_factor.value, profile.limiting_factor.unit) == (64.78, "%")
    assert profile.source_digest == digest_bytes(MOE_RAW.read_bytes())


def test_the_mla_report_weights_its_percentages_by_time() -> None:
    profile, _ = load(MLA_RAW, subject="reads 576-byte rows with 64 heads")
    total = sum(MLA_NS)
    assert profile.time_us == pytest.approx(total / 1000)
    assert profile.dram_bytes == sum(MLA_READ) + sum(MLA_WRITTEN)
    assert profile.sm_percent == pytest.approx(sum(t * p for t, p in zip(MLA_NS, MLA_SM, strict=True)) / total)
    weighted = sum(t * p for t, p in zip(MLA_NS, MLA_OCCUPANCY, strict=True)) / total
    assert profile.occupancy_percent == pytest.approx(weighted)
    assert profile.subject == (
        "eager PyTorch: 7 launches, the longest unrolled_elementwise_kernel; reads 576-byte rows with 64 heads"
    )
    assert profile.limiting_factor.metric == "sm__throughput.avg.pct_of_peak_sustained_elapsed"
    assert profile.limiting_factor.value == 72.08


def test_both_pages_of_one_report_give_the_same_figures_within_rounding() -> None:
    raw, _ = load(MLA_RAW)
    details, _ = load(MLA_DETAILS)
    assert (raw.format, details.format) == ("ncu raw csv", "ncu details csv")
    assert [launch.name for launch in details.launches] == [launch.name for launch in raw.launches]
    assert [launch.grid for launch in details.launches] == [launch.grid for launch in raw.launches]
    # a details page rounds to two decimals of a varying unit
    for one, other in zip(raw.launches, details.launches, strict=True):
        assert other.time_us == pytest.approx(one.time_us, rel=2e-3)
        assert other.dram_bytes == pytest.approx(one.dram_bytes, rel=4e-3)
    assert details.time_us == pytest.approx(raw.time_us, rel=1e-4)
    assert details.dram_bytes == pytest.approx(raw.dram_bytes, rel=1e-3)
    for field in ("dram_percent", "sm_percent", "occupancy_percent"):
        assert getattr(details, field) == pytest.approx(getattr(raw, field), rel=1e-3)
    assert (details.bottleneck, details.dominant) == (raw.bottleneck, raw.dominant)
    assert details.limiting_factor.value == raw.limiting_factor.value


def test_the_raw_text_keeps_every_name_unit_and_value_of_every_launch() -> None:
    profile, raw = load(MLA_RAW)
    assert profile.raw == digest_text(raw)
    kept = json.loads(raw)
    header, units, *rows = csv.reader(MLA_RAW.read_text(encoding="utf-8").splitlines())
    for column, (name, unit) in enumerate(zip(header, units, strict=True)):
        if column >= len(header) - len(kept["metrics"]):
            assert kept["metrics"][name] == {"unit": unit, "values": [row[column] for row in rows]}
    assert len(kept["metrics"]) == len(header) - 11
    assert [launch["name"] for launch in kept["launches"]] == [row[4] for row in rows]


def test_the_raw_text_keeps_a_unit_for_each_launch_where_they_differ() -> None:
    _, raw = load(MLA_DETAILS)
    kept = json.loads(raw)["metrics"]["Memory Workload Analysis: Memory Throughput"]
    assert kept["values"] == ["960.57", "3.87", "1.56", "3.40", "2.08", "3.67", "4.23"]
    assert kept["unit"] == ["Gbyte/s"] + ["Tbyte/s"] * 6


def test_a_regex_narrows_the_region_but_not_the_raw_text() -> None:
    whole, whole_raw = load(MLA_RAW)
    narrowed, raw = load(MLA_RAW, kernels="^nvjet_.*NNT$")
    assert [launch.name for launch in narrowed.launches] == ["nvjet_sm90_tst_256x64_64x5_2x1_v_bz_NNT"]
    assert narrowed.time_us == pytest.approx(72.16)
    assert narrowed.bottleneck == "at_roofline"  # 4.23 TB/s of the sample hardware's 4.3
    assert narrowed.subject == "cuBLAS: 1 launch, the longest nvjet_sm90_tst_256x64_64x5_2x1_v_bz_NNT"
    assert raw == whole_raw
    assert narrowed.raw == whole.raw


def test_both_pages_name_the_same_top_stall() -> None:
    """The details page has no stall metric, only the text of a rule."""
    by_metric = top_stall(formats.read(MLA_RAW).launches[1])
    by_rule = top_stall(formats.read(MLA_DETAILS).launches[1])
    assert by_metric is not None
    assert by_rule is not None
    assert by_metric.metric == "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio"
    assert (by_metric.value, by_rule.value) == (53.54, 53.5)
    assert by_rule.share_percent == pytest.approx(by_metric.share_percent, abs=0.1)
    assert by_rule.waiting.startswith("wait for a scoreboard dependency on a L1TEX")
