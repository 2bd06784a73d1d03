"""The system calls that containment needs and Python's standard library lacks, by ctypes; an error raises OSError."""

from __future__ import annotations

import ctypes
import errno
import os
import platform

MACHINE = platform.machine()
# x86_64, aarch64; one number where they agree
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
CAPSET = {"x86_64": 126, "aarch64": 91}
SECCOMP = {"x86_64": 317, "aarch64": 277}
CLOSE_RANGE = 436
MOUNT_SETATTR = 442
LANDLOCK_CREATE_RULESET, LANDLOCK_ADD_RULE, LANDLOCK_RESTRICT_SELF = 444, 445, 446

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
MNT_DETACH = 2
AT_FDCWD = -100
AT_RECURSIVE = 0x8000
MOUNT_ATTR_RDONLY = 1
_CAPABILITY_VERSION_3 = 0x20080522
_LAST_CAPABILITY = 63

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.syscall.restype = ctypes.c_long


def syscall(number: int, *arguments: int | bytes | ctypes.Array[ctypes.c_char] | None) -> int:
    """A system call by number; byte strings and buffers go as pointers, None as a null pointer."""
    return _checked(int(_LIBC.syscall(ctypes.c_long(number), *map(_argument, arguments))))


def prctl(option: int, value: int = 0) -> None:
    """Set something of this process."""
    _checked(_LIBC.prctl(option, *(ctypes.c_ulong(part) for part in (value, 0, 0, 0))))


def unshare(flags: int) -> None:
    """Leave namespaces for fresh ones."""
    _checked(_LIBC.unshare(flags))


def mount(source: str, target: str, kind: str, flags: int = 0, data: str = "") -> None:
    """Mount a file system, or bind a path to another."""
    names = (source.encode(), target.encode(), kind.encode())
    _checked(_LIBC.mount(*names, ctypes.c_ulong(flags), data.encode()))


def unmount(target: str) -> None:
    """Take a mount out of sight."""
    _checked(_LIBC.umount2(target.encode(), MNT_DETACH))


def bind(source: str, target: str) -> None:
    """Show a path, and what is mounted below it, at another place too."""
    mount(source, target, "", MS_BIND | MS_REC)


def make_read_only(target: str, *, alone: bool = False) -> None:
    """Refuse writes to a mount and what is mounted below it, or to it alone."""
    attributes = (MOUNT_ATTR_RDONLY).to_bytes(8, "little") + bytes(24)
    syscall(MOUNT_SETATTR, AT_FDCWD, target.encode(), 0 if alone else AT_RECURSIVE, attributes, len(attributes))


def pivot_root_here() -> None:
    """Make the working folder, a mount, the root of the file system, and forget the old root."""
    syscall(PIVOT_ROOT[MACHINE], b".", b".")
    unmount(".")
    os.chdir("/")


def close_from(first: int) -> None:
    """Close every file descriptor from this one on."""
    try:
        syscall(CLOSE_RANGE, first, 0x7FFFFFFF, 0)
    except OSError as error:
        if error.errno != errno.ENOSYS:
            raise
        os.closerange(first, os.sysconf("SC_OPEN_MAX"))


def drop_capabilities() -> None:
    """Give up every capability, for good."""
    for capability in range(_LAST_CAPABILITY + 1):
        try:
            prctl(PR_CAPBSET_DROP, capability)
        except OSError as error:
            # EINVAL: past the kernel's last one; EPERM: it had no say over the bounding set
            if error.errno not in (errno.EINVAL, errno.EPERM):
                raise
    header = _CAPABILITY_VERSION_3.to_bytes(4, "little") + bytes(4)
    syscall(CAPSET[MACHINE], header, bytes(24))


def _argument(value: int | bytes | ctypes.Array[ctypes.c_char] | None) -> object:
    return ctypes.c_long(value) if isinstance(value, int) else value


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
