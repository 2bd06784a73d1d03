"""Finds out what holds on this machine, by trying each mechanism in a throwaway child.

For a small process with one thread: it forks. A mechanism holds where the thing it forbids fails after it was put on
and worked before; else the record says why not.
"""

from __future__ import annotations

import errno
import mmap
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from kernelgen.ladder.containment import applying, landlock, libc, limits, namespaces, notes, paths, seccomp, view
from kernelgen.ladder.containment.mechanisms import (
    BUBBLEWRAP,
    HOLDS,
    IPC,
    LANDLOCK,
    LANDLOCK_SCOPE,
    LANDLOCK_TCP,
    NETWORK,
    NOTES,
    PID,
    PID_LIMIT,
    RLIMITS,
    SECCOMP,
    USER,
    VIEW,
)

MEMORY_BYTES = 64 << 20
ANSWER_BYTES = 1024
Probe = Callable[[], str | None]


def tried() -> dict[str, str]:
    """Each mechanism with `holds`, or why it does not."""
    if sys.platform != "linux":
        return dict.fromkeys((LANDLOCK, SECCOMP, USER, RLIMITS), "needs Linux")
    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as server:
        secret = Path(folder, "secret")
        secret.write_text("secret", encoding="ascii")
        port = server.getsockname()[1]
        record = {USER: in_child(partial(namespaces.enter, namespaces.NEW_USER))}
        user = applying.user_flag(record)
        probes: dict[str, Probe] = {
            NETWORK: partial(_network, user, port),
            IPC: partial(namespaces.enter, user | namespaces.NEW_IPC),
            PID: partial(_pid, user),
            PID_LIMIT: partial(_pid_limit, user),
            VIEW: partial(_view, user, folder, secret),
            LANDLOCK: partial(_landlock, secret),
            LANDLOCK_TCP: partial(_landlock_tcp, port),
            LANDLOCK_SCOPE: _landlock_scope,
            SECCOMP: _seccomp,
            NOTES: _notes,
            RLIMITS: _rlimits,
        }
        record |= {name: in_child(probe) for name, probe in probes.items()}
    return record | {BUBBLEWRAP: _bubblewrap()}


def in_child(probe: Probe) -> str:
    """`holds` where the probe, run in a child of its own, finds nothing to say; else what it says or raises."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.write(writing, (_said(probe) or HOLDS).encode()[:ANSWER_BYTES])
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        said = answer.read().decode()
    os.waitpid(child, 0)
    return said or "the child that tried it died"


def _said(probe: Probe) -> str | None:
    try:
        return probe()
    except OSError as error:
        return error.strerror or str(error)
    except (KeyError, ValueError, AttributeError) as error:  # an architecture or a C library without it
        return f"{type(error).__name__}: {error}"


def _connects(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def _network(user: int, port: int) -> str | None:
    if not _connects(port):
        return "loopback does not work here, so nothing shows"
    namespaces.enter(user | namespaces.NEW_NET)
    return "a listener outside was reached" if _connects(port) else None


def _first_process(user: int, extra: int, probe: Probe) -> str | None:
    """What a probe says as the first process of a pid namespace."""
    namespaces.enter(user | namespaces.NEW_PID | extra)
    said = in_child(probe)
    return None if said == HOLDS else said


def _pid(user: int) -> str | None:
    return _first_process(user, 0, lambda: None if os.getpid() == 1 else "its first process is not number 1")


def _pid_limit(user: int) -> str | None:
    def bound() -> None:
        libc.mount("none", "/", "", libc.MS_REC | libc.MS_PRIVATE)
        libc.mount("proc", view.PROC, "proc")
        namespaces.bound_pids(1)

    return _first_process(user, namespaces.NEW_MOUNTS, bound)


def _view(user: int, folder: str, secret: Path) -> str | None:
    root, writable = Path(folder, "root"), Path(folder, "writable")
    own, other = writable / "1", writable / "2"
    for path in (root, writable, own, other):
        path.mkdir()
    namespaces.enter(user | namespaces.NEW_MOUNTS)
    shown = paths.found(gpu=False)
    view.build(shown, root=str(root), shown=[str(paths.PACKAGE)], writable=str(writable))

    def session() -> str | None:
        libc.unshare(namespaces.NEW_MOUNTS)
        view.make_own(folder=str(own), hidden=[str(paths.PACKAGE)], shared_bytes=MEMORY_BYTES)
        seen = [str(place) for place in (secret, other, paths.PACKAGE / "errors.py") if place.exists()]
        if seen:
            return f"{seen[0]} is in view"
        (own / "own").touch()
        try:
            Path(sys.prefix, "own").touch()
        except OSError:
            return None
        return f"{sys.prefix} can be written"

    return _first_process(0, 0, session)


def _landlock(secret: Path) -> str | None:
    secret.read_bytes()
    landlock.restrict([("/usr", landlock.READ)])
    os.listdir("/usr")
    return _refused(secret.read_bytes, "a file outside was read")


def _landlock_tcp(port: int) -> str | None:
    version = landlock.abi()
    if version < landlock.TCP_ABI:
        return f"the kernel has version {version}, it came with {landlock.TCP_ABI}"
    landlock.restrict([])
    return "a listener outside was reached" if _connects(port) else None


def _landlock_scope() -> str | None:
    version = landlock.abi()
    if version < landlock.SCOPE_ABI:
        return f"the kernel has version {version}, it came with {landlock.SCOPE_ABI}"
    parent = os.getppid()
    os.kill(parent, 0)
    landlock.restrict([])
    return _refused(partial(os.kill, parent, 0), "the parent could be signalled")


def _seccomp() -> str | None:
    socket.socket().close()
    seccomp.restrict(seccomp.Filter(noted=False))
    return _refused(socket.socket, "a socket was opened") or _refused(os.fork, "a process was forked")


def _notes() -> str | None:
    here, there = socket.socketpair()
    child = os.fork()
    if child == 0:
        listener = seccomp.restrict(seccomp.Filter())
        socket.send_fds(there, [b"1"], [] if listener is None else [listener])
        os._exit(1 if _refused(socket.socket, "a socket was opened") else 0)
    there.close()
    _, descriptors, _, _ = socket.recv_fds(here, 1, 1)
    noted = notes.refuse_next(descriptors[0]) if descriptors else None
    _, status = os.waitpid(child, 0)
    return None if noted is not None and status == 0 else "the listener was told nothing"


def _rlimits() -> str | None:
    limits.apply(limits.Limits(memory_bytes=MEMORY_BYTES), own_user_namespace=False)
    return _refused(partial(mmap.mmap, -1, 2 * MEMORY_BYTES, flags=mmap.MAP_PRIVATE), "memory is not bounded")


def _refused(attempt: Callable[[], object], otherwise: str) -> str | None:
    """None where the attempt is refused."""
    try:
        attempt()
    except OSError as error:
        known = error.errno in (errno.EPERM, errno.EACCES, errno.ENOMEM, errno.ENOENT)
        return None if known else f"refused with {error.strerror}"
    return otherwise


def _bubblewrap() -> str:
    """Reported for people: what is used is set by the process itself."""
    found = shutil.which("bwrap")
    return f"at {found}, not used" if found else "not installed, not needed"
