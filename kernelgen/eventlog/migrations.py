"""The schema of the log's database, as a numbered list of scripts that are never edited.

`PRAGMA application_id` says that a database is kernelgen's, `PRAGMA user_version` how many scripts it has had. Both
change in the transaction of the scripts, so that a process killed in its first open leaves an empty file and no half
schema. A foreign database, or one of a newer kernelgen, is refused before anything is written.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from kernelgen.errors import LogError
from kernelgen.eventlog.connection import database_class, transaction

if TYPE_CHECKING:
    from sqlite_utils import Database

APPLICATION_ID = 0x6B67656E
"""The letters `kgen`."""


def scripts() -> list[str]:
    """The SQL of every migration, in order."""
    folder = files("kernelgen.eventlog") / "schema"
    found = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".sql")), key=lambda entry: entry.name)
    return [entry.read_text(encoding="utf-8") for entry in found]


def applied(db: Database, path: Path) -> int:
    """How many migrations the database has had; 0 for an empty one. LogError when it is foreign or newer."""
    application = _pragma(db, "application_id")
    version = _pragma(db, "user_version")
    if application != APPLICATION_ID:
        if application or version or db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
            raise LogError(f"{path} is a database of another program; name another file with events=PATH")
        return 0
    if version < 1:  # the first script sets both numbers in one transaction
        raise LogError(f"{path} has lost its schema's number; put back a copy, or name another file with events=PATH")
    known = len(scripts())
    if version > known:
        raise LogError(
            f"{path} was written by a newer kernelgen (schema {version}, this one knows {known}); upgrade kernelgen"
        )
    return version


def migrate(db: Database, done: int) -> None:
    """Apply the migrations after the first `done`, all or none."""
    with transaction(db):
        _apply(db, done)


def lost(db: Database) -> list[str]:
    """What of the schema is lost or changed, as in `trigger events_no_update`; extra tables and views are no loss."""
    have = _objects(db)
    return [f"{kind} {name}" for (kind, name), sql in _pristine().items() if have.get((kind, name)) != sql]


def restore_guards(db: Database) -> None:
    """Make missing and changed triggers and views anew; a lost table or index is beyond it."""
    with transaction(db):
        have = _objects(db)
        for (kind, name), sql in _pristine().items():
            if kind in ("trigger", "view") and have.get((kind, name)) != sql:
                db.execute(f"DROP {kind} IF EXISTS {name}")
                db.execute(sql)


def _apply(db: Database, done: int) -> None:
    pending = scripts()[done:]
    for script in pending:
        db.executescript(script)
    db.execute(f"PRAGMA application_id={APPLICATION_ID}")
    db.execute(f"PRAGMA user_version={done + len(pending)}")


def _pragma(db: Database, name: str) -> int:
    return int(db.execute(f"PRAGMA {name}").fetchone()[0])


def _pristine() -> dict[tuple[str, str], str]:
    """What `_objects` gives for a new log."""
    db = database_class()(memory=True, execute_plugins=False)
    try:
        _apply(db, 0)
        return _objects(db)
    finally:
        db.close()


def _objects(db: Database) -> dict[tuple[str, str], str]:
    """By type and name, the SQL of all that the scripts make."""
    found = db.execute("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL")
    return {(kind, name): sql for kind, name, sql in found}
