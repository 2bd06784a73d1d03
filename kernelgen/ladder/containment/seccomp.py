"""A filter of system calls: no sockets, no other processes, no namespaces, no way into the kernel, for good.

`pyseccomp` on PyPI needs libseccomp, which a GPU machine lacks: it does not serve. A refused call fails with EPERM.
Calls that no honest kernel makes are also noted: the filter's listener tells the keeper, outside the candidate's reach,
which it was. Only calls of this machine's own architecture get through at all.
"""

from __future__ import annotations

import ctypes
import errno
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from kernelgen.ladder.containment import libc
from kernelgen.ladder.containment.numbers import NUMBERS

ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
X32_BIT = 0x40000000

# what CUDA does with an abstract unix socket of its own when it starts
LISTENING = ("bind", "listen", "accept", "accept4")
NOTED = ("socket", "ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd", "bpf")
METADATA = (
    "chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "lchown", "fchown", "fchownat", "utime", "utimes", "futimesat",
    "utimensat", "setxattr", "lsetxattr", "fsetxattr", "removexattr", "lremovexattr", "fremovexattr",
)  # fmt: skip
SIGNALS = ("kill", "tkill", "tgkill")
OTHER_SIGNALS = ("rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_send_signal")
STARTS = ("fork", "vfork", "execve", "execveat")
BY_ARGUMENT = ("clone", "clone3", "socketpair", "truncate")
REFUSED = tuple(
    name for name in NUMBERS if name not in {*NOTED, *METADATA, *SIGNALS, *OTHER_SIGNALS, *STARTS, *BY_ARGUMENT}
)

ALLOW, FAIL, NOTIFY, KILL = 0x7FFF0000, 0x00050000, 0x7FC00000, 0x80000000
EPERM = FAIL | errno.EPERM
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_NR, _ARCH, _ARGUMENTS = 0, 4, 16
_SET_MODE_FILTER, _NEW_LISTENER = 1, 8

_AF_UNIX, _SOCK_STREAM, _SOCK_SEQPACKET, _SOCK_TYPE_MASK = 1, 1, 5, 0xF
_CONNECTED_MASK = _SOCK_TYPE_MASK & ~(_SOCK_STREAM ^ _SOCK_SEQPACKET)
_CLONE_THREAD = 0x00010000
# user, network, ipc, pid, uts, mount, cgroup
_CLONE_NEW = 0x10000000 | 0x40000000 | 0x08000000 | 0x20000000 | 0x04000000 | 0x00020000 | 0x02000000


@dataclass(frozen=True)
class Filter:
    """What to let through."""

    starts_processes: bool = False
    """Whether it may fork and execute; what it may execute is Landlock's to say."""
    own_view: bool = False
    """Whether a private view of the file system makes everything outside read-only already."""
    own_pid: int | None = None
    """Let it signal this process alone; None where a pid namespace keeps it from others."""
    noted: bool = True
    """Whether a listener is told of the calls in `NOTED`."""
    unix_sockets: bool = False
    """Whether it may make unix sockets and listen on them, which CUDA does to start; it can connect none."""


class _Program:
    """Instructions of the kernel's filter machine; it stands on the call's number between rules."""

    def __init__(self) -> None:
        self.code = b""

    def add(self, operation: int, value: int, if_true: int = 0, if_false: int = 0) -> None:
        """One instruction; the jumps are counted from the next."""
        self.code += struct.pack("=HBBI", operation, if_true, if_false, value)

    def answer(self, names: Sequence[str], action: int) -> None:
        """One answer to all calls of these names."""
        for name in names:
            number = _number(name)
            if number is not None:
                self.add(_EQUAL, number, 0, 1)
                self.add(_RETURN, action)

    def demand(self, name: str, argument: int, tests: Sequence[tuple[int, int]], mask: int = 0xFFFFFFFF) -> None:
        """Refuse a call unless the low word of an argument passes one of the tests."""
        number = _number(name)
        if number is not None:
            self.add(_EQUAL, number, 0, 4 + len(tests))
            self.add(_LOAD, _ARGUMENTS + 8 * argument)
            self.add(_AND, mask)
            for position, (test, value) in enumerate(tests):
                self.add(test, value, len(tests) - position)
            self.add(_RETURN, EPERM)
            self.add(_LOAD, _NR)

    def permit(self, name: str, tests: Sequence[tuple[int, int, int]]) -> None:
        """Allow a call whose arguments all pass; what follows decides about others.

        A test is an argument's place, a mask of its low word, and the value it must have under the mask.
        """
        number = _number(name)
        if number is not None:
            self.add(_EQUAL, number, 0, 3 * len(tests) + 2)
            for position, (argument, mask, value) in enumerate(tests):
                self.add(_LOAD, _ARGUMENTS + 8 * argument)
                self.add(_AND, mask)
                self.add(_EQUAL, value, 0, 3 * (len(tests) - position - 1) + 1)
            self.add(_RETURN, ALLOW)
            self.add(_LOAD, _NR)

    def refuse_bits(self, name: str, argument: int, bits: int) -> None:
        """Refuse a call whose argument has any of the bits."""
        number = _number(name)
        if number is not None:
            self.add(_EQUAL, number, 0, 4)
            self.add(_LOAD, _ARGUMENTS + 8 * argument)
            self.add(_ANY_BIT, bits, 0, 1)
            self.add(_RETURN, EPERM)
            self.add(_LOAD, _NR)


def assemble(wanted: Filter) -> bytes:
    """The filter as the kernel takes it. Raises OSError on an architecture whose numbers are not known."""
    if libc.MACHINE not in ARCHITECTURES:
        raise OSError(errno.ENOSYS, f"no system call numbers for {libc.MACHINE}")
    program = _Program()
    _, architecture = ARCHITECTURES[libc.MACHINE]
    program.add(_LOAD, _ARCH)
    program.add(_EQUAL, architecture, 1, 0)
    program.add(_RETURN, KILL)
    program.add(_LOAD, _NR)
    if libc.MACHINE == "x86_64":
        program.add(_AT_LEAST, X32_BIT, 0, 1)
        program.add(_RETURN, EPERM)
    if wanted.unix_sockets:
        # a datagram could go anywhere; the two connected types are 1 and 5, which share these bits
        program.permit("socket", [(0, 0xFFFFFFFF, _AF_UNIX), (1, _CONNECTED_MASK, _SOCK_STREAM)])
        program.answer(LISTENING, ALLOW)
    program.answer(NOTED, NOTIFY if wanted.noted else EPERM)
    program.answer(REFUSED, EPERM)
    if not wanted.own_view:
        program.answer(METADATA, FAIL)  # not done, and said to be done: linkers set modes of their output
        program.answer(["truncate"], EPERM)
    program.answer(["clone3"], FAIL | errno.ENOSYS)  # its flags lie in memory: libraries fall back to clone
    program.refuse_bits("clone", 0, _CLONE_NEW)
    if not wanted.starts_processes:
        program.demand("clone", 0, [(_ANY_BIT, _CLONE_THREAD)])
        program.answer(STARTS, EPERM)
    program.demand("socketpair", 0, [(_EQUAL, _AF_UNIX)])
    # datagrams can go anywhere, from a pair too
    program.demand("socketpair", 1, [(_EQUAL, _SOCK_STREAM), (_EQUAL, _SOCK_SEQPACKET)], _SOCK_TYPE_MASK)
    if wanted.own_pid is not None:
        for name in SIGNALS:
            program.demand(name, 0, [(_EQUAL, wanted.own_pid)])
        program.answer(OTHER_SIGNALS, EPERM)
    program.add(_RETURN, ALLOW)
    return program.code


def restrict(wanted: Filter) -> int | None:
    """Install the filter in this process, for good; the listener's descriptor where calls are noted.

    Raises:
        OSError: the kernel or the architecture has none.
    """
    code = assemble(wanted)
    held = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("=H6xQ", len(code) // struct.calcsize("=HBBI"), ctypes.addressof(held))
    libc.prctl(libc.PR_SET_NO_NEW_PRIVS, 1)
    flags = _NEW_LISTENER if wanted.noted else 0
    made = libc.syscall(libc.SECCOMP[libc.MACHINE], _SET_MODE_FILTER, flags, program)
    return made if wanted.noted else None


def _number(name: str) -> int | None:
    column, _ = ARCHITECTURES[libc.MACHINE]
    return NUMBERS[name][column]
