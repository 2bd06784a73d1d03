"""Which versions the compilers beside Triton have: Triton's bundled ptxas, and the nvcc that is found."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from kernelgen.ladder import cuda

TIMEOUT_S = 60
UNKNOWN = "unknown"

_VERSION = re.compile(r"\bV(\d+\.\d+\.\d+)")


@cache
def ptxas_version() -> str:
    """Of the ptxas that Triton brings, as in `12.8.93`."""
    triton = find_spec("triton")
    roots = (triton and triton.submodule_search_locations) or ()
    return next((_version(Path(root, "backends", "nvidia", "bin", "ptxas")) for root in roots), UNKNOWN)


@cache
def nvcc_version() -> str:
    """Of the nvcc that is found, as in `13.0.88`."""
    nvcc = cuda.find_nvcc()
    return UNKNOWN if nvcc is None else _version(nvcc)


def _version(program: Path) -> str:
    try:
        said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return UNKNOWN
    found = _VERSION.search(said.stdout)
    return found[1] if found else UNKNOWN
