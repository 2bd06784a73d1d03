"""All that was found out about this machine, each answer beside the reason where there is none."""

from __future__ import annotations

import platform
import sqlite3
import sys
from dataclasses import dataclass
from typing import Any

from kernelgen import __version__
from kernelgen.doctor.asking import Told
from kernelgen.doctor.compilers import Tool
from kernelgen.doctor.gpus import Driver, Gpu, Known, fitted
from kernelgen.doctor.levels import GPU
from kernelgen.doctor.models import Model
from kernelgen.doctor.ncu import Ncu
from kernelgen.doctor.packages import NOT_INSTALLED, Package
from kernelgen.doctor.places import Log

OLDEST_SQLITE = (3, 37, 0)
"""What the event log needs; `kernelgen.eventlog` says it too, and needs packages that may be missing here."""
PYTHONS = ((3, 11), (3, 14))
"""The oldest Python that kernelgen is made for, and the first it is not."""


@dataclass(frozen=True)
class Facts:
    """What was found out."""

    core: Told[list[Package]]
    """Packages that generating needs."""
    optional: Told[dict[str, str | None]]
    """Versions of further packages; None where one is not installed."""
    unmet: Told[list[str]]
    """Sentences about installed packages whose requirements are not met."""
    imported: Told[dict[str, Any]]
    """What importing and using the core came to."""
    torch_build: Told[tuple[str, tuple[int, int] | None]]
    """What torch is built for, and its CUDA version."""
    ptxas: Told[Tool]
    """Triton's assembler."""
    binary_tools: Told[bool]
    """Whether the tools that read machine code are there, Triton's or the toolkit's."""
    nvcc: Told[Tool]
    """CUDA's compiler."""
    gxx: Told[Tool]
    """The host's C++ compiler."""
    c_compiler: Told[Tool]
    """The host's C compiler."""
    listed: Told[tuple[Gpu, ...]]
    """GPUs by nvidia-smi."""
    driver: Told[Driver]
    """What a CUDA program finds."""
    hardware: Told[tuple[Known, ...]]
    """The hardware configs."""
    ncu: Told[Ncu]
    """Nsight Compute."""
    counters: Told[str]
    """Whether it may read counters."""
    containment: Told[dict[str, Any]]
    """What contains a candidate."""
    models: Told[tuple[Model, ...]]
    """Language models."""
    free_gib: Told[float]
    """Room for what is written."""
    log: Told[Log]
    """The event log here."""

    def gpus(self) -> list[Gpu]:
        """The GPUs there are, usable or not, with the hardware each fits."""
        driver = self.driver.value
        found = self.listed.value or (driver.gpus if driver else ())
        return [fitted(gpu, self.hardware.value or ()) for gpu in found]

    def no_gpu(self) -> str | None:
        """Why torch can use no GPU; None where it can."""
        driver = self.driver.value
        if not self.gpus():
            return "no GPU here" if driver is None else driver.problem or "the driver shows no GPU to this process"
        if not self.version("torch"):
            return "torch is not installed"
        build, built_for = self.torch_build.value or (f"build of torch: {self.torch_build.why_not}", None)
        if built_for is None:
            return f"torch {self.version('torch')} is a {build}" if self.torch_build.value else build
        if driver is None:
            return f"the driver: {self.driver.why_not}"
        if driver.cuda is not None and driver.cuda[0] < built_for[0]:
            return f"the driver takes CUDA {driver.cuda[0]} at most"
        return driver.problem or (None if driver.gpus else "the driver shows none to this process")

    def version(self, package: str) -> str | None:
        """The version of a package beyond the core's; None where it is not installed."""
        return (self.optional.value or {}).get(package)

    def have(self) -> frozenset[str]:
        """What judging can build on, by the names `levels` has for it."""
        tools: dict[str, Told[Any]] = {
            "ptxas": self.ptxas,
            "nvcc": self.nvcc,
            "g++": self.gxx,
            "a C compiler": self.c_compiler,
            "cuobjdump": self.binary_tools,
        }
        found = {name for name in ("torch", "triton", "tilelang", "numpy") if self.version(name)}
        found |= {name for name, told in tools.items() if told.value is not None}
        return frozenset(found | ({GPU} if self.no_gpu() is None else set()))

    def contained(self) -> bool | None:
        """Whether candidates can be contained here; None where that could not be told."""
        return None if self.containment.value is None else not self.containment.value.get("broken")

    def core_problems(self) -> list[str]:
        """What keeps generating on the playbook from running; empty where it can."""
        packages = [package for package in self.core.value or () if package.problem]
        absent = [package.name for package in packages if package.problem == NOT_INSTALLED]
        problems = [f"not installed: {', '.join(absent)}"] if absent else []
        problems += [
            f"{found.name} {found.version}: {found.problem}" for found in packages if found.version is not None
        ]
        if self.core.why_not:
            problems.append(f"packages: {self.core.why_not}")
        if not PYTHONS[0] <= sys.version_info[:2] < PYTHONS[1]:
            problems.append(f"Python {platform.python_version()}: kernelgen is made for 3.11 to 3.13")
        if sqlite3.sqlite_version_info < OLDEST_SQLITE:
            wanted = ".".join(map(str, OLDEST_SQLITE))
            problems.append(f"SQLite {sqlite3.sqlite_version}: the event log needs {wanted}; use another Python")
        return problems or self._use_problems()

    def _use_problems(self) -> list[str]:
        """What importing and using the core's packages came to, where all are there."""
        found = self.imported.value
        if found is None:
            return [f"trying the packages: {self.imported.why_not}"]
        broken = {**found["imports"], **found["does"]}
        problems = [f"{name}: {why}" for name, why in broken.items() if why is not None]
        return problems or ([f"trying the packages {found['failure']}"] if "failure" in found else [])


def of_itself() -> dict[str, str]:
    """kernelgen, Python, SQLite and the platform; the platform's words have no host name in them."""
    return {
        "kernelgen": __version__,
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "platform": platform.platform(),
    }
