"""What is not a log of this kernelgen is refused in one sentence and left as it was."""

from __future__ import annotations

import hashlib
import os
import resource
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from eventlog_samples import problems, small

from kernelgen.errors import HarnessError, LogError
from kernelgen.eventlog import EventLog, migrations
from kernelgen.eventlog.connection import explain
from kernelgen.eventlog.head import head_path

FIRST_SCRIPT = "d96fc95f2fe989035a93c8751dbf72d3ff1dd2bba1603e4ca3136d3dddfd5e23"


def test_a_missing_log_is_no_log_to_read(path: Path) -> None:
    with pytest.raises(LogError, match="There is no event log at"):
        EventLog.read(path)
    with pytest.raises(LogError, match="There is no event log at"):
        EventLog.open(path, create=False)
    assert list(path.parent.iterdir()) == []


def test_a_missing_folder_and_a_folder_as_file_are_named(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="its folder does not exist"):
        EventLog.open(tmp_path / "missing" / "events.db")
    with pytest.raises(LogError, match="is not a file"):
        EventLog.open(tmp_path)


def test_a_first_open_killed_at_any_step_is_finished_by_the_next(path: Path) -> None:
    head_path(path).touch()
    with EventLog.open(path):
        pass
    head_path(path).write_bytes(b"")  # killed between the schema and the first head
    with EventLog.open(path) as log:
        assert log.append(small()).seq == 1
    path.with_name("other.db.head").touch()
    path.with_name("other.db").touch()
    with EventLog.open(path.with_name("other.db")) as log:
        assert log.append(small()).seq == 1
    assert problems(path) == problems(path.with_name("other.db")) == ()


def test_an_empty_database_is_no_log_to_read(path: Path) -> None:
    path.touch()
    with pytest.raises(LogError, match="There is no event log at"):
        EventLog.read(path)


@pytest.mark.parametrize("data", [b"x", b"not a database, whatever its name says" * 200, os.urandom(5000)])
def test_a_file_that_is_no_database_is_refused_and_left_alone(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    for attempt in (EventLog.open, EventLog.read):
        with pytest.raises(LogError, match="is not a SQLite database"):
            attempt(path)
    assert path.read_bytes() == data
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("pragma", ["user_version = 1", "application_id = 77", "application_id = 0"])
def test_a_foreign_database_is_refused_and_left_alone(path: Path, pragma: str) -> None:
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("CREATE TABLE events (seq INTEGER PRIMARY KEY)")
        raw.execute(f"PRAGMA {pragma}")
    data = path.read_bytes()
    for attempt in (EventLog.open, EventLog.read):
        with pytest.raises(LogError, match="is a database of another program"):
            attempt(path)
    assert path.read_bytes() == data
    assert list(path.parent.iterdir()) == [path]


def test_a_foreign_database_in_the_place_of_a_log_is_refused(filled: Path) -> None:
    filled.unlink()
    with closing(sqlite3.connect(filled)) as raw:
        raw.execute("CREATE TABLE notes (text)")
    data = filled.read_bytes()
    with pytest.raises(LogError, match="is a database of another program"):
        EventLog.open(filled)
    assert filled.read_bytes() == data


def test_a_database_of_a_newer_kernelgen_is_refused(filled: Path) -> None:
    with closing(sqlite3.connect(filled)) as raw:
        raw.execute("PRAGMA user_version = 99")
    for attempt in (EventLog.open, EventLog.read):
        with pytest.raises(LogError, match=r"newer kernelgen \(schema 99, this one knows 1\); upgrade"):
            attempt(filled)


def test_an_older_log_is_brought_up_to_date_and_keeps_its_events(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    further = [*migrations.scripts(), "CREATE TABLE notes (text TEXT) STRICT;"]
    monkeypatch.setattr(migrations, "scripts", lambda: further)
    with pytest.raises(LogError, match="has an older schema"):
        EventLog.read(filled)
    with EventLog.open(filled) as log:
        assert log.count() == 6
    with closing(sqlite3.connect(filled)) as raw:
        assert raw.execute("PRAGMA user_version").fetchone() == (2,)
        assert raw.execute("SELECT count(*) FROM notes").fetchone() == (0,)


def test_a_migration_that_fails_leaves_the_log_as_it_was(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = [*migrations.scripts(), "CREATE TABLE notes (text TEXT) STRICT; CREATE TABLE notes (text TEXT) STRICT;"]
    with monkeypatch.context() as patch:
        patch.setattr(migrations, "scripts", lambda: broken)
        with pytest.raises(HarnessError, match="notes already exists"):
            EventLog.open(filled)
    assert problems(filled) == ()
    with EventLog.open(filled) as log:
        assert log.count() == 6


def test_the_first_migration_was_never_edited() -> None:
    assert hashlib.sha256(migrations.scripts()[0].encode()).hexdigest() == FIRST_SCRIPT


LIMITED = """
import resource, signal, sys
from pathlib import Path
from eventlog_samples import small
from kernelgen.errors import LogError
from kernelgen.eventlog import EventLog

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with EventLog.open(Path(sys.argv[1])) as log:
    before = log.count()
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
    done = 0
    try:
        for number in range(5000):
            log.append(small(number), [str(number) * 2000])
            done += 1
    except LogError as error:
        print(error)
    assert log.count() == before + done
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    log.append(small(-1))
print(before + done + 1)
"""


def test_a_full_disk_ends_in_a_sentence_and_loses_nothing(filled: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", LIMITED, str(filled), "300000"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
    )
    sentence, count = ended.stdout.splitlines()
    assert "the disk" in sentence
    with EventLog.read(filled) as log:
        assert log.count() == int(count)
        assert log.verify().ok


def test_a_first_open_without_room_can_be_repeated(path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, limits[1]))
        with pytest.raises(LogError, match="the disk"):
            EventLog.open(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, ignored)
    with EventLog.open(path) as log:
        assert log.append(small()).seq == 1
    assert problems(path) == ()


def test_a_folder_that_cannot_be_written_can_be_read(filled: Path) -> None:
    filled.parent.chmod(0o500)
    try:
        if os.access(filled.parent, os.W_OK):
            pytest.skip("permissions do not hold for this user")
        with EventLog.read(filled) as log:
            assert log.count() == 6
            assert log.verify().ok
        with pytest.raises(LogError, match=r"new\.db\.head: Permission denied"):
            EventLog.open(filled.with_name("new.db"))
    finally:
        filled.parent.chmod(0o700)


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        (sqlite3.SQLITE_FULL, "the disk is full and nothing was written"),
        (sqlite3.SQLITE_READONLY_DIRECTORY, "it cannot be written"),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, "another process keeps it locked"),
        (sqlite3.SQLITE_CORRUPT, "it is damaged"),
    ],
)
def test_what_sqlite_refuses_becomes_a_sentence_with_the_mend(path: Path, code: int, sentence: str) -> None:
    error = sqlite3.OperationalError("told by SQLite")
    error.sqlite_errorcode = code
    found = explain(path, error)
    assert isinstance(found, LogError)
    assert str(found).startswith(f"{path}: {sentence}")
    assert str(found).endswith("(SQLite: told by SQLite)")


def test_an_error_of_kernelgen_itself_is_not_blamed_on_the_log(path: Path) -> None:
    assert isinstance(explain(path, sqlite3.OperationalError("no such column: x")), HarnessError)
