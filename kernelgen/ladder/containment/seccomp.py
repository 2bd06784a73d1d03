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
from dataclasses import dataclass, field

from kernelgen.ladder.containment import libc
from kernelgen.ladder.containment.numbers import NUMBERS

ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
X32_BIT = 0x40000000

NOTED = ("socket", "ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd", "bpf")
METADATA = (
    "chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "lchown", "fchown", "fchownat", "utime", "utimes", "futimesat",
    "utimensat", "setxattr", "lsetxattr", "fsetxattr", "removexattr", "lremovexattr", "fremovexattr",
)  # fmt: skip
SIGNALS = ("kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_send_signal")
STARTS = ("fork", "vfork", "clone", "clone3", "execve", "execveat")
SPECIAL = {*NOTED, *METADATA, *SIGNALS, *STARTS, "socketpair", "truncate"}

_ALLOW, _ERRNO, _NOTIFY, _KILL = 0x7FFF0000, 0x00050000, 0x7FC00000, 0x80000000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_NR, _ARCH, _ARGUMENTS = 0, 4, 16
_SET_MODE_FILTER, _NEW_LISTENER = 1, 8

_AF_UNIX, _SOCK_STREAM, _SOCK_SEQPACKET, _SOCK_TYPE_MASK = 1, 1, 5, 0xF
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
    _code: list[bytes] = field(default_factory=list, repr=False)

    def assemble(self) -> bytes:
        """The filter as the kernel takes it. Raises OSError on an architecture whose numbers are not known."""
        if libc.MACHINE not in ARCHITECTURES:
            raise OSError(errno.ENOSYS, f"no system call numbers for {libc.MACHINE}")
        self._code.clear()
        _, architecture = ARCHITECTURES[libc.MACHINE]
        self._add(_LOAD, _ARCH)
        self._add(_EQUAL, architecture, 1, 0)
        self._add(_RETURN, _KILL)
        self._add(_LOAD, _NR)
        if libc.MACHINE == "x86_64":
            self._add(_AT_LEAST, X32_BIT, 0, 1)
            self._add(_RETURN, _ERRNO | errno.EPERM)
        self._answer(NOTED, _NOTIFY if self.noted else _ERRNO | errno.EPERM)
        self._answer([name for name in NUMBERS if name not in SPECIAL], _ERRNO | errno.EPERM)
        if not self.own_view:
            self._answer(METADATA, _ERRNO)  # refused, and said to be done: linkers set modes of their output
            self._answer(["truncate"], _ERRNO | errno.EPERM)
        self._start_rules()
        self._argument_rule("socketpair", 0, [(_EQUAL, _AF_UNIX)])
        self._argument_rule("socketpair", 1, [(_EQUAL, _SOCK_STREAM), (_EQUAL, _SOCK_SEQPACKET)], _SOCK_TYPE_MASK)
        if self.own_pid is not None:
            for name in ("kill", "tgkill", "tkill"):
                self._argument_rule(name, 0, [(_EQUAL, self.own_pid)])
            self._answer([name for name in SIGNALS if "kill" not in name], _ERRNO | errno.EPERM)
        self._add(_RETURN, _ALLOW)
        return b"".join(self._code)

    def _start_rules(self) -> None:
        """Threads always; processes where allowed; never in new namespaces."""
        self._answer(["clone3"], _ERRNO | errno.ENOSYS)  # its flags lie in memory: libraries fall back to clone
        number = _number("clone")
        assert number is not None
        need = [] if self.starts_processes else [(_ANY_BIT, _CLONE_THREAD)]
        if need:
            self._argument_rule("clone", 0, need)
            self._answer(["fork", "vfork", "execve", "execveat"], _ERRNO | errno.EPERM)
        # jeq clone, else over the next four; load flags; jset NEW: refuse; back to the number
        self._add(_EQUAL, number, 0, 4)
        self._add(_LOAD, _ARGUMENTS)
        self._add(_ANY_BIT, _CLONE_NEW, 0, 1)
        self._add(_RETURN, _ERRNO | errno.EPERM)
        self._add(_LOAD, _NR)

    def _answer(self, names: Sequence[str], action: int) -> None:
        """One answer to all calls of these names."""
        for name in names:
            number = _number(name)
            if number is not None:
                self._add(_EQUAL, number, 0, 1)
                self._add(_RETURN, action)

    def _argument_rule(self, name: str, index: int, tests: list[tuple[int, int]], mask: int | None = None) -> None:
        """Refuse a call unless the low word of an argument passes one of the tests."""
        number = _number(name)
        assert number is not None
        masking = 0 if mask is None else 1
        self._add(_EQUAL, number, 0, 3 + masking + len(tests))
        self._add(_LOAD, _ARGUMENTS + 8 * index)
        if mask is not None:
            self._add(_AND, mask)
        for position, (test, value) in enumerate(tests):
            self._add(test, value, len(tests) - position, 0)
        self._add(_RETURN, _ERRNO | errno.EPERM)
        self._add(_LOAD, _NR)

    def _add(self, code: int, value: int, if_true: int = 0, if_false: int = 0) -> None:
        self._code.append(struct.pack("=HBBI", code, if_true, if_false, value))


def restrict(wanted: Filter) -> int | None:
    """Install the filter in this process, for good; the listener's descriptor where calls are noted.

    Raises:
        OSError: the kernel or the architecture has none.
    """
    code = ctypes.create_string_buffer(wanted.assemble())
    program = struct.pack("=H6xQ", (len(code) - 1) // 8, ctypes.addressof(code))
    libc.prctl(libc.PR_SET_NO_NEW_PRIVS, 1)
    flags = _NEW_LISTENER if wanted.noted else 0
    made = libc.syscall(libc.SECCOMP[libc.MACHINE], _SET_MODE_FILTER, flags, program)
    return made if wanted.noted else None


def _number(name: str) -> int | None:
    column, _ = ARCHITECTURES[libc.MACHINE]
    return NUMBERS[name][column]
