"""The folder of a server on this machine's disk, and the removal of those whose owner was killed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

PREFIX = "run-"
LOCK = "owner.lock"


class Scratch:
    """A folder that is this process's as long as it lives: it holds a lock in it."""

    def __init__(self) -> None:
        _remove_abandoned()
        self.folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        new = self.folder / "new.lock"
        self._lock = os.open(new, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        new.rename(self.folder / LOCK)  # only now anybody looks at it

    def close(self) -> None:
        """Remove it."""
        remove(self.folder)
        os.close(self._lock)


def remove(folder: Path) -> None:
    """Remove a folder that candidate code filled: modes and depth are its choice."""
    with contextlib.suppress(RecursionError):
        shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        for command in (["chmod", "-R", "u+rwx", "--"], ["rm", "-rf", "--"]):
            subprocess.run([*command, folder], check=False, capture_output=True)


def _remove_abandoned() -> None:
    """Remove folders whose owner was killed: nobody holds their lock."""
    for lock in Path(tempfile.gettempdir()).glob(f"{PREFIX}*/{LOCK}"):
        with contextlib.suppress(OSError):  # another's, or removed meanwhile
            held = os.open(lock, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove(lock.parent)
            finally:
                os.close(held)
