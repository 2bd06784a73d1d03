"""A private view of the file system: a root that holds what `paths` names, read-only, and one writable folder.

Made of bind mounts in a mount namespace of its own, so that nothing else can even be looked at. Needs that namespace
and the right to mount in it; where those are missing, Landlock alone decides what can be opened.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from kernelgen.ladder.containment import libc
from kernelgen.ladder.containment.paths import SYSTEM, Paths

SHARED_MEMORY = "/dev/shm"
PROC = "/proc"
DEVICE_LINKS = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
}
_SAFE = libc.MS_NOSUID | libc.MS_NODEV


def build(paths: Paths, *, root: str, shown: Sequence[str], writable: str) -> None:
    """Make the view and enter it.

    Args:
        paths: what is in it.
        root: an empty folder to build it at.
        shown: further folders to show, read-only: kernelgen's own, until a session hides it.
        writable: the folder of the sessions' folders.
    """
    libc.mount("none", "/", "", libc.MS_REC | libc.MS_PRIVATE)
    libc.mount("tmpfs", root, "tmpfs", _SAFE, "mode=755,size=1m")
    for place in SYSTEM:
        if os.path.islink(place):
            os.symlink(os.readlink(place).lstrip("/"), f"{root}{place}")
    for place in (*paths.readable, *shown):
        if not os.path.exists(f"{root}{place}"):  # else it came with a place that holds it
            _show(root, place)
            libc.make_read_only(f"{root}{place}")
    for place in paths.hidden:
        if place not in shown:
            cover(f"{root}{place}")
    for place in paths.devices:
        _show(root, place)
    for name, target in DEVICE_LINKS.items():
        os.symlink(target, f"{root}/dev/{name}")
    os.mkdir(f"{root}{SHARED_MEMORY}")
    _show(root, PROC)
    _show(root, writable)
    Path(f"{root}/tmp").mkdir(exist_ok=True)
    libc.make_read_only(root, alone=True)
    os.chdir(root)
    libc.pivot_root_here()


def make_own(*, folder: str, hidden: Sequence[str], shared_bytes: int) -> None:
    """In a session's own mount namespace, inside the view: its processes, its shared memory and its folder alone.

    Args:
        folder: the session's folder, inside the sessions' folder.
        hidden: folders to cover.
        shared_bytes: size of its shared memory.
    """
    libc.mount("proc", PROC, "proc", _SAFE | libc.MS_NOEXEC)
    libc.mount("tmpfs", SHARED_MEMORY, "tmpfs", _SAFE, f"mode=700,size={shared_bytes}")
    for place in hidden:
        cover(place)
    own = os.open(folder, os.O_PATH)
    try:
        libc.mount("tmpfs", os.path.dirname(folder), "tmpfs", _SAFE, "mode=755,size=64k")
        os.mkdir(folder)
        libc.bind(f"/proc/self/fd/{own}", folder)
        libc.make_read_only(os.path.dirname(folder), alone=True)
    finally:
        os.close(own)


def cover(place: str) -> None:
    """Put an empty folder over one that is there."""
    if os.path.isdir(place):
        libc.mount("tmpfs", place, "tmpfs", _SAFE | libc.MS_RDONLY, "mode=555,size=4k")


def _show(root: str, place: str) -> None:
    """Bind a path into the view."""
    target = f"{root}{place}"
    if os.path.isdir(place):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        Path(target).touch()
    libc.bind(place, target)
