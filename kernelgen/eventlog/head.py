"""The head of the chain, kept outside the database, in `{log}.head`, and the one lock of all writers.

The file is one line of fixed length, the number and hash of the last commit, written in place after it. So a cut
tail, an emptied and a replaced database are found. A writer killed between commit and head leaves the head behind,
which the next writer mends; it is never ahead. Writers take turns by locking this file, which also keeps SQLite's
checkpoints apart. It does not protect against someone who rewrites database and head together.
"""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kernelgen.errors import LogError
from kernelgen.eventlog.chain import Mark
from kernelgen.eventlog.connection import LOCK_TIMEOUT_S

_LINE = re.compile(rb"(\d{20}) (sha256:[0-9a-f]{64})\n")
_LONGEST_BYTES = 128
_PAUSE_S = 0.0005
"""Between two tries for the lock: about a commit's time."""


def head_path(log: Path) -> Path:
    """Where the head of a log lies."""
    return log.with_name(log.name + ".head")


def parse(path: Path, data: bytes) -> Mark | None:
    """The mark in a head file's bytes, None when it is empty; LogError when it is neither."""
    if not data:
        return None
    found = _LINE.fullmatch(data)
    if found is None:
        raise LogError(f"{path} is not the head of an event log; put back a copy, or run `kernelgen log adopt`")
    return Mark(int(found[1]), found[2].decode())


def read_head(log: Path) -> Mark | None:
    """The mark of a log's head file, None when there is none; LogError when it cannot be read as one."""
    path = head_path(log)
    return parse(path, path.read_bytes()) if path.exists() else None


def is_at(path: Path, known: os.stat_result) -> bool:
    """Whether the file at `path` is the one that `known` was taken of."""
    try:
        return os.path.samestat(os.stat(path), known)
    except FileNotFoundError:
        return False


class HeadFile:
    """The head of one log, open for writing."""

    def __init__(self, log: Path) -> None:
        """Open the head of the log at `log`, made empty when missing; OSError when that cannot be."""
        self.path = head_path(log)
        self._log = log
        self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the writers' lock. LogError after half a minute's wait."""
        deadline = time.monotonic() + LOCK_TIMEOUT_S
        while not self._try_lock():
            if time.monotonic() > deadline:
                raise LogError(
                    f"{self._log}: another process has kept the log locked for {LOCK_TIMEOUT_S:.0f} s; "
                    "end it, or run this again when it has ended"
                )
            time.sleep(_PAUSE_S)
        try:
            yield
        finally:
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    def read(self) -> Mark | None:
        """The mark, None when the file is new."""
        return parse(self.path, os.pread(self._fd, _LONGEST_BYTES, 0))

    def write(self, mark: Mark) -> None:
        """Set the mark; the lock is held."""
        line = f"{mark.seq:020d} {mark.hash}\n".encode()
        os.pwrite(self._fd, line, 0)
        if os.fstat(self._fd).st_size != len(line):  # only after a damaged head was accepted anew
            os.ftruncate(self._fd, len(line))

    def in_place(self) -> bool:
        """Whether the open file is still the one at its path."""
        return is_at(self.path, os.fstat(self._fd))

    def _try_lock(self) -> bool:
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
