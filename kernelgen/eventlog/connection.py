"""SQLite connections of the log, and the sentence each of their errors ends in.

A commit outlives the process at once, however that dies. It outlives the machine at once where it is asked to be
`durable`, else within seconds: waiting for the disk at every commit would cost most of the speed the log promises on
disks that take 0.3 ms. Readers see whole commits only. What SQLite or the system refuses leaves here as LogError or
HarnessError. A connection belongs to the thread and the process that opened it.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from kernelgen.errors import HarnessError, KernelgenError, LogError

if TYPE_CHECKING:
    from sqlite_utils import Database

LOCK_TIMEOUT_S = 30.0
"""How long a process waits for another one's transaction."""
OLDEST_SQLITE = (3, 37, 0)
"""First SQLite with STRICT tables."""
PRIMARY_CODE = 0xFF
"""Mask that takes SQLite's extended result codes to their primary one."""

LOST_PART = ("no such table", "unsupported file format", "malformed database schema", "Could not decode to UTF-8")
"""How SQLite begins to say, without a code of its own, that a file is damaged; the statements are kernelgen's."""

MENDS: Mapping[int, str] = {
    sqlite3.SQLITE_FULL: "the disk is full and nothing was written: make room and run it again",
    sqlite3.SQLITE_READONLY: "it cannot be written: check the permissions of the file and of its folder",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened: check that its folder exists and may be written",
    sqlite3.SQLITE_PERM: "access is denied: check the permissions of the file",
    sqlite3.SQLITE_IOERR: "the disk cannot be read or written and nothing was added: check its space and its health",
    sqlite3.SQLITE_BUSY: "another process keeps it locked: run it again when that one has ended",
    sqlite3.SQLITE_LOCKED: "another process keeps it locked: run it again when that one has ended",
    sqlite3.SQLITE_NOTADB: "it is not a SQLite database: name another file with events=PATH",
    sqlite3.SQLITE_CORRUPT: "it is damaged: see `kernelgen log verify`, and put back a copy",
    sqlite3.SQLITE_TOOBIG: "a text is too long for SQLite: make it shorter",
}


@contextmanager
def sentences(path: Path) -> Iterator[None]:
    """Turn what SQLite and the system raise into one sentence that names `path` and the mend."""
    try:
        yield
    except sqlite3.Error as error:
        raise explain(path, error) from error
    except UnicodeEncodeError as error:
        raise LogError(f"{path} holds nothing like {error.object!r}: that is no text") from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise LogError(f"{error.filename or path}: {reason}; check the disk and the permissions") from error


def explain(path: Path, error: sqlite3.Error) -> KernelgenError:
    """The error of kernelgen's tree for one of SQLite's: LogError where the user can mend it, else HarnessError."""
    code = getattr(error, "sqlite_errorcode", None)
    if str(error).startswith(LOST_PART):
        return LogError(f"{path} has lost a part: see `kernelgen log verify`, and put back a copy (SQLite: {error})")
    mend = MENDS.get(code & PRIMARY_CODE) if code is not None else None
    if mend is None:
        return HarnessError(f"{path}: SQLite refused a statement of kernelgen: {error}")
    return LogError(f"{path}: {mend} (SQLite: {error})")


def connect(path: Path, *, writable: bool) -> Database:
    """A connection to the database at `path`, which is made when missing and `writable`.

    A reader still opens the file for writing where it may, so that SQLite can tidy its write-ahead log, but can run no
    statement that writes. The caller is inside `sentences`.
    """
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        wanted = ".".join(map(str, OLDEST_SQLITE))
        raise HarnessError(f"SQLite {sqlite3.sqlite_version} is too old for the event log; use a Python with {wanted}")
    if writable:
        return _database(path, "mode=rwc")
    db = _database(path, "mode=rw")
    try:
        db.execute("PRAGMA user_version").fetchone()
    except sqlite3.OperationalError as error:
        db.close()
        if not _only_lacks_shared_memory(path, error):
            raise
        db = _database(path, "immutable=1")
    db.execute("PRAGMA query_only=ON")
    return db


@contextmanager
def transaction(db: Database) -> Iterator[None]:
    """All or nothing. The write lock comes first: one that reads before it fails when a writer comes between."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.commit()
    except BaseException:  # also KeyboardInterrupt: an open transaction would swallow the next append
        db.rollback()
        raise


def set_durable(db: Database, durable: bool) -> None:
    """Whether the next commits, and all before them, are on the disk when they return."""
    db.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")


@contextmanager
def snapshot(db: Database) -> Iterator[None]:
    """Reads that all see the same commit."""
    db.execute("BEGIN")
    try:
        yield
    finally:
        db.rollback()


def database_class() -> type[Database]:
    """sqlite-utils' Database, loaded without numpy.

    sqlite-utils loads numpy where it is installed, for column types that no log has; that is a fifth of a second of
    every command. A numpy that is loaded already stays.
    """
    absent = "numpy" not in sys.modules
    if absent:
        sys.modules["numpy"] = None  # type: ignore[assignment]  # what Python reads as "not to be found"
    try:
        from sqlite_utils import Database
    finally:
        if absent:
            del sys.modules["numpy"]
    found: type[Database] = Database
    return found


def _database(path: Path, parameters: str) -> Database:
    uri = f"{path.absolute().as_uri()}?{parameters}"
    return database_class()(sqlite3.connect(uri, uri=True, timeout=LOCK_TIMEOUT_S), execute_plugins=False)


def _only_lacks_shared_memory(path: Path, error: sqlite3.Error) -> bool:
    """Whether `error` is SQLite's refusal to read a write-ahead database in a folder that cannot be written.

    With no write-ahead log beside it the file is whole by itself and can be read as it stands.
    """
    log = path.with_name(path.name + "-wal")
    refused = error.sqlite_errorcode & PRIMARY_CODE in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
    return refused and path.exists() and not (log.exists() and log.stat().st_size)
