"""One call of a champion on an H200, recorded in every format: what each file says of it agrees with the others."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest
from profile_samples import EXAMPLES, load

from kernelgen.records import Profile

NAME = "champion_t64"
KERNELS = {"gate_kernel", "count_kernel", "scan_kernel", "scatter_kernel", "gather_kernel"}
COUNTERS = (".ncu-rep", ".ncu_raw.csv")
CLOCKS = (".torch_trace.json", ".hatchet")


def recorded(suffix: str, folder: Path) -> Profile:
    """The profile of one file, unpacked where it is kept packed."""
    path = EXAMPLES / f"{NAME}{suffix}"
    if not path.exists():
        packed = path.with_name(f"{path.name}.xz")
        path = folder / path.name
        path.write_bytes(lzma.decompress(packed.read_bytes()))
    return load(path)[0]


def names(profile: Profile) -> set[str]:
    return {launch.name.split("(")[0] for launch in profile.launches}


@pytest.mark.parametrize("suffix", [*COUNTERS, *CLOCKS])
def test_every_format_has_the_five_kernels_once(suffix: str, tmp_path: Path) -> None:
    if suffix == ".ncu-rep":
        pytest.importorskip("ncu_report")
    profile = recorded(suffix, tmp_path)
    assert names(profile) == KERNELS
    assert len(profile.launches) == len(KERNELS)
    assert 10 < profile.time_us < 40


def test_the_report_gives_the_figures_of_its_raw_page(tmp_path: Path) -> None:
    pytest.importorskip("ncu_report")
    report, page = (recorded(suffix, tmp_path) for suffix in COUNTERS)
    weighted = {"sm_percent", "occupancy_percent"}  # by the launches' times, which the page rounds to nanoseconds
    own = {"id", "source_file", "source_digest", "format", "raw"} | weighted
    assert report.model_dump(exclude=own) == page.model_dump(exclude=own)
    for name in weighted:
        assert getattr(report, name) == pytest.approx(getattr(page, name), rel=1e-3)


def test_proton_and_torch_time_the_same_kernels_alike(tmp_path: Path) -> None:
    trace, hatchet = (recorded(suffix, tmp_path) for suffix in CLOCKS)
    assert hatchet.time_us == pytest.approx(trace.time_us, rel=0.1)
