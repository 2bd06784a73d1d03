"""torch.profiler's traces: which events count, what they tell, and what they do not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from profile_samples import TRACE, load

from kernelgen.errors import ProfileError
from kernelgen.profile.importer import ESTIMATE

DEVICES = [{"id": 0, "name": "NVIDIA H200", "computeMajor": 9, "computeMinor": 0}]


def kernel(name: str = "k", dur: Any = 12.5, **args: Any) -> dict[str, Any]:
    given = {"device": 0, "stream": 7, "grid": [64, 1, 1], "block": [128, 1, 1]} | args
    return {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": 1.5, "dur": dur, "args": given}


def trace(tmp_path: Path, *events: Any, **members: Any) -> Path:
    path = tmp_path / "p.json"
    path.write_text(json.dumps({"deviceProperties": DEVICES, "traceEvents": list(events)} | members), encoding="utf-8")
    return path


def test_the_real_trace_gives_each_region_by_regex() -> None:
    whole, _ = load(TRACE)
    assert (len(whole.launches), whole.time_us) == (43, pytest.approx(2249.307))
    assert whole.device == "NVIDIA H200"
    sort, _ = load(TRACE, kernels="DeviceRadixSort")
    assert (len(sort.launches), sort.time_us) == (10, pytest.approx(51.648, abs=0.1))
    assert sort.subject.startswith("eager PyTorch: 10 launches, the longest ")
    gather, _ = load(TRACE, kernels="vectorized_gather_kernel")
    assert (gather.launches[0].grid, gather.launches[0].block) == ("(32768, 4, 1)", "(256, 1, 1)")


def test_a_trace_has_no_counters_so_dram_and_sm_are_not_measured() -> None:
    profile, _ = load(TRACE)
    assert (profile.dram_bytes, profile.dram_percent, profile.sm_percent) == (None, None, None)
    assert all(launch.dram_bytes is None for launch in profile.launches)
    assert "no counter says why" in profile.limiting_factor.sentence
    assert "DRAM throughput, counting only the bytes needed: 0.4% of 4.30 TB/s now" in profile.target_metric


def test_occupancy_is_an_estimate_and_says_so(tmp_path: Path) -> None:
    estimated = {"est. achieved occupancy %": 73}
    profile, raw = load(trace(tmp_path, kernel(**estimated)))
    assert profile.occupancy_percent == 73
    assert profile.limiting_factor.sentence.endswith(f"; {ESTIMATE}")
    assert profile.limiting_factor.name != "occupancy"
    assert json.loads(raw)["metrics"]["est. achieved occupancy %"] == {"unit": "%", "values": ["73"]}


def test_an_estimate_of_zero_is_none_and_not_an_occupancy_of_zero(tmp_path: Path) -> None:
    profile, _ = load(trace(tmp_path, kernel(**{"est. achieved occupancy %": 0})))
    assert profile.occupancy_percent is None
    assert ESTIMATE not in profile.limiting_factor.sentence


def test_older_traces_write_the_category_with_a_capital(tmp_path: Path) -> None:
    older = kernel(dur=9) | {"cat": "Kernel"}
    older["args"] = {"device": 0, "External id": 3}
    profile, _ = load(trace(tmp_path, older))
    assert profile.time_us == 9
    assert (profile.launches[0].grid, profile.launches[0].block) == ("", "")


def test_only_kernels_count_and_neither_copies_nor_host_events(tmp_path: Path) -> None:
    others = [
        kernel() | {"cat": category, "name": category}
        for category in ("gpu_memcpy", "gpu_memset", "cpu_op", "cuda_runtime", "user_annotation", "ac2g")
    ]
    flow = {"ph": "f", "cat": "kernel", "name": "flow", "id": 1}
    profile, _ = load(trace(tmp_path, *others, flow, {"ph": "M", "name": "process_name"}, "text", 3, kernel("mine")))
    assert [launch.name for launch in profile.launches] == ["mine"]


def test_devices_listed_after_the_events_are_found_too(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    path.write_text(json.dumps({"traceEvents": [kernel()], "deviceProperties": DEVICES}), encoding="utf-8")
    assert load(path)[0].device == "NVIDIA H200"
    path.write_text(json.dumps({"traceEvents": [kernel()], "deviceProperties": "none"}), encoding="utf-8")
    assert load(path)[0].device == ""


def test_names_that_json_can_hold_and_utf8_cannot_are_stored(tmp_path: Path) -> None:
    profile, raw = load(trace(tmp_path, kernel("k\ud800", note="\udfff", big=10**400, odd=float("nan"))))
    assert profile.launches[0].name == "k?"
    assert raw.encode("utf-8")


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (kernel(dur=None), r"^p\.json:1: kernel event 'k' has no dur; record it again"),
        (kernel(dur="12"), r"^p\.json:1: kernel event 'k' has no dur"),
        (kernel(dur=True), r"^p\.json:1: kernel event 'k' has no dur"),
        (kernel(dur=-4.0), r"^p\.json:1: dur reads -4 us, which no GPU shows"),
        (kernel(dur=1e30), r"^p\.json:1: dur reads 1e\+30 us, which no GPU shows"),
        (kernel(name=""), r"^p\.json:1: a kernel event has no name"),
        (kernel() | {"cat": ["kernel"]}, r"^p\.json holds no GPU kernels; .*ProfilerActivity\.CUDA"),
    ],
)
def test_a_broken_event_ends_in_one_sentence(tmp_path: Path, event: dict[str, Any], message: str) -> None:
    with pytest.raises(ProfileError, match=message):
        load(trace(tmp_path, event))


def test_a_trace_without_a_gpu_says_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match=r"^p\.json holds no GPU kernels; profile with ProfilerActivity\.CUDA"):
        load(trace(tmp_path))
