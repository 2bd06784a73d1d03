"""What all processes of a session use together, read from /proc by its keeper."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from kernelgen.ladder.containment.limits import Limits

KIB = 1024
BLOCK_BYTES = 512
ENTRY_BYTES = 4096
# the folder is walked once in so many looks
FOLDER_EVERY = 10
_FIELDS = re.compile(r"^(PPid|Threads|RssAnon|RssShmem):\s+(\d+)", re.MULTILINE)


@dataclass(frozen=True)
class Passed:
    """A limit that was passed."""

    cause: str
    """Check id."""
    sentence: str
    """What the session did."""


class Usage:
    """Looks, again and again, whether a session keeps its limits."""

    def __init__(self, limits: Limits, folder: str, shared_memory: str | None) -> None:
        """Args: the limits, the session's folder, and a shared memory of its own."""
        self._limits = limits
        self._folder = folder
        self._shared_memory = shared_memory
        self._looks = 0
        # what a fork shares with the server, and everything forked from it with that
        self._inherited = max((fields["RssAnon"] for fields in descendants().values()), default=0) * KIB

    def passed(self) -> Passed | None:
        """The limit that is passed now."""
        self._looks += 1
        processes = descendants()
        count = sum(fields["Threads"] for fields in processes.values())
        if count > self._limits.processes:
            sentence = f"had {count} processes and threads; {self._limits.processes} are allowed"
            return Passed("process.flooded", sentence)
        if self._memory(processes) > self._limits.memory_bytes:
            return Passed("process.out_of_memory", f"used more than {_mib(self._limits.memory_bytes)} of memory")
        if self._looks % FOLDER_EVERY == 0 and self._is_folder_full():
            return Passed("process.flooded", f"wrote more than {_mib(self._limits.file_bytes)} into its folder")
        return None

    def _memory(self, processes: dict[int, dict[str, int]]) -> int:
        private = sum(max(0, fields["RssAnon"] * KIB - self._inherited) for fields in processes.values())
        mapped = max((fields["RssShmem"] * KIB for fields in processes.values()), default=0)
        files: dict[int, int] = {}
        for pid in processes:
            files |= _memfds(pid)
        return private + max(mapped, sum(files.values())) + self._in_shared_memory()

    def _in_shared_memory(self) -> int:
        if self._shared_memory is None:
            return 0
        about = os.statvfs(self._shared_memory)
        return (about.f_blocks - about.f_bfree) * about.f_frsize

    def _is_folder_full(self) -> bool:
        total, folders = 0, [self._folder]
        while folders:
            try:
                with os.scandir(folders.pop()) as entries:
                    for entry in entries:
                        total += ENTRY_BYTES + entry.stat(follow_symlinks=False).st_blocks * BLOCK_BYTES
                        if entry.is_dir(follow_symlinks=False):
                            folders.append(entry.path)
                        if total > self._limits.file_bytes:
                            return True
            except (FileNotFoundError, NotADirectoryError):  # removed meanwhile
                continue
            except OSError:  # too deep, or locked: no kernel needs that, and it may hide anything
                return True
        return False


def descendants() -> dict[int, dict[str, int]]:
    """Every process below this one, with its figures."""
    known = {int(name): _fields(int(name)) for name in os.listdir("/proc") if name.isdecimal()}
    below: dict[int, list[int]] = {}
    for pid, fields in known.items():
        below.setdefault(fields.get("PPid", 0), []).append(pid)
    found: dict[int, dict[str, int]] = {}
    waiting = below.get(int(os.readlink("/proc/self")), [])  # /proc may be of another pid namespace
    while waiting:
        pid = waiting.pop()
        if "RssAnon" in known[pid]:  # else it only waits to be reaped
            found[pid] = known[pid]
        waiting += below.get(pid, [])
    return found


def _fields(pid: int) -> dict[str, int]:
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as status:
            return {name: int(value) for name, value in _FIELDS.findall(status.read())}
    except OSError:
        return {}


def _memfds(pid: int) -> dict[int, int]:
    """Bytes of the memfds that a process has open, by inode."""
    sizes = {}
    try:
        for name in os.listdir(f"/proc/{pid}/fd"):
            path = f"/proc/{pid}/fd/{name}"
            if os.readlink(path).startswith("/memfd:"):
                about = os.stat(path)
                sizes[about.st_ino] = about.st_blocks * BLOCK_BYTES
    except OSError:  # ended, or closed meanwhile
        return sizes
    return sizes


def _mib(size: int) -> str:
    return f"{size / (1 << 20):g} MiB"
