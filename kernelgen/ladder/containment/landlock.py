"""Landlock: which files a process may read, write and execute, and no TCP and no signals to outside, for good.

`landlock` on PyPI is a pre-release without TCP and scopes, and a GPU machine has nothing installed: it does not serve.
Landlock says nothing about looking at names (stat), modes and times: the private view and seccomp do that.
"""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Iterable

from kernelgen.ladder.containment import libc

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
REMOVE_DIR, REMOVE_FILE = 1 << 4, 1 << 5
MAKE_DIR, MAKE_REG, MAKE_SYM = 1 << 7, 1 << 8, 1 << 12
REFER, TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15

READ = READ_FILE | READ_DIR
OWN = READ | WRITE_FILE | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | MAKE_SYM | REFER | TRUNCATE
WRITABLE = READ | WRITE_FILE | TRUNCATE
DEVICE = READ_FILE | WRITE_FILE | IOCTL_DEV | TRUNCATE
_OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
_TCP = 0b11
_SCOPE_ABSTRACT_SOCKETS, _SCOPE_SIGNALS = 1, 2

FIRST_ABI, REFER_ABI, TRUNCATE_ABI, TCP_ABI, IOCTL_ABI, SCOPE_ABI = 1, 2, 3, 4, 5, 6
_VERSION_FLAG = 1
_PATH_BENEATH = 1


def abi() -> int:
    """The kernel's version of Landlock. Raises OSError where there is none."""
    return libc.syscall(libc.LANDLOCK_CREATE_RULESET, None, 0, _VERSION_FLAG)


def restrict(rules: Iterable[tuple[str, int]], *, scoped: bool = True) -> None:
    """Deny this process every access to files but those granted below a path, TCP, and signals to outside.

    Args:
        rules: path and rights; a path that is not there is passed over.
        scoped: also no signals and abstract sockets to outside, where the kernel can.

    Raises:
        OSError: there is no Landlock.
    """
    version = abi()
    known = _known_rights(version)
    scopes = _SCOPE_ABSTRACT_SOCKETS | _SCOPE_SIGNALS if scoped and version >= SCOPE_ABI else 0
    attributes = struct.pack("=Q", known)
    if version >= TCP_ABI:
        attributes += struct.pack("=Q", _TCP)
    if version >= SCOPE_ABI:
        attributes += struct.pack("=Q", scopes)
    ruleset = libc.syscall(libc.LANDLOCK_CREATE_RULESET, attributes, len(attributes), 0)
    try:
        for path, rights in rules:
            _grant(ruleset, path, rights & known)
        libc.prctl(libc.PR_SET_NO_NEW_PRIVS, 1)
        libc.syscall(libc.LANDLOCK_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _known_rights(version: int) -> int:
    """Every right that this version can deny."""
    rights = (1 << 13) - 1
    for since, right in ((REFER_ABI, REFER), (TRUNCATE_ABI, TRUNCATE), (IOCTL_ABI, IOCTL_DEV)):
        if version >= since:
            rights |= right
    return rights


def _grant(ruleset: int, path: str, rights: int) -> None:
    """Allow what `rights` says below a path."""
    try:
        where = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:  # not on this machine
        return
    try:
        if not stat.S_ISDIR(os.fstat(where).st_mode):
            rights &= _OF_FILES
        if rights:
            rule = struct.pack("=Qi", rights, where)
            libc.syscall(libc.LANDLOCK_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0)
    finally:
        os.close(where)
