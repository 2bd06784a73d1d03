"""The doors for event logs: database files cut, swapped and spliced, and sound databases of other schemas."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from functools import cache
from pathlib import Path

from hypothesis import strategies as st

from kernelgen.eventlog.store import EventLog
from kernelgen.events import RegionFrozen, RegionUnfrozen, stored_texts
from tests.fuzz.fuzz_bytes import mutated
from tests.fuzz.fuzz_property import Door

NAME = "events.db"
EVENTS = 40
STATEMENTS = (
    "PRAGMA user_version = {number}",
    "PRAGMA application_id = {number}",
    "DROP TABLE events",
    "DROP TABLE texts",
    "DROP TRIGGER IF EXISTS events_keep",
    "ALTER TABLE events RENAME TO older",
    "ALTER TABLE events ADD COLUMN extra TEXT",
    "CREATE TABLE another (x)",
    "DELETE FROM _migrations",
    "UPDATE events SET payload = '{{}}' WHERE seq = {number}",
    "UPDATE events SET payload = 'x' || payload",
    "INSERT INTO events VALUES ({number}, 'e', 't', 'k', '[]', 'p', 'h')",
)
"""What other versions, other programs and hands may have done to a database; some fail, which leaves it as it is."""


@cache
def sound() -> dict[str, bytes]:
    """The files of a closed log with some events, by name."""
    folder = Path(tempfile.mkdtemp(prefix="kernelgen-fuzz-"))
    try:
        with EventLog.open(folder / NAME) as log:
            for number in range(EVENTS):
                kind = RegionUnfrozen if number % 2 else RegionFrozen
                log.append(kind(target="mla_decode_fp8", hardware="h200", why=f"reason {number}"))
        return {path.name: path.read_bytes() for path in folder.iterdir()}
    finally:
        shutil.rmtree(folder)


def _put_bytes(case: tuple[bytes, bytes], folder: Path) -> None:
    (folder / NAME).write_bytes(case[0])
    (folder / f"{NAME}.head").write_bytes(case[1])


def _put_schema(case: list[str], folder: Path) -> None:
    for name, data in sound().items():
        (folder / name).write_bytes(data)
    with sqlite3.connect(folder / NAME) as db:
        for (trigger,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            if case[0].startswith(("UPDATE", "DROP", "DELETE")):
                db.execute(f'DROP TRIGGER "{trigger}"')
        for statement in case:
            try:
                db.execute(statement)
            except (sqlite3.Error, OverflowError):
                continue
    db.close()


def _read(_case: object, folder: Path) -> None:
    """What reading commands do: verify, list, read the texts."""
    with EventLog.read(folder / NAME) as log:
        log.verify()
        for row in log.rows():
            for digest in stored_texts(row.event):
                log.text(digest)


def _write(_case: object, folder: Path) -> None:
    with EventLog.open(folder / NAME) as log:
        log.append(RegionFrozen(target="mla_decode_fp8", hardware="h200", why="fuzzed"))


def _cases() -> st.SearchStrategy[tuple[bytes, bytes]]:
    database, head = sound()[NAME], sound()[f"{NAME}.head"]
    broken = st.tuples(mutated([database]), st.just(head))
    return st.one_of(broken, broken, st.tuples(st.just(database), mutated([head])))


def _schemas() -> st.SearchStrategy[list[str]]:
    statement = st.builds(
        lambda text, number: text.format(number=number), st.sampled_from(STATEMENTS), st.integers(-3, 2**31 - 1)
    )
    return st.lists(statement, min_size=1, max_size=3)


LOG_DOORS = (
    Door("logs, to read", _cases(), _put_bytes, _read),
    Door("logs, to write", _cases(), _put_bytes, _write),
    Door("other schemas, to read", _schemas(), _put_schema, _read),
    Door("other schemas, to write", _schemas(), _put_schema, _write),
)
