"""How a log is opened: what is refused, what is made, what is mended.

For writing, under the writers' lock: the database is made or brought up to date, and must agree with the head; a head
left behind by a killed writer is moved up. For reading, nothing is made or mended, and the head is not asked: a cut log
can still be read, and `verify` says that it is cut. Whatever is refused is left as it was found.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kernelgen.errors import LogError
from kernelgen.eventlog import migrations
from kernelgen.eventlog.chain import START, Mark, link
from kernelgen.eventlog.connection import connect, sentences
from kernelgen.eventlog.head import HeadFile, head_path, read_head

if TYPE_CHECKING:
    from sqlite_utils import Database

SQLITE_HEADER = b"SQLite format 3\0"
"""First bytes of every SQLite database."""
ACCEPT = "put back a copy of both, or accept what is there with `kernelgen log adopt`"


def open_for_reading(path: Path) -> Database:
    """A connection that cannot write. LogError when there is no log at `path`, or none this kernelgen can read."""
    with sentences(path):
        _refuse_no_file(path)
        if not _filled(path):
            raise _no_log(path)
        db = connect(path, writable=False)
        try:
            done = migrations.applied(db, path)
            if not done:
                raise _no_log(path)
            if done < len(migrations.scripts()):
                raise LogError(f"{path} has an older schema; `kernelgen log adopt` brings it up to date")
        except BaseException:
            db.close()
            raise
    return db


def open_for_writing(path: Path, *, create: bool, trusted: bool = False) -> tuple[Database, HeadFile]:
    """A connection that may write, and the head. LogError when the log cannot be written, or disagrees with its head.

    With `trusted` a lost guard and a head that disagrees are left for the caller to deal with.
    """
    with sentences(path):
        _refuse_no_file(path)
        filled = _filled(path)  # asked before the head, which whoever makes a log makes first
        if not filled and not create and read_head(path) in (None, START):
            raise _no_log(path)
        if filled and not head_path(path).exists():
            open_for_reading(path).close()
            if not trusted:
                raise LogError(f"{path} has lost its head {head_path(path).name}; {ACCEPT}")
        head = HeadFile(path)
        try:
            with head.locked():
                return _open_locked(path, head, trusted), head
        except BaseException:
            head.close()
            raise


def tail(db: Database) -> Mark:
    """The last event in the database."""
    found = db.execute("SELECT seq, hash FROM events ORDER BY seq DESC LIMIT 1").fetchone()
    return Mark(*found) if found else START


def disagreement(db: Database, mark: Mark | None, last: Mark) -> str | None:
    """What is wrong between the head and a database that ends at `last`, or None; a head left behind is no fault."""
    if mark is None:
        return f"holds {last.seq} events and its head is missing" if last.seq else None
    if last.seq < mark.seq:
        gone = f"event {mark.seq} is" if last.seq + 1 == mark.seq else f"events {last.seq + 1} to {mark.seq} are"
        return f"was cut: its head counts {mark.seq} events and {gone} gone"
    if mark in (last, START):
        return None
    found = db.execute("SELECT hash FROM events WHERE seq = ?", [mark.seq]).fetchone()
    if found is None or found[0] != mark.hash:
        return f"was replaced or rewritten: its event {mark.seq} is not the one its head names"
    return None


def unchained(db: Database, mark: Mark) -> int | None:
    """The first event after `mark` that no writer left there, or None: a killed one leaves a whole commit."""
    query = "SELECT seq, id, time, kind, payload, prev, hash FROM events WHERE seq > ? ORDER BY seq"
    last = mark
    for seq, id, time, kind, payload, prev, hash in db.execute(query, [mark.seq]):
        if seq != last.seq + 1 or prev != last.hash or link(prev, id, time, kind, payload) != hash:
            return int(seq)
        last = Mark(seq, hash)
    return None


def _open_locked(path: Path, head: HeadFile, trusted: bool) -> Database:
    """The rest of opening for writing, under the lock; closes what it opened when it refuses."""
    mark = head.read() if not trusted else None
    if mark is not None and mark.seq and not _filled(path):
        raise LogError(
            f"{path} is missing or empty and {head.path.name} beside it counts {mark.seq} events; put back a copy, "
            f"or move {head.path.name} away to begin a new log"
        )
    db = connect(path, writable=True)
    try:
        done = migrations.applied(db, path)
        if done < len(migrations.scripts()):
            migrations.migrate(db, done)
        db.enable_wal()
        if not trusted:
            _agree(path, db, head, mark)
    except BaseException:
        db.close()
        raise
    return db


def _agree(path: Path, db: Database, head: HeadFile, mark: Mark | None) -> None:
    """Refuse a log that lost a guard or does not agree with its head; move a head up that was left behind."""
    missing = migrations.lost(db)
    if missing:
        raise LogError(f"{path} has lost its {' and its '.join(missing)}; {ACCEPT}")
    last = tail(db)
    wrong = disagreement(db, mark, last)
    if wrong:
        raise LogError(f"{path} {wrong}; {ACCEPT}")
    if mark != last:
        broken = unchained(db, mark or START)
        if broken is not None:
            raise LogError(f"{path} was changed: its event {broken} does not follow the one before it; {ACCEPT}")
        head.write(last)


def _filled(path: Path) -> bool:
    """Whether there is a database; LogError when there is something else, which SQLite would write over when short."""
    if not path.exists() or not path.stat().st_size:
        return False
    journal = path.with_name(path.name + "-journal")  # beside it the header may be half-written, and SQLite mends it
    if not _has_header(path) and not journal.exists() and not _has_header(path):
        raise LogError(f"{path} is not a SQLite database; name another file with events=PATH")
    return True


def _no_log(path: Path) -> LogError:
    return LogError(f"There is no event log at {path}; name it with events=PATH, or generate something first")


def _has_header(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(SQLITE_HEADER)) == SQLITE_HEADER


def _refuse_no_file(path: Path) -> None:
    if path.exists() and not path.is_file():
        raise LogError(f"{path} is not a file; name the event log with events=PATH")
    if not path.parent.is_dir():
        raise LogError(f"{path}: its folder does not exist; make it, or name another file with events=PATH")
