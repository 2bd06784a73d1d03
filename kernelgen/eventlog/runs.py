"""Run locks: what tells a killed generation from a live one.

While a generation runs, its process holds a lock on `{log}.runs/{iteration_id}`, which the system lets go when the
process dies, however it dies. A file whose lock is free is a run that was cut off. A child forked from the process
shares the lock until it ends or executes another program.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from kernelgen.errors import LogError
from kernelgen.eventlog.connection import sentences
from kernelgen.eventlog.head import is_at


def runs_folder(log: Path) -> Path:
    """Where the run locks of a log lie."""
    return log.with_name(log.name + ".runs")


class RunLock:
    """The lock of one generation, held until `release` or the end of the process.

    As a context manager it is released at the end of the block; after an error the run counts as cut off.
    """

    def __init__(self, path: Path, fd: int) -> None:
        """Of a file that is open and locked."""
        self._path = path
        self._fd = fd

    @classmethod
    def acquire(cls, log: Path, iteration_id: str) -> Self:
        """Take the lock of a generation. LogError when another process has it, or the folder cannot be written."""
        path = runs_folder(log) / iteration_id
        with sentences(path):
            path.parent.mkdir(exist_ok=True)
            while True:
                fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
                if not _try_lock(fd):
                    os.close(fd)
                    raise LogError(f"Generation {iteration_id} is running in another process; wait for it, or end it")
                if is_at(path, os.fstat(fd)):
                    return cls(path, fd)
                os.close(fd)  # removed by a recoverer between opening and locking

    def release(self) -> None:
        """The run is over: remove the file, then let the lock go."""
        with sentences(self._path):
            self._path.unlink(missing_ok=True)
            os.close(self._fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.release()
        else:
            os.close(self._fd)  # the run did not end: the file stays, and a recoverer finishes what the log has of it


@contextmanager
def abandoned(log: Path) -> Iterator[list[str]]:
    """The generations of a log that were cut off, oldest first, held against other recoverers meanwhile.

    Those still in the list when the block ends without an error are forgotten; what the caller takes out, and all of
    them after an error, stay for the next. Killed in the block, a recoverer leaves them too: what it does for each must
    bear being done twice.
    """
    folder = runs_folder(log)
    with ExitStack() as held:
        with sentences(folder):
            paths = sorted(folder.iterdir()) if folder.is_dir() else []
            found = [path for path in paths if _take(path, held)]
        ended = [path.name for path in found]
        yield ended
        with sentences(folder):
            for path in found:
                if path.name in ended:
                    path.unlink(missing_ok=True)


def _take(path: Path, held: ExitStack) -> bool:
    """Whether the run of this file was cut off; then its lock is taken until `held` closes."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:  # released meanwhile
        return False
    if not _try_lock(fd) or not is_at(path, os.fstat(fd)):
        os.close(fd)
        return False
    held.callback(os.close, fd)
    return True


def _try_lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
