"""The compilers that judging needs: Triton's own assembler, nvcc, and the host's C++."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from kernelgen.doctor import packages
from kernelgen.doctor.asking import NotTold, say
from kernelgen.doctor.privacy import shown
from kernelgen.ladder.binary import missing_tool
from kernelgen.ladder.cuda import find_nvcc

HOST_COMPILERS = ("gcc", "clang", "cc")
"""What Triton looks for to build its launchers, in its order."""

_RELEASE = re.compile(r"V(\d+\.\d+\.\d+)")
_NUMBER = re.compile(r"\d+(?:\.\d+)+")


@dataclass(frozen=True)
class Tool:
    """A program found here."""

    version: str
    """What it says of itself."""
    path: str
    """Where it lies."""


def ptxas() -> Tool:
    """The assembler that Triton bundles."""
    return _found(packages.triton_tool("ptxas"), "--version", _RELEASE)


def binary_tools() -> bool:
    """True; NotTold with the install line where what reads machine code is missing."""
    missing = missing_tool()
    if missing is not None:
        raise NotTold(missing)
    return True


def nvcc() -> Tool:
    """nvcc, as the ladder finds it."""
    path = find_nvcc()
    if path is None:
        raise NotTold("not found")
    return _found(path, "--version", _RELEASE)


def gxx() -> Tool:
    """The host compiler that nvcc calls."""
    return _found(_on_path("g++"), "-dumpfullversion", _NUMBER)


def c_compiler() -> Tool:
    """The C compiler that Triton builds its launchers with, where kernels run on a GPU."""
    named = os.environ.get("CC")
    found = next((path for name in HOST_COMPILERS if (path := shutil.which(name))), None)
    if named is None and found is None:
        raise NotTold(f"none of {', '.join(HOST_COMPILERS)} is on PATH")
    return _found(Path(named or found or ""), "--version", _NUMBER)


def _on_path(name: str) -> Path:
    found = shutil.which(name)
    if found is None:
        raise NotTold("not on PATH")
    return Path(found)


def _found(path: Path, option: str, pattern: re.Pattern[str]) -> Tool:
    said = pattern.search(say([path, option]))
    if said is None:
        raise NotTold(f"{path.name} does not say its version")
    return Tool(said[said.lastindex or 0], shown(str(path)))
