"""The file `constraints.jsonl`, and keeping it and the event log the same.

The file is append-only: one JSON record a line, added in one write under a lock that every kernelgen process takes, so
that two never mix lines or add one twice. `reconcile` brings what either side lacks to it, by id; a record both have
must be equal. Nothing is created before there is something to write, and a write that fails leaves the file as it was.
A line without an id that is edited in place counts as a new one: the old one comes back from the log.
"""

from __future__ import annotations

import codecs
import fcntl
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from kernelgen.constraints.book import ConstraintBook
from kernelgen.constraints.lines import Record, line_text, read_line
from kernelgen.constraints.select import collector_paused
from kernelgen.errors import ConstraintError
from kernelgen.events import ConstraintAdded, ConstraintRetracted
from kernelgen.ids import digest_text
from kernelgen.records import Constraint

__all__ = ["ConstraintBook", "ConstraintFile", "ConstraintLog", "Line", "reconcile"]

ConstraintEvent = ConstraintAdded | ConstraintRetracted
NEW_FILE_MODE = 0o644


class ConstraintLog(Protocol):
    """The part of the event log that `reconcile` needs."""

    def constraint_rows(self) -> Iterable[tuple[str, ConstraintEvent]]:
        """Event id and event of every constraint and retraction logged, in order."""

    def append_all(self, events: Sequence[ConstraintEvent]) -> object:
        """Append events in one transaction."""


@dataclass(frozen=True, slots=True)
class Line:
    """One record of the file."""

    number: int
    """Counted from 1."""
    text: str
    """As it stands in the file, without the line end."""
    record: Record
    """What it says."""


class ConstraintFile:
    """A constraint file; a missing one reads as empty."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def exists(self) -> bool:
        """Whether there is a file; ConstraintError where the path cannot be one."""
        try:
            return self.path.exists()
        except OSError as error:
            raise self._unusable("read", error) from None

    def read(self) -> list[Line]:
        """Every record, in order; blank lines are skipped, an exact repetition counts once.

        Raises ConstraintError with file, line and mend for a line that cannot be read and for two different ones with
        the same id. Whether a retraction's constraint exists is for `ConstraintBook` to say.
        """
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise self._unusable("read", error) from None
        with collector_paused():
            return self._lines(data)

    def _lines(self, data: bytes) -> list[Line]:
        lines: dict[str, Line] = {}
        for number, raw in enumerate(data.removeprefix(codecs.BOM_UTF8).split(b"\n"), start=1):
            if not raw.strip():
                continue
            line = self._line(number, raw)
            known = lines.setdefault(line.record.id, line)
            if known is not line and known.record != line.record:
                raise self.wrong(line, f"line {known.number} has the id '{line.record.id}' too; give it another")
        return list(lines.values())

    def _line(self, number: int, raw: bytes) -> Line:
        try:
            text = raw.decode().rstrip("\r")
            return Line(number, text, read_line(text))
        except UnicodeDecodeError as error:
            raise ConstraintError(f"{self.path}:{number}: byte {error.start + 1} is not UTF-8; save it so") from None
        except ConstraintError as error:
            raise ConstraintError(f"{self.path}:{number}: {error}") from None

    def wrong(self, line: Line, problem: str) -> ConstraintError:
        """An error that names the file and the line."""
        return ConstraintError(f"{self.path}:{line.number}: {problem}")

    def append(self, records: Sequence[Record]) -> None:
        """Add records at the end, in one write. One that is there already is not added again.

        Raises ConstraintError where an id has another content already, and where the file cannot be written.
        """
        if not records:
            return
        with self.locked(create=True):
            known = {line.record.id: line for line in self.read()}
            for record in records:
                if (line := known.get(record.id)) is not None and line.record != record:
                    raise self.wrong(line, f"the id '{record.id}' is taken; retract it and add anew under another")
            self.append_locked([record for record in records if record.id not in known])

    def append_locked(self, records: Sequence[Record]) -> None:
        """Add records as they are; only for who holds the lock."""
        if not records:
            return
        text = "".join(line_text(record) + "\n" for record in records)
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, NEW_FILE_MODE)
        except OSError as error:
            raise self._unusable("written", error) from None
        try:
            size = os.fstat(descriptor).st_size
            opened = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
            self._write(descriptor, (("\n" if opened else "") + text).encode(), size)
        finally:
            os.close(descriptor)

    def _write(self, descriptor: int, data: bytes, size: int) -> None:
        """All of the data or, on a full disk, none of it."""
        try:
            written = os.write(descriptor, data)
            if written < len(data):
                raise OSError(f"{written} of {len(data)} bytes written")
            os.fsync(descriptor)
        except OSError as error:
            os.ftruncate(descriptor, size)
            raise self._unusable("written", error) from None

    @contextmanager
    def locked(self, *, create: bool) -> Iterator[bool]:
        """Hold the file against every other kernelgen process. A missing one is made, or else there is nothing to hold.

        Gives whether the file is held.
        """
        descriptor = self._lock(create)
        try:
            yield descriptor is not None
        finally:
            if descriptor is not None:
                os.close(descriptor)

    def _lock(self, create: bool) -> int | None:
        while True:
            try:
                descriptor = self._open(create)
            except FileNotFoundError as error:
                if create:
                    raise self._unusable("written", error) from None
                return None
            except OSError as error:
                raise self._unusable("written" if create else "read", error) from None
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            # an editor may have put another file in its place meanwhile
            if self.path.exists() and os.path.samestat(os.fstat(descriptor), self.path.stat()):
                return descriptor
            os.close(descriptor)

    def _open(self, create: bool) -> int:
        try:
            return os.open(self.path, os.O_RDWR | (os.O_CREAT if create else 0), NEW_FILE_MODE)
        except PermissionError:
            if create:
                raise
            return os.open(self.path, os.O_RDONLY)

    def _unusable(self, done: str, error: OSError) -> ConstraintError:
        why = error.strerror or str(error)
        return ConstraintError(f"{self.path} cannot be {done} ({why}); mend that, or name another by constraints=PATH")


def reconcile(file: ConstraintFile, log: ConstraintLog) -> ConstraintBook:
    """Bring to the log what only the file has, and to the file what only the log has; the book of both.

    Raises ConstraintError, before anything is written, for a broken line, for one that says otherwise than the log, and
    for a retraction of nothing.
    """
    must_exist = any(True for _ in log.constraint_rows())
    with file.locked(create=must_exist and not file.exists()) as held:
        if not held:
            return ConstraintBook([])
        lines = file.read()
        logged = {_record(event).id: _record(event) for _, event in log.constraint_rows()}
        for line in lines:
            if logged.get(line.record.id, line.record) != line.record:
                edited = f"'{line.record.id}' was edited after its first use"
                raise file.wrong(line, f"{edited}; undo the edit, or retract it and add a new line")
        in_file = {line.record.id for line in lines}
        lost = [record for record in logged.values() if record.id not in in_file]
        book = ConstraintBook([*(line.record for line in lines), *lost])
        if new := [_event(line) for line in lines if line.record.id not in logged]:
            log.append_all(new)
        file.append_locked(lost)
    return book


def _record(event: ConstraintEvent) -> Record:
    return event.constraint if isinstance(event, ConstraintAdded) else event.retraction


def _event(line: Line) -> ConstraintEvent:
    digest = digest_text(line.text)
    if isinstance(line.record, Constraint):
        return ConstraintAdded(constraint=line.record, line=digest)
    return ConstraintRetracted(retraction=line.record, line=digest)
