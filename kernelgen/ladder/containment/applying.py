"""Containment put on, in three steps, each in the process that can: server, keeper, child.

The server enters the namespaces and the view once, with one thread, before it imports anything; the keeper gives a
session its own pids and its own part of the view; the child gives up capabilities, then takes Landlock and the filter.
Each step raises OSError where a mechanism that was found to hold does not: no candidate runs then.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from kernelgen.ladder.containment import landlock, libc, limits, namespaces, seccomp, view
from kernelgen.ladder.containment.limits import Limits
from kernelgen.ladder.containment.mechanisms import (
    IPC,
    LANDLOCK,
    NETWORK,
    NOTES,
    PID,
    PID_LIMIT,
    SECCOMP,
    USER,
    VIEW,
    holds,
)
from kernelgen.ladder.containment.paths import PACKAGE, PROC_FACTS, Paths, carved

Record = Mapping[str, str]


def user_flag(record: Record) -> int:
    """The flag for a user namespace, where they are to be had."""
    return namespaces.NEW_USER if holds(record, USER) else 0


def contain_server(record: Record, paths: Paths, *, root: str, writable: str) -> None:
    """Leave network, messages and files behind, as far as they can be left.

    Args:
        record: what holds.
        paths: what stays in view.
        root: an empty folder to build the view at.
        writable: the folder of the sessions' folders.
    """
    flags = user_flag(record)
    for name, flag in ((NETWORK, namespaces.NEW_NET), (IPC, namespaces.NEW_IPC), (VIEW, namespaces.NEW_MOUNTS)):
        if holds(record, name):
            flags |= flag
    if flags:
        namespaces.enter(flags)
    if holds(record, VIEW):
        view.build(paths, root=root, shown=[str(PACKAGE)], writable=writable)


def prepare_keeper(record: Record) -> None:
    """From here on, what this process forks is in a pid namespace of its own."""
    if holds(record, PID):
        libc.unshare(namespaces.NEW_PID)


def contain_keeper(record: Record, paths: Paths, *, folder: str, allowed: Limits) -> None:
    """As the first process of the pid namespace: the session's own part of the view, and the bound of its pids."""
    if holds(record, VIEW):
        libc.unshare(namespaces.NEW_MOUNTS)
        shared = min(allowed.memory_bytes, allowed.file_bytes)
        view.make_own(folder=folder, hidden=[str(PACKAGE), *paths.hidden], shared_bytes=shared)
        if holds(record, PID_LIMIT):
            namespaces.bound_pids(allowed.processes)


def contain_child(record: Record, paths: Paths, *, folder: str, allowed: Limits) -> int | None:
    """In the child, for good. The listener of the filter's notes, for the keeper; None without."""
    limits.apply(allowed, own_user_namespace=holds(record, USER))
    libc.drop_capabilities()
    libc.prctl(libc.PR_SET_NO_NEW_PRIVS, 1)
    if holds(record, LANDLOCK):
        landlock.restrict(rules(record, paths, folder=folder, allowed=allowed))
    if not holds(record, SECCOMP):
        return None
    wanted = seccomp.Filter(
        starts_processes=allowed.exec_allowed,
        own_view=holds(record, VIEW),
        own_pid=None if holds(record, PID) else os.getpid(),
        noted=holds(record, NOTES),
        unix_sockets=paths.gpu,
    )
    return seccomp.restrict(wanted)


def rules(record: Record, paths: Paths, *, folder: str, allowed: Limits) -> list[tuple[str, int]]:
    """Landlock's rules: path and rights."""
    granted = [(folder, landlock.OWN)]
    for root in paths.readable:
        whole, listed = ([root], []) if holds(record, VIEW) else carved(root, paths.hidden)
        granted += [(place, landlock.READ) for place in whole] + [(place, landlock.READ_DIR) for place in listed]
    granted += [(place, landlock.DEVICE) for place in paths.devices]
    if holds(record, VIEW):
        granted += [(view.PROC, landlock.READ), (view.SHARED_MEMORY, landlock.OWN)]
    else:
        granted += [(f"{view.PROC}/{name}", landlock.READ) for name in ("self", *PROC_FACTS)]
    if paths.gpu:
        granted += [(f"{view.PROC}/self/task", landlock.WRITABLE)]  # CUDA names its threads
    if allowed.exec_allowed:
        granted += [(place, landlock.READ | landlock.EXECUTE) for place in paths.executable]
    return granted
