"""Is the log what was written? Every hash and every digest is computed again.

Each problem is a sentence that says what is wrong and where. A log without problems holds all that was appended to it,
unchanged, up to what its head counts; a rewrite of database and head together is not found.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from kernelgen.errors import LogError
from kernelgen.eventlog import migrations
from kernelgen.eventlog.chain import GENESIS, START, Mark, from_payload, link
from kernelgen.eventlog.connection import snapshot
from kernelgen.eventlog.head import head_path, read_head
from kernelgen.eventlog.opening import disagreement, tail
from kernelgen.eventlog.texts import unpack
from kernelgen.events import stored_texts

if TYPE_CHECKING:
    from sqlite_utils import Database


@dataclass(frozen=True, slots=True)
class Verification:
    """What a check of the whole log found."""

    events: int
    """Events checked."""
    texts: int
    """Texts checked."""
    problems: tuple[str, ...]
    """What is wrong, a sentence each, in the order of the log."""

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


class Inspection:
    """One pass over a log; the counts and problems so far."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._wanted: dict[str, int] = {}  # text digest -> first event that names it
        self.events = 0
        self.texts = 0

    def schema(self) -> Iterator[str]:
        """Lost guards, and damage that SQLite finds itself."""
        for name in migrations.lost(self._db):
            yield f"The {name} is missing or changed."
        for (finding,) in self._db.execute("PRAGMA integrity_check(10)"):
            if finding != "ok":
                yield f"SQLite finds the file damaged: {finding}."

    def chain(self) -> Iterator[str]:
        """Missing, changed and unreadable events."""
        last = START
        query = "SELECT seq, id, time, kind, payload, prev, hash FROM events ORDER BY seq"
        for seq, id, time, kind, payload, prev, hash in self._db.execute(query):
            self.events += 1
            yield from _break(last, seq, prev)
            if link(prev, id, time, kind, payload) != hash:
                yield f"Event {seq} ({id}) was changed: its content does not give its hash."
            yield from self._content(seq, id, kind, payload)
            last = Mark(seq, hash)

    def stored(self) -> Iterator[str]:
        """Changed and missing texts."""
        for digest, body in self._db.execute("SELECT digest, body FROM texts ORDER BY digest"):
            self.texts += 1
            self._wanted.pop(digest, None)
            try:
                unpack(digest, body)
            except ValueError as error:
                yield f"The {error}."
        for digest, seq in self._wanted.items():
            yield f"The text {digest} that event {seq} names is missing."

    def head(self, mark: Mark | None) -> Iterator[str]:
        """A tail that does not reach the head `mark`, read before the snapshot began."""
        last = tail(self._db)
        wrong = disagreement(self._db, mark, last)
        if wrong:
            yield f"The log {wrong}."

    def _content(self, seq: int, id: str, kind: str, payload: str) -> Iterator[str]:
        try:
            event = from_payload(payload)
        except ValueError:
            yield f"Event {seq} ({id}) cannot be read as an event of the kind {kind}."
            return
        if event.kind != kind:
            yield f"Event {seq} ({id}) is filed as {kind} and is a {event.kind}."
        for digest in stored_texts(event):
            self._wanted.setdefault(digest, seq)


def verify(db: Database, path: Path) -> Verification:
    """Check the log at `path` through a connection to it; writers may go on meanwhile."""
    try:
        mark = read_head(path)  # before the snapshot: the head never runs ahead of the database
    except LogError:
        found = inspect(db, START)
        return replace(found, problems=(*found.problems, f"The head {head_path(path).name} cannot be read."))
    return inspect(db, mark)


def inspect(db: Database, mark: Mark | None) -> Verification:
    """Check the log against the head `mark`; against itself alone where that is `START`."""
    problems: list[str] = []
    inspection = Inspection(db)
    with snapshot(db):
        for part in (inspection.schema(), inspection.chain(), inspection.stored(), inspection.head(mark)):
            try:
                problems.extend(part)
            except sqlite3.DatabaseError as error:
                problems.append(f"SQLite cannot read on: {error}.")
    return Verification(inspection.events, inspection.texts, tuple(problems))


def _break(last: Mark, seq: int, prev: str) -> Iterator[str]:
    """What is wrong between two events that stand one after the other."""
    if seq == last.seq + 2:
        yield f"Event {last.seq + 1} is missing."
    elif seq > last.seq + 2:
        yield f"Events {last.seq + 1} to {seq - 1} are missing."
    elif seq != last.seq + 1:
        yield f"Event {seq} stands before the first: the log was renumbered."
    elif prev != last.hash and prev == GENESIS:
        yield f"Event {seq} begins a chain of its own."
    elif prev != last.hash:
        before = f"event {last.seq}" if last.seq else "the beginning of the log"
        yield f"Event {seq} does not follow {before}: what stood there was changed and hashed anew, or taken out."
