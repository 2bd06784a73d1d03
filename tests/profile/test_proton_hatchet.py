"""Proton's hatchet files: which frames are kernels, what a launch takes, and what is no counter."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from profile_samples import HATCHET, TRACE, load

from kernelgen.errors import ProfileError
from kernelgen.profile import proton

DEVICES = {"CUDA": {"0": {"arch": "90", "bus_width": 6144, "num_sms": 132}}}


def frame(name: str, *children: Any, **metrics: Any) -> dict[str, Any]:
    return {"children": list(children), "frame": {"name": name, "type": "function"}, "metrics": metrics}


def kernel(name: str, time_ns: Any = 5000, count: Any = 1, **more: Any) -> dict[str, Any]:
    return frame(name, **{"count": count, "device_id": "0", "device_type": "CUDA", "time (ns)": time_ns} | more)


def hatchet(tmp_path: Path, *children: Any, devices: Any = DEVICES) -> Path:
    path = tmp_path / "p.hatchet"
    root = frame("ROOT", *children, **{"count": 0, "time (ns)": 0})
    path.write_text(json.dumps([root, devices], indent=4), encoding="utf-8")
    return path


def test_the_sample_gives_the_figures_of_the_trace_it_was_made_from() -> None:
    made, trace = load(HATCHET)[0], load(TRACE)[0]
    assert len(made.launches) == len(trace.launches)
    assert made.time_us == pytest.approx(trace.time_us, abs=0.1)


def test_launches_of_one_kernel_are_given_their_mean(tmp_path: Path) -> None:
    profile, raw = load(hatchet(tmp_path, frame("step", kernel("a", 9000, 3), kernel("b", 20000))))
    assert [(launch.name, launch.time_us) for launch in profile.launches] == [("a", 3), ("a", 3), ("a", 3), ("b", 20)]
    assert profile.time_us == pytest.approx(29)
    kept = json.loads(raw)["metrics"]
    assert kept["time (ns)"] == {"unit": "ns", "values": ["9000", "9000", "9000", "20000"]}
    assert kept["count"]["values"] == ["3", "3", "3", "1"]


def test_protons_own_bookkeeping_and_frames_without_launches_are_left_out(tmp_path: Path) -> None:
    own = frame("__proton_launch_metadata", kernel("cuda_kernel", 4064))
    profile, _ = load(hatchet(tmp_path, frame("scope", own, kernel("mine"), kernel("never", 0, 0)), frame("empty")))
    assert [launch.name for launch in profile.launches] == ["mine"]


def test_what_the_program_says_of_its_bytes_is_kept_and_is_no_counter(tmp_path: Path) -> None:
    profile, raw = load(hatchet(tmp_path, kernel("a", bytes=2e9, flops16=1e12, note=[1, 2])))
    assert (profile.dram_bytes, profile.dram_percent, profile.occupancy_percent) == (None, None, None)
    assert json.loads(raw)["metrics"]["bytes"]["values"] == ["2000000000.0"]


@pytest.mark.parametrize(("arch", "capability"), [("90", "9.0"), ("100", "10.0"), ("", ""), ("sm90", ""), (90, "9.0")])
def test_the_device_table_tells_the_compute_capability(tmp_path: Path, arch: Any, capability: str) -> None:
    path = hatchet(tmp_path, kernel("a"), devices={"CUDA": {"0": {"arch": arch}}})
    assert proton.read_hatchet(path).launches[0].capability == capability


@pytest.mark.parametrize(
    ("children", "message"),
    [
        ([], r"^p\.hatchet holds no GPU kernels; profile again with triton\.profiler"),
        ([frame("k", cycles=9, normalized_cycles=1.5)], r"^p\.hatchet holds cycles inside kernels and no times"),
        ([kernel("k", device_type="HIP")], r"^p\.hatchet was taken on HIP; kernelgen reads profiles of NVIDIA GPUs"),
        ([kernel("k", "5")], r"^p\.hatchet:2: launch 'k' has no duration"),
        ([kernel("k", -5)], r"^p\.hatchet:2: time \(ns\) / count reads -5 ns, which no GPU shows"),
        ([kernel("k", count=10**9)], r"^p\.hatchet holds over 100000 launches, so more than one call"),
        ([{"frame": {"name": 3}}], r"^p\.hatchet has a frame without name, metrics or children"),
        (["text"], r"^p\.hatchet has a frame without name, metrics or children"),
    ],
)
def test_what_cannot_be_a_region_ends_in_one_sentence(tmp_path: Path, children: list[Any], message: str) -> None:
    with pytest.raises(ProfileError, match=message):
        load(hatchet(tmp_path, *children))


def test_a_tree_deeper_than_python_reads_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "p.hatchet"
    path.write_text('[{"frame": {"name": "x"}, "metrics": {}, "children": ' + "[" * 200_000, encoding="utf-8")
    with pytest.raises(ProfileError, match=r"^p\.hatchet cannot be read as JSON"):
        load(path)
