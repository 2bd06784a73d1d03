"""The contract of a profile format: a new importer adds a sample to `Samples` and inherits the tests."""

from __future__ import annotations

import gzip
import math
import sys
from pathlib import Path

import pytest
from ncu_report_fake import REPORT_BYTES, fake_module
from profile_samples import HATCHET, MLA_DETAILS, MLA_RAW, TRACE, load

from kernelgen.errors import ProfileError
from kernelgen.ids import digest_bytes
from kernelgen.profile import formats
from kernelgen.profile.formats import FORMATS
from kernelgen.profile.listing import list_kernels
from kernelgen.profile.table import raw_text
from kernelgen.profile.textfile import head
from kernelgen.records import to_text

NAMES = tuple(known.name for known in FORMATS)
FILES = {
    "ncu raw csv": MLA_RAW,
    "ncu details csv": MLA_DETAILS,
    "torch.profiler trace": TRACE,
    "proton hatchet": HATCHET,
}


@pytest.fixture
def sample(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A whole file of the format that the test is parametrised with."""
    if request.param in FILES:
        return FILES[request.param]
    monkeypatch.setitem(sys.modules, "ncu_report", fake_module(MLA_RAW))
    path = tmp_path / "mla.ncu-rep"
    path.write_bytes(REPORT_BYTES)
    return path


every_format = pytest.mark.parametrize(("name", "sample"), [(name, name) for name in NAMES], indirect=["sample"])


@every_format
def test_exactly_one_format_claims_a_file_whatever_it_is_called(name: str, sample: Path, tmp_path: Path) -> None:
    start = head(sample)
    assert [known.name for known in FORMATS if known.sniff(start)] == [name]
    renamed = tmp_path / "profile.txt"
    renamed.write_bytes(sample.read_bytes())
    assert formats.read(renamed).format == name


@every_format
def test_a_table_holds_launches_with_names_texts_and_finite_numbers(name: str, sample: Path) -> None:
    table = formats.read(sample)
    assert table.launches
    for launch in table.launches:
        assert launch.name
        assert launch.line > 0
        assert launch.metrics
        for metric in launch.metrics.values():
            assert isinstance(metric.text, str)
            assert metric.number is None or math.isfinite(metric.number)


@every_format
def test_an_import_is_the_same_every_time_but_for_its_id(name: str, sample: Path) -> None:
    first, first_raw = load(sample)
    second, second_raw = load(sample)
    assert first_raw == second_raw == raw_text(formats.read(sample))
    assert first.id != second.id
    assert first.model_copy(update={"id": second.id}) == second
    assert first.format == name
    assert first.source_digest == digest_bytes(sample.read_bytes())
    assert to_text(first)


@every_format
def test_a_region_is_the_sum_of_its_launches_and_a_regex_narrows_it(name: str, sample: Path) -> None:
    profile, _ = load(sample)
    assert profile.time_us == pytest.approx(sum(launch.time_us for launch in profile.launches))
    narrowed, _ = load(sample, kernels="^nvjet_.*NNT$")
    assert 0 < len(narrowed.launches) < len(profile.launches)
    assert all(launch.name.startswith("nvjet_") for launch in narrowed.launches)


@every_format
def test_the_listing_names_every_kernel_with_its_launches_and_time(name: str, sample: Path) -> None:
    listing, (profile, _) = list_kernels(sample), load(sample)
    assert listing.format == name
    assert listing.launches == sum(row.launches for row in listing.kernels) == len(profile.launches)
    assert listing.time_us == pytest.approx(profile.time_us)
    assert {row.name for row in listing.kernels} == {launch.name for launch in profile.launches}
    assert [row.time_us for row in listing.kernels] == sorted((row.time_us for row in listing.kernels), reverse=True)
    assert sum(row.share_percent for row in listing.kernels) == pytest.approx(100)


@every_format
def test_a_profile_of_another_gpu_is_refused_where_the_file_tells(name: str, sample: Path) -> None:
    from tests.factories import hardware

    with pytest.raises(ProfileError, match=r"was taken on compute capability 9\.0"):
        load(sample, hardware=hardware(compute_capability=100))


@pytest.mark.parametrize("name", FILES)
def test_a_file_packed_with_gzip_is_read_as_it_is(name: str, tmp_path: Path) -> None:
    plain, _ = load(FILES[name])
    packed = tmp_path / "p.gz"
    packed.write_bytes(gzip.compress(FILES[name].read_bytes(), 1))
    profile, _ = load(packed)
    assert profile.launches == plain.launches
    packed.write_bytes(packed.read_bytes()[:-300])
    with pytest.raises(ProfileError, match=r"^p\.gz is cut or damaged \(.+\); copy the packed file again$"):
        load(packed)


@pytest.mark.parametrize("name", FILES)
def test_a_file_cut_in_the_middle_is_refused_in_one_sentence(name: str, tmp_path: Path) -> None:
    content = FILES[name].read_bytes()
    cut = tmp_path / "p.cut"
    cut.write_bytes(content[: len(content) * 2 // 3 + 7])
    with pytest.raises(ProfileError, match=r"^p\.cut:[0-9]+: ") as caught:
        load(cut)
    assert "\n" not in str(caught.value)


def test_no_format_claims_what_is_none() -> None:
    for start in ("", "ID of the run", '"ID","Name"', "ID,My Kernel Name\n", "{}", "[]", '["frame"]', '{"metrics": 1}'):
        assert not any(known.sniff(start) for known in FORMATS)
