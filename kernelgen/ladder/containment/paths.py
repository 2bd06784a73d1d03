"""What a contained process may see: Python and its packages, system libraries, compilers, and a GPU's devices.

Everything else is out of its view: the checkout, the working folder, the home, other candidates. A place that must stay
hidden and lies inside one that is shown, as an installed kernelgen inside site-packages, is cut out of it.
"""

from __future__ import annotations

import glob
import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2]
"""The folder of the kernelgen package."""
SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/libx32", "/bin", "/sbin")
ETC = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "alternatives", "OpenCL", "nvidia")
CPU_FACTS = ("/sys/devices/system/cpu", "/sys/devices/system/node")
GPU_FACTS = ("/sys/bus", "/sys/class", "/sys/devices", "/sys/module")
# of a /proc that shows other processes too
PROC_FACTS = (
    "cpuinfo", "meminfo", "stat", "version", "filesystems", "devices", "modules", "driver", "sys/vm", "sys/kernel",
)  # fmt: skip
PLAIN_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
GPU_DEVICES = ("/dev/nvidia*", "/dev/nvidia-caps/*")
DEFAULT_TOOLKIT = "/usr/local/cuda"

# what compiling starts: by name on PATH, and folders of parts that compilers start by themselves
TOOLS = (
    "sh", "bash", "dash", "env", "cc", "gcc", "c++", "g++", "clang", "clang++", "as", "ld", "ld.bfd", "ld.gold",
    "ld.lld", "nvcc", "rm", "ldconfig", "ldconfig.real",
)  # fmt: skip
TOOL_FOLDERS = ("/usr/lib/gcc", "/usr/libexec/gcc", "/usr/lib/llvm*/bin")
COMPILERS = ("CC", "CXX", "cc", "gcc", "c++", "g++", "clang", "clang++")
COMPILER_PARTS = ("libexec/gcc", "lib/gcc", "lib/clang")
TOOLKIT_FOLDERS = ("bin", "nvvm/bin")
LOADERS = ("/lib64/ld-linux*", "/lib/ld-linux*", "/lib/*/ld-linux*")
PACKAGED_TOOLS = ("triton/backends/nvidia/bin", "nvidia/cu*/bin", "nvidia/cu*/nvvm/bin", "nvidia/cuda_nvcc/bin")


@dataclass(frozen=True)
class Paths:
    """The places, each existing and absolute."""

    readable: tuple[str, ...]
    """Files and folders to read, what is below included."""
    hidden: tuple[str, ...]
    """Places inside readable ones that are not."""
    executable: tuple[str, ...]
    """Programs, and folders of programs, that compiling starts."""
    devices: tuple[str, ...]
    """Device files to read, write and steer."""
    gpu: bool = False
    """Whether a GPU's driver is to start."""


def found(*, gpu: bool, hidden: Iterable[str] = ()) -> Paths:
    """The places on this machine.

    Args:
        gpu: whether the GPU's devices and driver belong to them.
        hidden: folders to cut out beside kernelgen's own, where they lie inside a readable one and nothing that is
            needed lies inside them.
    """
    toolkits = _toolkits()
    facts = (*CPU_FACTS, *(GPU_FACTS if gpu else ()))
    libraries = [path for path in os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep) if os.path.isabs(path)]
    etc = [f"/etc/{name}" for name in ETC]
    compilers = _compilers()
    packages = [entry for entry in sys.path if entry and entry != str(PACKAGE.parent)]
    needed = _resolved([*facts, sys.prefix, sys.base_prefix, *packages, *toolkits, *compilers, *libraries])
    readable = _outermost(_resolved([*SYSTEM, *etc]) | needed)
    around = {os.path.realpath(place) for place in hidden}
    cut = {place for place in around if not any(_is_inside(f"{need}/", place) for need in needed)} | {str(PACKAGE)}
    patterns = (*PLAIN_DEVICES, *(GPU_DEVICES if gpu else ()))
    return Paths(
        readable=readable,
        hidden=tuple(sorted(place for place in cut if any(_is_inside(place, root) for root in readable))),
        executable=_programs(toolkits, compilers),
        devices=tuple(path for pattern in patterns for path in sorted(glob.glob(pattern)) if not os.path.isdir(path)),
        gpu=gpu,
    )


def carved(root: str, hidden: Sequence[str]) -> tuple[list[str], list[str]]:
    """A readable place without the hidden ones inside: what may be read whole, and folders that may only be listed."""
    if root in hidden:
        return [], []
    if not any(_is_inside(place, root) for place in hidden):
        return [root], []
    whole, listed = [], [root]
    for entry in sorted(os.listdir(root)):
        path = os.path.join(root, entry)
        if not os.path.islink(path):
            below = carved(path, hidden)
            whole += below[0]
            listed += below[1]
    return whole, listed


def _is_inside(place: str, root: str) -> bool:
    return place.startswith(root.rstrip("/") + "/")


def _resolved(paths: Iterable[str]) -> set[str]:
    """Where the existing of these paths really are."""
    return {os.path.realpath(path) for path in paths if path and os.path.exists(path)} - {"/"}


def _outermost(places: set[str]) -> tuple[str, ...]:
    """The places that lie inside no other."""
    return tuple(sorted(place for place in places if not any(_is_inside(place, other) for other in places)))


def _toolkits() -> list[str]:
    """Folders of CUDA toolkits."""
    homes = [os.environ.get("CUDA_HOME", ""), os.environ.get("CUDA_PATH", ""), DEFAULT_TOOLKIT]
    nvcc = shutil.which("nvcc")
    if nvcc is not None and Path(os.path.realpath(nvcc)).parent.name == "bin":
        homes.append(str(Path(os.path.realpath(nvcc)).parents[1]))
    return [home for home in homes if home and os.path.isfile(os.path.join(home, "bin", "nvcc"))]


def _compilers() -> list[str]:
    """Folders of C compilers that stand apart from the system's, recognised by the parts that belong to one."""
    named = [os.path.realpath(path) for name in COMPILERS if (path := shutil.which(os.environ.get(name, name)))]
    folders = {str(Path(path).parents[1]) for path in named if Path(path).parent.name == "bin"}
    return [
        folder
        for folder in sorted(folders - {"/", *SYSTEM})
        if any(os.path.isdir(os.path.join(folder, part)) for part in COMPILER_PARTS)
    ]


def _programs(toolkits: Sequence[str], compilers: Sequence[str]) -> tuple[str, ...]:
    """What compiling starts, here."""
    named = [shutil.which(name) or "" for name in TOOLS]
    named += [os.path.join(folder, part) for folder in compilers for part in ("bin", *COMPILER_PARTS)]
    patterns = [*TOOL_FOLDERS, *LOADERS]
    patterns += [f"{entry}/{tools}" for entry in sys.path if entry for tools in PACKAGED_TOOLS]
    found_folders = [path for pattern in patterns for path in glob.glob(pattern)]
    in_toolkits = [os.path.join(home, folder) for home in toolkits for folder in TOOLKIT_FOLDERS]
    return tuple(sorted(_resolved([*named, *found_folders, *in_toolkits])))
