"""Whatever is wrong with a profile ends in one ProfileError that names the file, the line and the mend."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from profile_samples import HATCHET, MLA_DETAILS, TIME, TRACE, details_csv, load, metrics, raw_csv, target

from kernelgen.errors import ConfigError, ProfileError
from kernelgen.ids import digest_text
from kernelgen.records import to_text

GOOD = raw_csv(("gather_kernel", metrics()), ("void at::native::topk<float>(float *)", metrics("7,000.5")))
HEADER, UNITS, *LAUNCHES = GOOD.splitlines()
DETAILS = MLA_DETAILS.read_text(encoding="utf-8")
SMALL_TRACE = TRACE.read_bytes()[:5000] + b', "args": {}}]}'
TREE = HATCHET.read_bytes()
SHORT = details_csv((0, "k", "GPU Speed Of Light Throughput", "Duration", "us", "5.50"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"^p\.csv is empty"),
        (b" \n\n", r"^p\.csv is empty"),
        (b"\x7fELF\0\x01\x02\0\0", r"^p\.csv is a binary file; known formats are ncu raw csv, .*export it as one"),
        (b"a,b\n1,2\n", r"^p\.csv is not a profile of a known format \(ncu raw csv, ncu details csv, ncu report, "),
        (b'"#","Address","Source"\n"0","0x7f","MOV R1"\n', r"^p\.csv is not a profile of a known format"),
        (GOOD[:-20].encode(), r"^p\.csv:4: the line is cut or damaged .*export it again"),
        (GOOD[: GOOD.rindex(',"9.0"')].encode(), r"^p\.csv:4: the row has 10 fields where the table has 17"),
        (GOOD.encode() + b'"2","77"\n', r"^p\.csv:5: the row has 2 fields where the table has 17"),
        (GOOD.encode() + GOOD.encode(), r"^p\.csv:5: a second table begins; give one export a file"),
        (HEADER.encode(), r"^p\.csv:1: the row of units .* is missing"),
        ("\n".join([HEADER, *LAUNCHES]).encode(), r"^p\.csv:2: the row of units .* is missing"),
        ("\n".join([HEADER, UNITS]).encode(), r"^p\.csv holds a header but no launches"),
        (GOOD.encode().replace(b"gather", b"g\xff\xfe"), r"^p\.csv:.* is not UTF-8 text"),
        (GOOD.encode().replace(b"gather", b"g\0"), r"^p\.csv:3: holds binary data"),
        (GOOD.replace('"ns"', '"furlong"').encode(), rf"^p\.csv:3: {TIME} has the unit 'furlong', but time comes in"),
        (GOOD.replace("95,712", "-5.5").encode(), rf"^p\.csv:3: {TIME} reads -5\.5 ns, which no GPU shows"),
        (GOOD.replace("40.00", "4e9").encode(), r"^p\.csv:3: gpu__dram.* reads 4e\+09 %, which no GPU shows"),
        (GOOD.replace("95,712", "n/a").encode(), r"^p\.csv:3: launch 'gather_kernel' has no duration .*--set full"),
        (GOOD.replace("95,712", "0").replace("7,000.5", "0").encode(), r"^p\.csv: the chosen launches take no time"),
        (SHORT.replace("Metric Unit", "Unit").encode(), r"^p\.csv:1: the header lacks the column Metric Unit"),
    ],
)  # fmt: skip
def test_a_broken_file_ends_in_one_sentence(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "p.csv"
    path.write_bytes(content)
    with pytest.raises(ProfileError, match=message) as caught:
        load(path)
    assert "\n" not in str(caught.value)


def test_a_details_page_cut_inside_its_last_launch_is_found(tmp_path: Path) -> None:
    lines = DETAILS.splitlines(keepends=True)
    last = [index for index, line in enumerate(lines) if line.startswith('"6"')]
    path = tmp_path / "p.csv"
    for cut in (last[3] + 1, last[20] + 1):
        path.write_text("".join(lines[:cut]), encoding="utf-8")
        with pytest.raises(ProfileError, match=r"the last launch lacks the section .* cut short|has no duration"):
            load(path)
    path.write_text(DETAILS[:-30], encoding="utf-8")
    with pytest.raises(ProfileError, match=rf"^p\.csv:{len(lines)}: "):
        load(path)


def test_a_path_that_is_no_file_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.csv", tmp_path):
        with pytest.raises(ProfileError, match=rf"^{path.name} cannot be read \(.+\); give the path"):
            load(path)
    with pytest.raises(ProfileError, match="cannot be read"):
        load(Path("a\0b"))


def test_a_name_that_is_not_utf8_can_be_stored(tmp_path: Path) -> None:
    path = tmp_path / "p\udcff.csv"
    path.write_text(GOOD, encoding="utf-8")
    profile, _ = load(path)
    assert profile.source_file.encode("utf-8").decode("utf-8") == "p\ufffd.csv"


def test_what_was_asked_of_a_good_file_is_checked_too(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text(GOOD, encoding="utf-8")
    with pytest.raises(ProfileError, match=r"has no shape 't409'; did you mean 't4096'\?"):
        load(path, shape="t409")
    with pytest.raises(ProfileError, match=r"matches kernels='router'; its kernels are gather_kernel, topk$"):
        load(path, kernels="router")
    with pytest.raises(ProfileError, match=r"kernels='\(' is not a regular expression"):
        load(path, kernels="(")
    for changes in ({"floor_bytes": 0.0}, {"flops": float("nan")}, {"flops": -1.0}):
        with pytest.raises(ConfigError, match=r"at shape t4096; mend flops and bytes_moved in sample\.py"):
            load(path, **changes)
    assert load(path, shape="tiny", target=target())[0].dims == {"T": 3}


def test_a_profile_of_another_gpu_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text(raw_csv(("k", metrics()), capability="8.0"), encoding="utf-8")
    with pytest.raises(ProfileError, match=r"^p\.csv:3: was taken on compute capability 8\.0, .* h200 has 9\.0"):
        load(path)
    named = metrics() | {"device__attribute_display_name": ("", "NVIDIA H100 80GB HBM3")}
    path.write_text(raw_csv(("k", named)), encoding="utf-8")
    with pytest.raises(ProfileError, match=r"was taken on NVIDIA H100 .* h200 is NVIDIA H200 SXM"):
        load(path)


def mutated() -> st.SearchStrategy[bytes]:
    """Good files with a stretch cut out, doubled or overwritten, and plain noise."""
    base = st.sampled_from([GOOD.encode(), "".join(DETAILS.splitlines(keepends=True)[:60]).encode(), SMALL_TRACE, TREE])
    noise = st.binary(max_size=20) | st.text(max_size=20).map(lambda text: text.encode("utf-8", "surrogatepass"))
    number = st.sampled_from([b'"1e308"', b'"-1"', b'"nan"', b'"1.2.3"', b'"9,9,9"', b'""', b'"1e-320"'])

    def splice(content: bytes, start: float, length: int, piece: bytes) -> bytes:
        at = int(start * len(content))
        return content[:at] + piece + content[at + length :]

    spliced = st.builds(splice, base, st.floats(0, 1), st.integers(0, 400), noise | number)
    swapped = st.builds(
        lambda content, old, new: content.replace(old, new), base, st.sampled_from(WORTH_SWAPPING), number
    )
    return st.one_of(spliced, swapped, st.binary(max_size=200))


WORTH_SWAPPING = (b'"7,000.5"', b'"us"', b'"%"', b'"0"', b'"447.36"', b'"72.08"', b'"40.00"', b'"9.0"')


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(mutated(), st.one_of(st.none(), st.text(max_size=8)))
@example(GOOD.replace("95,712", "1e-320").encode(), None)
@example(GOOD.encode(), "[[a")
def test_no_content_and_no_regex_raise_anything_else(content: bytes, kernels: str | None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "p.csv"
        path.write_bytes(content)
        try:
            profile, raw = load(path, kernels=kernels)
        except ProfileError:
            return
        assert to_text(profile)
        assert profile.raw == digest_text(raw)
