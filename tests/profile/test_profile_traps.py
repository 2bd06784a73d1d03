"""What real exports contain besides a clean table, each in a small file of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from profile_samples import (
    DETAIL_COLUMNS,
    DRAM,
    IDENTITY,
    OCCUPANCY,
    READ,
    SM,
    TIME,
    WRITE,
    details_csv,
    identity,
    load,
    metrics,
    quoted,
    raw_csv,
)

from kernelgen.errors import ProfileError
from kernelgen.profile.formats import read

SOL = "GPU Speed Of Light Throughput"


def write(tmp_path: Path, text: str, name: str = "p.csv") -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def test_lines_around_the_table_are_passed_over(tmp_path: Path) -> None:
    table = raw_csv(("gather_kernel", metrics())).splitlines()
    before = ["loading 384 experts, ID 7", "==PROF== Connected to process 77", '"quoted words, from the program"']
    within = "==PROF== Disconnected from process 77"
    text = [*before, table[0], table[1], within, table[2], "done in 3.1 s, bye", ""]
    profile, _ = load(write(tmp_path, "\n".join(text)))
    assert profile.time_us == pytest.approx(95.712)
    assert profile.dram_bytes == 341204992


@pytest.mark.parametrize(
    ("unit", "text", "time_us"),
    [("ns", "95,712.00", 95.712), ("us", "95.71", 95.71), ("ms", "1.25", 1250), ("s", "0.01", 1e4),
     ("nsecond", "95,712.5", 95.7125), ("usecond", "7.84", 7.84), ("msecond", "0.50", 500), ("second", "1.5", 1.5e6)],
)  # fmt: skip
def test_time_comes_in_any_of_ncus_units(tmp_path: Path, unit: str, text: str, time_us: float) -> None:
    profile, _ = load(write(tmp_path, raw_csv(("k", metrics() | {TIME: (unit, text)}))))
    assert profile.time_us == pytest.approx(time_us)


@pytest.mark.parametrize(
    ("unit", "text", "count"),
    [("byte", "2,000", 2e3), ("Kbyte", "2.50", 2.5e3), ("Mbyte", "2,000.00", 2e9), ("Gbyte", "0.34", 3.4e8)],
)
def test_bytes_come_in_any_of_ncus_units(tmp_path: Path, unit: str, text: str, count: float) -> None:
    profile, _ = load(write(tmp_path, raw_csv(("k", metrics() | {READ: (unit, text)}))))
    assert profile.dram_bytes == pytest.approx(count)


def test_dram_bytes_follow_from_the_rate_where_no_sum_is_given(tmp_path: Path) -> None:
    rate = {TIME: ("us", "100.00"), "dram__bytes.sum.per_second": ("Gbyte/second", "1,500.00")}
    profile, _ = load(write(tmp_path, raw_csv(("k", rate))))
    assert profile.dram_bytes == pytest.approx(1.5e8)


def test_commas_as_decimal_marks_are_recognised_from_the_file(tmp_path: Path) -> None:
    german = {
        TIME: ("ns", "95.712"),
        READ: ("byte", "27.595.520"),
        WRITE: ("byte", "0"),
        DRAM: ("%", "65,77"),
        SM: ("%", "12,50"),
        OCCUPANCY: ("%", "1,5e+1"),
    }
    profile, _ = load(write(tmp_path, raw_csv(("k", german))))
    assert profile.time_us == pytest.approx(95.712)
    assert profile.dram_bytes == 27595520
    assert profile.sm_percent == 12.5
    assert profile.occupancy_percent == 15


def test_a_figure_that_reads_two_ways_is_refused_unless_another_tells(tmp_path: Path) -> None:
    lone = raw_csv(("k", {TIME: ("ns", "95,712"), READ: ("byte", "1"), WRITE: ("byte", "0")}))
    with pytest.raises(ProfileError, match=r"p\.csv:3: '95,712' is ambiguous"):
        load(write(tmp_path, lone))
    profile, _ = load(write(tmp_path, lone.replace('"1"', '"1,000,000"')))
    assert profile.time_us == pytest.approx(95.712)


def test_two_locales_in_one_file_are_refused(tmp_path: Path) -> None:
    mixed = raw_csv(("k", metrics() | {DRAM: ("%", "65,77")}))
    with pytest.raises(ProfileError, match=r"^p\.csv mixes two ways .* in line 3; export the whole"):
        load(write(tmp_path, mixed))


@pytest.mark.parametrize("absent", ["n/a", "", "nan", "no data", "inf"])
def test_a_figure_the_file_lacks_is_none_and_never_zero(tmp_path: Path, absent: str) -> None:
    lacking = metrics() | {READ: ("byte", absent), DRAM: ("%", absent), SM: ("%", absent), OCCUPANCY: ("%", absent)}
    profile, _ = load(write(tmp_path, raw_csv(("k", lacking | {"x__other.sum": ("inst", "1.50")}))))
    assert profile.dram_bytes is None
    assert profile.launches[0].dram_bytes is None
    assert (profile.dram_percent, profile.sm_percent, profile.occupancy_percent) == (None, None, None)


def test_a_collectors_copy_counts_only_where_the_metric_is_not_there_plainly(tmp_path: Path) -> None:
    copy = {f"FE_B.TriageCompute.{TIME}": ("us", "9.50"), f"TPC.TriageCompute.{SM}": ("%", "33.00")}
    profile, _ = load(write(tmp_path, raw_csv(("k", copy))))
    assert (profile.time_us, profile.sm_percent) == (9.5, 33)
    profile, _ = load(write(tmp_path, raw_csv(("k", copy | metrics("8,000", sm="11.00")))))
    assert (profile.time_us, profile.sm_percent) == (8, 11)


def test_signatures_with_commas_and_quotes_survive(tmp_path: Path) -> None:
    name = 'void ns::k<4, std::array<char *, 2>>(int, char const *, T1["x"], "a, b")'
    profile, _ = load(write(tmp_path, raw_csv((name, metrics()))))
    assert profile.launches[0].name == name
    assert profile.subject.endswith("the longest k")


def test_a_details_page_maps_display_names_and_tells_two_throughputs_apart(tmp_path: Path) -> None:
    text = details_csv(
        (0, "k", SOL, "Memory Throughput", "%", "27.33"),
        (0, "k", SOL, "DRAM Throughput", "%", "23.91"),
        (0, "k", SOL, "Duration", "us", "5.50"),
        (0, "k", SOL, "Compute (SM) Throughput", "%", "18.20"),
        (0, "k", "Memory Workload Analysis", "Memory Throughput", "Tbyte/s", "1.15"),
        (0, "k", "Launch Statistics", "Registers Per Thread", "register/thread", "32"),
        (0, "k", "Occupancy", "Achieved Occupancy", "%", "49.69"),
    )
    profile, raw = load(write(tmp_path, text))
    assert profile.time_us == 5.5
    assert profile.dram_bytes == pytest.approx(1.15e12 * 5.5e-6)
    assert profile.sm_percent == pytest.approx(18.2)
    assert profile.occupancy_percent == pytest.approx(49.69)
    assert '"GPU Speed Of Light Throughput: Memory Throughput"' in raw
    assert '"Launch Statistics: Registers Per Thread"' in raw


def test_a_details_page_of_command_line_metrics_keeps_their_own_names(tmp_path: Path) -> None:
    section = "Command line profiler metrics"
    text = details_csv(
        (0, "_router", section, "dram__bytes.sum", "Mbyte", "2,000.00"),
        (0, "_router", section, TIME, "ms", "1.00"),
    )
    profile, raw = load(write(tmp_path, text))
    assert (profile.time_us, profile.dram_bytes) == (1000, 2e9)
    assert '"dram__bytes.sum":' in raw


def test_a_details_page_without_the_needed_section_says_which(tmp_path: Path) -> None:
    text = details_csv((0, "k", "Occupancy", "Achieved Occupancy", "%", "49.69"))
    with pytest.raises(ProfileError, match=r"p\.csv:2: launch 'k' has no duration .*GPU Speed Of Light Throughput"):
        load(write(tmp_path, text))


def test_interleaved_rows_of_several_launches_and_processes_are_sorted_out(tmp_path: Path) -> None:
    rows = [[*identity(0, "a"), "S", TIME, "us", "1.50"], [*identity(1, "b"), "S", TIME, "us", "2.50"]]
    other = [[*identity(0, "c"), "S", TIME, "us", "3.50"]]
    other[0][1] = "78"
    again = [[*identity(0, "a"), "S", SM, "%", "4.50"]]
    table = read(write(tmp_path, quoted([IDENTITY + DETAIL_COLUMNS, *rows, *other, *again])))
    times = [(launch.name, launch.metrics[TIME].number) for launch in table.launches]
    assert times == [("a", 1.5), ("b", 2.5), ("c", 3.5)]
    assert table.launches[0].metrics[SM].number == 4.5


def test_powershells_utf16_and_windows_line_ends_are_read(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_bytes(raw_csv(("k", metrics())).replace("\n", "\r\n").encode("utf-16"))
    assert load(path)[0].time_us == pytest.approx(95.712)
    path.write_bytes(b"\xef\xbb\xbf" + raw_csv(("k", metrics())).encode())
    assert load(path)[0].time_us == pytest.approx(95.712)


def test_metric_names_of_older_versions_and_other_sections_are_understood(tmp_path: Path) -> None:
    older = {TIME: ("us", "100.00"), "dram__throughput.avg.pct_of_peak_sustained_elapsed": ("%", "43.00")}
    assert load(write(tmp_path, raw_csv(("k", older))))[0].dram_percent == pytest.approx(43 * 4.8 / 4.3)
    section = "GPU Speed Of Light"
    text = details_csv((0, "k", section, "Duration", "us", "5.50"), (0, "k", section, "DRAM Throughput", "%", "43.00"))
    assert load(write(tmp_path, text))[0].dram_percent == pytest.approx(43 * 4.8 / 4.3)


def test_several_kernels_are_one_region_until_a_regex_chooses(tmp_path: Path) -> None:
    path = write(tmp_path, raw_csv(("warm_up", metrics("900,000.0")), ("mine", metrics()), ("mine", metrics())))
    whole, chosen = load(path)[0], load(path, kernels="^mine$")[0]
    assert (len(whole.launches), len(chosen.launches)) == (3, 2)
    assert chosen.time_us == pytest.approx(2 * 95.712)
    assert chosen.dram_bytes == 2 * 341204992
