"""Namespaces: a network without interfaces, messages and processes of one's own, mounts of one's own.

A user namespace gives the right to make the others; without it, root may make them. Entering one needs a process with
one thread: the server enters before it imports anything, and each session's keeper is freshly forked.
"""

from __future__ import annotations

import os

from kernelgen.ladder.containment import libc

NEW_USER, NEW_NET, NEW_IPC, NEW_PID, NEW_UTS = 0x10000000, 0x40000000, 0x08000000, 0x20000000, 0x04000000
NEW_MOUNTS = 0x00020000
HIGHEST_PID = "/proc/sys/kernel/pid_max"
# pids up to here are given out once only
RESERVED_PIDS = 300


def enter(flags: int) -> None:
    """Leave this process's namespaces for fresh ones, its user mapped to itself.

    Raises:
        OSError: the kernel or its settings forbid it.
    """
    user, group = os.getuid(), os.getgid()
    libc.unshare(flags)
    if flags & NEW_USER:
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{user} {user} 1")
        _write("/proc/self/gid_map", f"{group} {group} 1")


def bound_pids(processes: int) -> None:
    """Let this pid namespace have no more processes than the reserved ones and these. Raises OSError before 6.14."""
    _write(HIGHEST_PID, str(RESERVED_PIDS + processes))


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)
