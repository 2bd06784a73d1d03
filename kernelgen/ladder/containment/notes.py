"""The keeper's end of the filter: refuses each noted call, and says in words what it was."""

from __future__ import annotations

import errno
import fcntl
import struct

from kernelgen.ladder.containment import libc
from kernelgen.ladder.containment.numbers import NUMBERS
from kernelgen.ladder.containment.seccomp import ARCHITECTURES, NOTED

_RECEIVE, _SEND = 0xC0502100, 0xC0182101
_RECEIVED_BYTES = 80
_HEAD = struct.Struct("=QIIiIQ6Q")
_ANSWER = struct.Struct("=QqiI")
FAMILIES = {1: "a unix socket", 2: "a network socket", 10: "a network socket", 16: "a netlink socket"}
WORDS = {
    "ptrace": "trace a process",
    "process_vm_readv": "read another process's memory",
    "process_vm_writev": "write another process's memory",
    "pidfd_getfd": "take another process's file",
    "bpf": "load a program into the kernel",
}


def refuse_next(listener: int) -> str | None:
    """Refuse the call that waits; what was tried, as in `open a network socket`. None where its caller is gone."""
    buffer = bytearray(_RECEIVED_BYTES)
    try:
        fcntl.ioctl(listener, _RECEIVE, buffer)
        identity, _, _, number, _, _, first, *_ = _HEAD.unpack_from(buffer)
        fcntl.ioctl(listener, _SEND, _ANSWER.pack(identity, 0, -errno.EPERM, 0))
    except OSError:  # killed meanwhile
        return None
    return _words(number, first)


def _words(number: int, first: int) -> str:
    column, _ = ARCHITECTURES[libc.MACHINE]
    name = next(name for name in NOTED if NUMBERS[name][column] == number)
    if name == "socket":
        return f"open {FAMILIES.get(first & 0xFFFFFFFF, 'a socket')}"
    return WORDS[name]
