"""The event log: append-only, chained, safe under many writers.

An append is one transaction: killed at any instant, the log holds all of it or nothing, and all of it once it returned.
After a power failure the last seconds may be missing, back to the last reply or verdict, and the head says so.
Processes take turns; a log belongs to the process and thread that opened it. Rows are never changed or removed, by
kernelgen or through the database's own guards. Whoever edits the file around the guards is found by `verify`.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Self

from kernelgen.errors import HarnessError, LogError
from kernelgen.eventlog import export, opening, rows
from kernelgen.eventlog import texts as text_store
from kernelgen.eventlog.chain import Mark, Row, from_payload, link, to_payload
from kernelgen.eventlog.connection import sentences, set_durable, transaction
from kernelgen.eventlog.head import HeadFile, is_at
from kernelgen.eventlog.verify import Verification, verify
from kernelgen.events import Event, stored_texts
from kernelgen.ids import new_id, timestamp, utc_now

if TYPE_CHECKING:
    from sqlite_utils import Database


__all__ = ["EventLog", "Row"]

PAID_FOR = frozenset({"reply_received", "verdict_reached"})
"""Kinds that cost money or GPU time and cannot be made again: their appends wait for the disk."""
INSERT = "INSERT INTO events (seq, id, time, kind, payload, prev, hash) VALUES (?, ?, ?, ?, ?, ?, ?)"


class _Prepared(NamedTuple):
    """An event ready to be written."""

    event: Event
    payload: str
    packed: dict[str, text_store.Packed | None]


class EventLog:
    """One log, open. Make it with `open` or `read`, and close it or use it as a context manager."""

    def __init__(self, path: Path, db: Database, head: HeadFile | None) -> None:
        """Of connections made by `kernelgen.eventlog.opening`; `head` is None for reading only."""
        self.path = path
        self._db = db
        self._head = head
        self._file = os.stat(path)
        self._durable: bool | None = None  # not set yet

    @classmethod
    def open(cls, path: Path, *, create: bool = True) -> Self:
        """Open to append and read; made when missing and `create`. LogError when it cannot be, or is not whole."""
        return cls(path, *opening.open_for_writing(path, create=create))

    @classmethod
    def read(cls, path: Path) -> Self:
        """Open for reading only. LogError when there is no log at `path`."""
        return cls(path, opening.open_for_reading(path), None)

    def close(self) -> None:
        """Close it; the last to close tidies SQLite's write-ahead log away."""
        if self._head is None:
            self._db.close()
            return
        with sentences(self.path):
            try:
                with self._head.locked():
                    self._db.close()
            finally:
                self._db.close()  # also without the lock: closing twice does nothing
                self._head.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def append(self, event: Event, texts: Iterable[str] = ()) -> Row:
        """Append one event with the texts it names, those already stored aside.

        HarnessError when a text is missing or the event does not survive its JSON; LogError when the log cannot be
        written or is no longer whole. Then nothing was written.
        """
        return self.append_all([(event, texts)])[0]

    def append_all(self, pairs: Iterable[tuple[Event, Iterable[str]]]) -> list[Row]:
        """Append several events in one transaction, as `append` does: all or none."""
        if self._head is None:
            raise HarnessError(f"{self.path} was opened for reading only")
        with sentences(self.path):
            prepared = [self._prepare(event, given) for event, given in pairs]  # compressing needs no lock
            if not prepared:
                return []
            with self._head.locked():
                last = self._whole_tail(self._head)
                self._set_durable(any(one.event.kind in PAID_FOR for one in prepared))
                with transaction(self._db):
                    appended = self._insert(prepared, last)
                self._head.write(Mark(appended[-1].seq, appended[-1].hash))
        return appended

    def rows(
        self,
        *,
        kinds: Collection[str] | None = None,
        target: str | None = None,
        hardware: str | None = None,
        state: int | None = None,
        iteration_id: str | None = None,
        after: int = 0,
        newest_first: bool = False,
        limit: int | None = None,
    ) -> Iterator[Row]:
        """The events that match every filter given, in the order of the log, as it is when the iteration begins."""
        wanted = rows.Filter(kinds, target, hardware, state, iteration_id, after)
        return rows.select(self._db, self.path, wanted, newest_first=newest_first, limit=limit)

    def row(self, id: str) -> Row:
        """The event with this id. LogError when there is none."""
        return rows.by_id(self._db, self.path, id)

    def iteration(self, iteration_id: str) -> list[Row]:
        """The events of one generation, in order; empty when there are none."""
        return list(self.rows(iteration_id=iteration_id))

    def find(self, prefix: str) -> str:
        """The full id, of an event or a generation, that begins with `prefix`. LogError when it is not exactly one."""
        return rows.complete(self._db, self.path, prefix)

    def text(self, digest: str) -> str:
        """The stored text with this digest. LogError when there is none, or it was changed."""
        with sentences(self.path):
            return text_store.read(self._db, self.path, digest)

    def count(self) -> int:
        """How many events the log holds."""
        with sentences(self.path):
            return opening.tail(self._db).seq

    def verify(self) -> Verification:
        """Check every hash, every text and the head; writers may go on meanwhile."""
        with sentences(self.path):
            return verify(self._db, self.path)

    def export(self, selected: Iterable[Row], *, texts: bool = False) -> Iterator[str]:
        """Rows as JSON lines; with `texts`, the stored texts too."""
        return export.lines(selected, self.text if texts else None)

    def _prepare(self, event: Event, given: Iterable[str]) -> _Prepared:
        """Everything of an append that needs no lock."""
        try:
            payload = to_payload(event)
            survives = from_payload(payload) == event
        except ValueError as error:
            raise HarnessError(f"A {event.kind} event cannot be written as JSON: {error}") from error
        if not survives:
            raise HarnessError(f"A {event.kind} event does not come back from its JSON as it was")
        return _Prepared(event, payload, text_store.pack_new(self._db, given))

    def _set_durable(self, durable: bool) -> None:
        if durable != self._durable:
            set_durable(self._db, durable)
            self._durable = durable

    def _whole_tail(self, head: HeadFile) -> Mark:
        """The last event, after making sure that the files are still the log that was opened."""
        if not head.in_place() or not is_at(self.path, self._file):
            raise LogError(f"{self.path} was removed or replaced while it was open; {opening.ACCEPT}")
        last = opening.tail(self._db)
        wrong = opening.disagreement(self._db, head.read(), last)
        if wrong:
            raise LogError(f"{self.path} {wrong}; {opening.ACCEPT}")
        return last

    def _refuse_missing(self, event: Event, given: Collection[str]) -> None:
        """HarnessError when the event names a text that was neither given nor stored before."""
        others = set(stored_texts(event)).difference(given)
        missing = others - text_store.stored(self._db, others) if others else others
        if missing:
            raise HarnessError(f"A {event.kind} event names the text {min(missing)}, which was not given")

    def _insert(self, prepared: list[_Prepared], last: Mark) -> list[Row]:
        """Write events and texts behind `last`; inside a transaction."""
        appended: list[Row] = []
        for event, payload, packed in prepared:
            text_store.insert(self._db, packed)
            self._refuse_missing(event, packed)
            id, time = new_id("e"), timestamp(utc_now())
            row = Row(last.seq + 1, id, time, event, link(last.hash, id, time, event.kind, payload))
            written = self._db.execute(INSERT, [row.seq, id, time, event.kind, payload, last.hash, row.hash])
            if written.rowcount != 1:
                raise LogError(f"{self.path} has a trigger that swallows events; remove it, see `kernelgen log verify`")
            last = Mark(row.seq, row.hash)
            appended.append(row)
        return appended
