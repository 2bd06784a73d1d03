"""Nobody changes a row unseen: the database refuses, and whoever gets around that is found."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path

import pytest
from eventlog_samples import GUARDS, around_guards, problems, small

from kernelgen.errors import LogError
from kernelgen.eventlog import EventLog, adopt
from kernelgen.eventlog.chain import link
from kernelgen.eventlog.head import head_path, read_head
from kernelgen.ids import digest_text

COLUMNS = "seq, id, time, kind, payload, prev, hash"
COPY = f"INSERT OR REPLACE INTO events ({COLUMNS}) SELECT {{}}, time, kind, payload, prev, hash"


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET time = 'never'",
        "UPDATE OR REPLACE events SET id = 'e1'",
        "DELETE FROM events",
        "DELETE FROM events WHERE seq = 6",
        "REPLACE INTO events SELECT seq, id, 'never', kind, payload, prev, hash FROM events WHERE seq = 1",
        COPY.format("3, 'e_other'") + " FROM events WHERE seq = 1",
        COPY.format("99, id") + " FROM events WHERE seq = 1",
        "UPDATE texts SET body = x'00'",
        "DELETE FROM texts",
        "REPLACE INTO texts SELECT digest, 0, x'00' FROM texts",
        "INSERT OR REPLACE INTO texts (rowid, digest, size_bytes, body) VALUES (1, 'other', 0, x'00')",
    ],
)
def test_the_database_refuses_every_change(filled: Path, statement: str) -> None:
    with closing(sqlite3.connect(filled)) as raw, pytest.raises(sqlite3.IntegrityError, match="is append-only"):
        raw.execute(statement)
    assert problems(filled) == ()


def test_a_whole_log_has_no_problems(filled: Path) -> None:
    with EventLog.read(filled) as log:
        found = log.verify()
    assert (found.events, found.texts, found.problems, found.ok) == (6, 2, (), True)


@pytest.mark.parametrize("column", ["id", "time", "prev", "hash"])
def test_a_changed_column_is_found(filled: Path, column: str) -> None:
    with around_guards(filled) as raw:
        raw.execute(f"UPDATE events SET {column} = 'sha256:{'1' * 64}' WHERE seq = 2")
    assert any(found.startswith("Event 2 ") and "was changed" in found for found in problems(filled))


def test_a_changed_payload_is_found_and_no_other_row_is_blamed(filled: Path) -> None:
    with around_guards(filled) as raw:
        raw.execute("UPDATE events SET payload = replace(payload, 'reason 1', 'reason 9') WHERE seq = 2")
    (found,) = problems(filled)
    assert found.startswith("Event 2 (e")
    assert "was changed" in found


def test_a_row_hashed_anew_is_found(filled: Path) -> None:
    with around_guards(filled) as raw:
        id, time, kind, payload, prev = raw.execute(
            "SELECT id, time, kind, replace(payload, 'reason 1', 'reason 9'), prev FROM events WHERE seq = 2"
        ).fetchone()
        forged = link(prev, id, time, kind, payload)
        raw.execute("UPDATE events SET payload = ?, hash = ? WHERE seq = 2", [payload, forged])
    (found,) = problems(filled)
    assert found.startswith("Event 3 does not follow event 2")


def test_a_chain_rewritten_to_its_end_is_found_by_the_head(filled: Path) -> None:
    with around_guards(filled) as raw:
        prev = raw.execute("SELECT prev FROM events WHERE seq = 2").fetchone()[0]
        for seq, id, time, kind, payload in raw.execute(
            "SELECT seq, id, time, kind, replace(payload, 'reason ', 'excuse ') FROM events WHERE seq > 1 ORDER BY seq"
        ).fetchall():
            hash = link(prev, id, time, kind, payload)
            raw.execute("UPDATE events SET payload = ?, prev = ?, hash = ? WHERE seq = ?", [payload, prev, hash, seq])
            prev = hash
    (found,) = problems(filled)
    assert found == "The log was replaced or rewritten: its event 6 is not the one its head names."
    with pytest.raises(LogError, match="was replaced or rewritten"):
        EventLog.open(filled)


@pytest.mark.parametrize(
    ("gone", "sentence"),
    [
        ("seq = 2", "Event 2 is missing."),
        ("seq IN (2, 3)", "Events 2 to 3 are missing."),
        ("seq = 1", "Event 1 is missing."),
    ],
)
def test_missing_rows_are_named(filled: Path, gone: str, sentence: str) -> None:
    with around_guards(filled) as raw:
        raw.execute(f"DELETE FROM events WHERE {gone}")
    assert problems(filled) == (sentence,)


def test_a_missing_row_is_found_also_when_the_rest_is_renumbered(filled: Path) -> None:
    with around_guards(filled) as raw:
        raw.execute("DELETE FROM events WHERE seq = 2")
        for seq in range(3, 7):
            raw.execute("UPDATE events SET seq = ? WHERE seq = ?", [seq - 1, seq])
    found = problems(filled)
    assert found[0].startswith("Event 2 does not follow event 1")
    assert found[-1] == "The log was cut: its head counts 6 events and event 6 is gone."


def test_swapped_rows_are_found(filled: Path) -> None:
    with around_guards(filled) as raw:
        for old, new in ((2, 99), (3, 2), (99, 3)):
            raw.execute("UPDATE events SET seq = ? WHERE seq = ?", [new, old])
    assert any(found.startswith("Event 2 does not follow event 1") for found in problems(filled))


def test_an_inserted_row_is_found(filled: Path) -> None:
    with closing(sqlite3.connect(filled)) as raw, raw:
        raw.execute(
            f"INSERT INTO events ({COLUMNS}) "
            "SELECT 7, 'e_forged', time, kind, payload, hash, hash FROM events WHERE seq = 6"
        )
    assert problems(filled) == ("Event 7 (e_forged) was changed: its content does not give its hash.",)


@pytest.mark.parametrize(
    ("kept", "sentence"), [(5, "event 6 is gone"), (2, "events 3 to 6 are gone"), (0, "events 1 to 6")]
)
def test_a_cut_tail_is_found_by_verifying_and_by_opening(filled: Path, kept: int, sentence: str) -> None:
    with around_guards(filled) as raw:
        raw.execute("DELETE FROM events WHERE seq > ?", [kept])
    (found,) = problems(filled)
    assert found.startswith("The log was cut: its head counts 6 events")
    assert sentence in found
    with pytest.raises(LogError, match=f"was cut.*{sentence}.*kernelgen log adopt"):
        EventLog.open(filled)


def test_a_tail_cut_under_an_open_log_stops_the_next_append(path: Path) -> None:
    with EventLog.open(path) as log:
        log.append_all([(small(), ()), (small(), ())])
        with closing(sqlite3.connect(path)) as raw, raw:
            raw.execute("DROP TRIGGER events_no_delete")
            raw.execute("DELETE FROM events WHERE seq = 2")
        with pytest.raises(LogError, match="was cut"):
            log.append(small())


def test_changed_and_missing_texts_are_found(filled: Path) -> None:
    with around_guards(filled) as raw:
        raw.execute("UPDATE texts SET body = ? WHERE digest = ?", [zlib.compress(b"forged"), digest_text("the reply")])
        raw.execute("DELETE FROM texts WHERE digest = ?", [digest_text("[]")])
    changed, missing = problems(filled)
    assert changed.startswith(f"The text {digest_text('the reply')} was changed")
    assert missing == f"The text {digest_text('[]')} that event 4 names is missing."


def test_a_payload_that_is_no_event_is_found_and_named_on_reading(filled: Path) -> None:
    with around_guards(filled) as raw:
        payload = json.dumps({"kind": "region_frozen", "target": "moe"})
        raw.execute("UPDATE events SET payload = ? WHERE seq = 2", [payload])
    assert any("cannot be read as an event of the kind region_frozen" in found for found in problems(filled))
    with EventLog.read(filled) as log, pytest.raises(LogError, match=r"event 2 \(e.*cannot be read"):
        list(log.rows())


@pytest.mark.parametrize("guard", GUARDS)
def test_a_missing_guard_is_found_and_stops_writing(filled: Path, guard: str) -> None:
    with closing(sqlite3.connect(filled)) as raw:
        raw.execute(f"DROP TRIGGER {guard}")
    assert problems(filled) == (f"The trigger {guard} is missing or changed.",)
    with pytest.raises(LogError, match=f"has lost its trigger {guard}"):
        EventLog.open(filled)


def test_a_guard_without_teeth_is_found(filled: Path) -> None:
    with closing(sqlite3.connect(filled)) as raw:
        raw.execute("DROP TRIGGER events_no_delete")
        raw.execute("CREATE TRIGGER events_no_delete BEFORE DELETE ON events BEGIN SELECT 1; END")
    assert problems(filled) == ("The trigger events_no_delete is missing or changed.",)


def test_a_trigger_that_swallows_events_stops_the_append(path: Path) -> None:
    with EventLog.open(path) as log:
        with closing(sqlite3.connect(path)) as raw:
            raw.execute("CREATE TRIGGER thief BEFORE INSERT ON events BEGIN SELECT RAISE(IGNORE); END")
        with pytest.raises(LogError, match="swallows events"):
            log.append(small())


def test_damaged_pages_are_a_problem_and_not_a_crash(path: Path) -> None:
    with EventLog.open(path) as log:
        log.append_all([(small(number), ()) for number in range(2000)])
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 8192] = os.urandom(8192)
    path.write_bytes(bytes(data))
    assert problems(path) != ()


def test_a_head_left_behind_by_a_killed_writer_is_mended_by_the_next_open(filled: Path) -> None:
    head = head_path(filled)
    before = head.read_bytes()
    with EventLog.open(filled) as log:
        row = log.append(small())
    head.write_bytes(before)
    assert problems(filled) == (), "a head one behind is no fault"
    with EventLog.open(filled):
        mark = read_head(filled)
    assert mark is not None
    assert (mark.seq, mark.hash) == (7, row.hash)


def test_a_head_left_behind_is_mended_by_the_next_append(path: Path) -> None:
    with EventLog.open(path) as log:
        log.append(small())
        before = head_path(path).read_bytes()
        log.append(small())
        with head_path(path).open("r+b") as head:
            head.write(before)
        row = log.append(small())
        mark = read_head(path)
    assert mark is not None
    assert (mark.seq, mark.hash) == (3, row.hash)


def test_an_emptied_database_is_refused_and_left_alone(filled: Path) -> None:
    filled.write_bytes(b"")
    with pytest.raises(LogError, match=r"missing or empty and events\.db\.head beside it counts 6 events"):
        EventLog.open(filled)
    assert filled.read_bytes() == b""
    filled.unlink()
    for create in (True, False):
        with pytest.raises(LogError, match=r"move events\.db\.head away to begin a new log"):
            EventLog.open(filled, create=create)
    assert not filled.exists()


def test_a_database_replaced_by_another_log_is_refused(filled: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    with EventLog.open(other) as log:
        log.append_all([(small(number), ()) for number in range(9)])
    shutil.copy(other, filled)
    with pytest.raises(LogError, match="was replaced or rewritten"):
        EventLog.open(filled)
    assert any("replaced" in found for found in problems(filled))


def test_a_log_removed_while_it_is_open_takes_no_more_events(path: Path) -> None:
    with EventLog.open(path) as log:
        log.append(small())
        path.rename(path.with_suffix(".moved"))
        with pytest.raises(LogError, match="removed or replaced while it was open"):
            log.append(small())
        path.with_suffix(".moved").rename(path)
        assert log.append(small()).seq == 2


@pytest.mark.parametrize("data", [b"", b"nonsense\n", b"\0" * 93])
def test_a_lost_or_damaged_head_is_refused_until_the_log_is_adopted(filled: Path, data: bytes) -> None:
    head_path(filled).write_bytes(data)
    assert len(problems(filled)) == 1
    with pytest.raises(LogError, match="kernelgen log adopt"):
        EventLog.open(filled)
    assert adopt(filled).events == 6
    assert problems(filled) == ()
    with EventLog.open(filled) as log:
        assert log.append(small()).seq == 7


def test_a_log_without_its_head_file_is_refused_until_it_is_adopted(filled: Path) -> None:
    head_path(filled).unlink()
    assert problems(filled) == ("The log holds 6 events and its head is missing.",)
    with pytest.raises(LogError, match=r"has lost its head events\.db\.head.*kernelgen log adopt"):
        EventLog.open(filled)
    assert not head_path(filled).exists()
    assert adopt(filled).ok
    with EventLog.open(filled) as log:
        assert log.count() == 6


def test_adopting_restores_the_guards_and_accepts_a_cut_log(filled: Path) -> None:
    with closing(sqlite3.connect(filled)) as raw, raw:
        for guard in GUARDS:
            raw.execute(f"DROP TRIGGER {guard}")
        raw.execute("DELETE FROM events WHERE seq > 4")
    assert adopt(filled).events == 4
    assert problems(filled) == ()
    with closing(sqlite3.connect(filled)) as raw, pytest.raises(sqlite3.IntegrityError, match="append-only"):
        raw.execute("DELETE FROM events")


def test_adopting_refuses_a_log_that_was_changed(filled: Path) -> None:
    with around_guards(filled) as raw:
        raw.execute("UPDATE events SET time = 'never' WHERE seq = 2")
    head_path(filled).unlink()
    with pytest.raises(LogError, match=r"cannot be accepted.*Event 2"):
        adopt(filled)
