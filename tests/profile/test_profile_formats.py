"""The contract of a profile format: a new importer adds a sample here and inherits the tests."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from profile_samples import MLA_DETAILS, MLA_RAW, load

from kernelgen.profile import formats
from kernelgen.profile.formats import FORMATS
from kernelgen.profile.table import raw_text
from kernelgen.profile.textfile import head

SAMPLES = {"ncu raw csv": MLA_RAW, "ncu details csv": MLA_DETAILS}


def test_every_format_has_a_sample() -> None:
    assert set(SAMPLES) == {known.name for known in FORMATS}


@pytest.mark.parametrize("name", SAMPLES)
def test_exactly_one_format_claims_a_file_whatever_it_is_called(name: str, tmp_path: Path) -> None:
    start = head(SAMPLES[name])
    assert [known.name for known in FORMATS if known.sniff(start)] == [name]
    renamed = tmp_path / "profile.txt"
    renamed.write_bytes(SAMPLES[name].read_bytes())
    assert formats.read(renamed).format == name


@pytest.mark.parametrize("name", SAMPLES)
def test_a_table_holds_launches_with_names_texts_and_finite_numbers(name: str) -> None:
    table = formats.read(SAMPLES[name])
    assert table.launches
    for launch in table.launches:
        assert launch.name
        assert launch.line > 0
        for metric in launch.metrics.values():
            assert metric.number is None or math.isfinite(metric.number)


@pytest.mark.parametrize("name", SAMPLES)
def test_an_import_is_the_same_every_time_but_for_its_id(name: str) -> None:
    first, first_raw = load(SAMPLES[name])
    second, second_raw = load(SAMPLES[name])
    assert first_raw == second_raw == raw_text(formats.read(SAMPLES[name]))
    assert first.id != second.id
    assert first.model_copy(update={"id": second.id}) == second
    assert first.format == name


def test_no_format_claims_what_is_none() -> None:
    for start in ("", "ID of the run", '"ID","Name"', "ID,My Kernel Name\n", "{}"):
        assert not any(known.sniff(start) for known in FORMATS)
