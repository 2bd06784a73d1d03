"""Nsight Compute: whether it is here, and whether it may read counters, as far as that is told without profiling."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from kernelgen.doctor.asking import NotTold, say
from kernelgen.doctor.privacy import shown
from kernelgen.ladder.cuda import find_nvcc

DRIVER_PARAMETERS = Path("/proc/driver/nvidia/params")
STATUS = Path("/proc/self/status")
FOLDERS = Path("/opt/nvidia/nsight-compute")
CAP_SYS_ADMIN = 21
NCU_S = 2.5

_ADMIN_ONLY = re.compile(r"^RmProfilingAdminOnly:\s*(\d+)", re.MULTILINE)
_CAPABILITIES = re.compile(r"^CapEff:\s*([0-9a-f]+)", re.MULTILINE)
_VERSION = re.compile(r"Version (\d+(?:\.\d+)+)")


@dataclass(frozen=True)
class Ncu:
    """Nsight Compute as it is here."""

    version: str
    """Its version."""
    path: str
    """Where it lies."""


def ncu() -> Ncu:
    """Nsight Compute on PATH, beside nvcc, or in its own folder."""
    toolkit = find_nvcc()
    nearby = [toolkit.parent / "ncu"] if toolkit is not None else []
    found = shutil.which("ncu")
    candidates = [*([Path(found)] if found else []), *nearby, *sorted(FOLDERS.glob("*/ncu"), reverse=True)]
    path = next((place for place in candidates if os.access(place, os.X_OK)), None)
    if path is None:
        raise NotTold("not found")
    said = _VERSION.search(say([path, "--version"], timeout_s=NCU_S))
    if said is None:
        raise NotTold("ncu does not say its version")
    return Ncu(said[1], shown(str(path)))


def counters() -> str:
    """Whether a profiler of this user may read the GPU's counters: `permitted`, or who may."""
    if not DRIVER_PARAMETERS.is_file():
        raise NotTold("told only where an NVIDIA driver is loaded")
    setting = _ADMIN_ONLY.search(DRIVER_PARAMETERS.read_text(encoding="utf-8"))
    if setting is None:
        raise NotTold("the driver does not say")
    if setting[1] == "0" or _is_admin(STATUS.read_text(encoding="utf-8")):
        return "permitted"
    return "for administrators only (the driver's NVreg_RestrictProfilingToAdminUsers=1)"


def _is_admin(status: str) -> bool:
    held = _CAPABILITIES.search(status)
    return held is not None and bool(int(held[1], 16) >> CAP_SYS_ADMIN & 1)
