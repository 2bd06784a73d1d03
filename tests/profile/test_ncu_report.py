"""Nsight Compute's own reports, through its package or, where that is missing, not without saying how."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from ncu_report_fake import REPORT_BYTES, fake_module
from profile_samples import MLA_RAW, load

from kernelgen.errors import ProfileError


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setitem(sys.modules, "ncu_report", fake_module(MLA_RAW))
    path = tmp_path / "p.ncu-rep"
    path.write_bytes(REPORT_BYTES)
    return path


def test_a_report_gives_what_the_raw_page_of_it_gives(report: Path) -> None:
    from_report, _ = load(report)
    from_page, _ = load(MLA_RAW)
    assert from_report.format == "ncu report"
    assert from_report.launches == from_page.launches
    own = {"id", "source_file", "source_digest", "format", "raw"}
    assert from_report.model_dump(exclude=own) == from_page.model_dump(exclude=own)


def test_a_missing_package_is_named_with_the_install_line_and_the_way_around(
    report: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ncu_report", None)
    with pytest.raises(ProfileError, match=r"^p\.ncu-rep .*pip install 'kernelgen\[ncu\]', or export it with ncu --im"):
        load(report)


def test_a_damaged_report_reads_as_empty_and_is_refused(report: Path) -> None:
    """The package gives a context without ranges for it, not an error."""
    report.write_bytes(b"NVR\0 and then something else")
    with pytest.raises(ProfileError, match=r"^p\.ncu-rep has no kernel that ncu-report can read"):
        load(report)


def test_a_report_the_package_gives_up_on_is_refused_in_one_sentence(
    report: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(path: str) -> None:
        raise RuntimeError("unknown version\nof the report")

    monkeypatch.setitem(sys.modules, "ncu_report", SimpleNamespace(load_report=fails))
    with pytest.raises(ProfileError, match=r"^p\.ncu-rep cannot be read .*\(unknown version of the report\)"):
        load(report)


def test_a_report_packed_with_zstd_is_taken_for_one(report: Path) -> None:
    packed = report.with_suffix(".ncu-repz")
    packed.write_bytes(b"\x28\xb5\x2f\xfd\x04\x58\xa1")
    with pytest.raises(ProfileError, match=r"^p\.ncu-repz has no kernel that ncu-report can read"):
        load(packed)


def test_importing_the_profile_package_does_not_load_ncu_report() -> None:
    code = "import sys, kernelgen.profile.importer; assert 'ncu_report' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
