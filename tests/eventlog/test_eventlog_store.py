"""What goes into the log comes out as it was, and nothing goes in by halves."""

from __future__ import annotations

import dataclasses
import json
import zlib
from pathlib import Path

import pytest
from eventlog_samples import around_guards, reply, small
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernelgen.errors import HarnessError, LogError
from kernelgen.eventlog import EventLog
from kernelgen.events import EVENT, RegionFrozen, RegionUnfrozen
from kernelgen.ids import digest_text

ANY_TEXT = st.text(st.characters(exclude_categories=()))


def test_rows_come_back_in_order_as_they_were_appended(path: Path) -> None:
    with EventLog.open(path) as log:
        appended = [log.append(small(number)) for number in range(3)]
        assert list(log.rows()) == appended
        assert [row.seq for row in appended] == [1, 2, 3]
        assert log.row(appended[1].id) == appended[1]
    with EventLog.read(path) as log:
        assert list(log.rows()) == appended
        assert log.count() == 3


def test_a_row_cannot_be_changed(path: Path) -> None:
    with EventLog.open(path) as log:
        row = log.append(small())
    with pytest.raises(dataclasses.FrozenInstanceError):
        row.seq = 7  # type: ignore[misc]


def test_filters_narrow_the_rows(path: Path) -> None:
    with EventLog.open(path) as log:
        log.append(small())
        log.append(reply("g1", "a"), ["a", "[]"])
        log.append(reply("g2", "a"))
        log.append(RegionUnfrozen(target="mla", hardware="h200", why="again"))

        def numbers(**filters: object) -> list[int]:
            return [row.seq for row in log.rows(**filters)]  # type: ignore[arg-type]

        assert numbers(kinds=["reply_received", "region_unfrozen"]) == [2, 3, 4]
        assert numbers(kinds=[]) == []
        assert numbers(target="mla") == [4]
        assert numbers(target="mla", hardware="b200") == []
        assert numbers(iteration_id="g2") == [3]
        assert numbers(after=2) == [3, 4]
        assert numbers(newest_first=True, limit=2) == [4, 3]
        assert numbers(limit=0) == []
        assert numbers(state=0) == []
        assert [row.seq for row in log.iteration("g1")] == [2]


def test_a_reading_sees_the_log_as_it_was_when_it_began(path: Path) -> None:
    with EventLog.open(path) as log:
        log.append_all([(small(number), ()) for number in range(1200)])
        reading = log.rows()
        first = next(reading)
        with EventLog.open(path) as other:
            other.append(small(-1))
        log.append(small(-2))
        assert [first.seq, *(row.seq for row in reading)] == list(range(1, 1201))


@given(text=ANY_TEXT, why=st.text())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_and_any_reason_come_back(path: Path, text: str, why: str) -> None:
    with EventLog.open(path) as log:
        row = log.append(RegionFrozen(target="moe", hardware="h200", why=why), [text])
        assert log.text(digest_text(text)) == text
        assert log.row(row.id).event == row.event


@pytest.mark.parametrize("odd", ["caf\udce9", "nul\0inside", "\u2028\u0085\r\n", "😀", "", "\ufeffbom"])
def test_odd_unicode_survives_in_texts_and_in_events(path: Path, odd: str) -> None:
    with EventLog.open(path) as log:
        row = log.append(RegionFrozen(target="moe", hardware="h200", why=odd), [odd])
    with EventLog.read(path) as log:
        assert log.text(digest_text(odd)) == odd
        assert log.row(row.id).event == row.event
        assert log.verify().ok


def test_a_long_text_comes_back_and_is_stored_once(path: Path) -> None:
    text = "".join(f"line {number}\n" for number in range(450_000))
    assert len(text) > 5_000_000
    with EventLog.open(path) as log:
        log.append(reply("g1", text), [text, "[]"])
        log.append(reply("g2", text), [text, "[]"])
        assert log.text(digest_text(text)) == text
        assert log.verify().texts == 2


def test_a_missing_text_refuses_the_event_and_writes_nothing(path: Path) -> None:
    with EventLog.open(path) as log:
        with pytest.raises(HarnessError, match="was not given"):
            log.append(reply("g1", "never given"), ["[]"])
        assert log.count() == 0
        with pytest.raises(LogError, match="has no text"):
            log.text(digest_text("[]"))


def test_a_batch_is_appended_whole_or_not_at_all(path: Path) -> None:
    with EventLog.open(path) as log:
        with pytest.raises(HarnessError, match="was not given"):
            log.append_all([(small(), ()), (reply("g1", "never given"), ())])
        assert log.count() == 0
        rows = log.append_all([(reply("g1", "a"), ["a", "[]"]), (reply("g2", "a"), ())])
        assert [row.seq for row in rows] == [1, 2]
        assert log.append_all([]) == []


def test_an_event_that_its_json_cannot_carry_is_refused(path: Path) -> None:
    event = reply("g1", "a")
    costly = event.model_copy(update={"usage": event.usage.model_copy(update={"seconds": float("nan")})})
    with EventLog.open(path) as log:
        with pytest.raises(HarnessError, match="cannot be written as JSON"):
            log.append(costly, ["a", "[]"])
        with pytest.raises(HarnessError, match="does not come back"):
            log.append(RegionFrozen(target="moe", hardware="h200", why="\ud83d\ude00"))
        assert log.count() == 0


def test_a_log_opened_for_reading_takes_no_event(filled: Path) -> None:
    with EventLog.read(filled) as log, pytest.raises(HarnessError, match="reading only"):
        log.append(small())


def test_reading_a_changed_text_raises(filled: Path) -> None:
    with around_guards(filled) as raw:
        raw.execute("UPDATE texts SET body = ? WHERE digest = ?", [zlib.compress(b"forged"), digest_text("the reply")])
        raw.execute("UPDATE texts SET body = x'00' WHERE digest = ?", [digest_text("[]")])
    with EventLog.read(filled) as log:
        with pytest.raises(LogError, match="was changed: its content has the digest sha256:"):
            log.text(digest_text("the reply"))
        with pytest.raises(LogError, match="cannot be unpacked"):
            log.text(digest_text("[]"))


def test_abbreviated_ids_are_completed_or_refused_with_the_nearest(path: Path) -> None:
    with EventLog.open(path) as log:
        with pytest.raises(LogError, match="the log is empty"):
            log.find("g")
        row = log.append(reply("g2026_aa", "a"), ["a", "[]"])
        log.append(reply("g2026_ab", "a"))
        log.append(reply("g2026_abc", "a"))
        assert log.find(row.id[:-1]) == row.id
        assert log.find("g2026_aa") == "g2026_aa"
        assert log.find("g2026_ab") == "g2026_ab", "a whole id is no abbreviation"
        with pytest.raises(LogError, match=r"several ids .* such as g2026_aa and g2026_ab"):
            log.find("g2026")
        with pytest.raises(LogError, match="the nearest is 'g2026_abc'"):
            log.find("g2026_abx")
        with pytest.raises(LogError, match=f"the nearest is '{row.id}'"):
            log.row(row.id + "0")


def test_export_gives_a_json_object_a_line(filled: Path) -> None:
    with EventLog.read(filled) as log:
        rows = list(log.rows())
        records = [json.loads(line) for line in log.export(rows, texts=True)]
        assert "texts" not in json.loads(next(log.export(rows)))
    assert [record["kind"] for record in records] == [row.event.kind for row in rows]
    assert records[3]["texts"] == {digest_text("the reply"): "the reply", digest_text("[]"): "[]"}
    for row, record in zip(rows, records, strict=True):
        assert (record.pop("seq"), record.pop("id"), record.pop("hash")) == (row.seq, row.id, row.hash)
        assert record.pop("time") == row.time
        record.pop("texts")
        assert EVENT.validate_python(record) == row.event


def test_export_can_be_written_as_utf8_whatever_is_in_it(path: Path) -> None:
    with EventLog.open(path) as log:
        log.append(reply("g1", "caf\udce9"), ["caf\udce9", "[]"])
        line = next(log.export(log.rows(), texts=True))
    assert json.loads(line.encode("utf-8"))["texts"][digest_text("caf\udce9")] == "caf\udce9"
