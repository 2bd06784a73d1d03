"""The GPUs: what NVIDIA's own tool says of them, what a CUDA program can open, and which hardware config they fit."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from kernelgen.catalog import Catalog, plain_yaml
from kernelgen.doctor.asking import NotTold, ask_child, say

SMI = "nvidia-smi"
FIELDS = (
    "name",
    "memory.total",
    "compute_cap",
    "driver_version",
    "clocks.sm",
    "clocks.max.sm",
    "clocks.mem",
    "mig.mode.current",
)
MIB_PER_GIB = 1024
GIB = 1 << 30
DRIVER_S = 4.0
"""Where nothing keeps the driver loaded, it wakes every GPU for whoever asks, which takes seconds."""


@dataclass(frozen=True)
class Gpu:
    """One GPU."""

    name: str
    """The vendor's name."""
    memory_gib: float | None
    """Its memory, in GiB."""
    compute_capability: int | None
    """As Triton counts it: 90 for Hopper."""
    driver: str | None = None
    """The driver's version; None where nvidia-smi does not say."""
    sm_clock_mhz: int | None = None
    """Clock of its multiprocessors at this moment."""
    max_sm_clock_mhz: int | None = None
    """The highest they reach."""
    memory_clock_mhz: int | None = None
    """Clock of its memory at this moment."""
    mig: str | None = None
    """Whether it is split into instances: `Enabled`, `Disabled`; None where it cannot be."""
    hardware: str | None = None
    """The choice of `hardware=` that describes it; None where none does."""


@dataclass(frozen=True)
class Driver:
    """What a CUDA program finds."""

    cuda: tuple[int, int] | None
    """The newest CUDA version the driver takes; None without a driver."""
    gpus: tuple[Gpu, ...]
    """What it can open."""
    problem: str | None
    """Why it can open none."""


@dataclass(frozen=True)
class Known:
    """A hardware config, as far as a GPU is compared with it."""

    name: str
    """The choice."""
    compute_capability: int
    """As Triton counts it."""


def listed() -> tuple[Gpu, ...]:
    """All GPUs by nvidia-smi."""
    path = shutil.which(SMI)
    if path is None:
        raise NotTold(f"{SMI} is not on PATH")
    said = say([path, f"--query-gpu={','.join(FIELDS)}", "--format=csv,noheader,nounits"], timeout_s=DRIVER_S)
    rows = [[cell.strip() for cell in line.split(",")] for line in said.splitlines() if line.strip()]
    if any(len(row) != len(FIELDS) for row in rows):
        raise NotTold(f"{SMI} answers in another form: {said.strip().splitlines()[0]}")
    return tuple(_of_row(row) for row in rows)


def driver() -> Driver:
    """What a CUDA program finds; in a process of its own, which may hang in the driver."""
    found = ask_child("cuda", timeout_s=DRIVER_S)
    if "cuda" not in found:
        raise NotTold(str(found.get("failure")))
    devices = [_of_device(device) for device in found["devices"]]
    major_minor = tuple(found["cuda"]) if found["cuda"] else None
    return Driver(major_minor, tuple(devices), found["problem"])


def known(choices: Catalog) -> tuple[Known, ...]:
    """The hardware configs there are."""
    files = {name: plain_yaml(choices.locate("hardware", name).path) for name in choices.names("hardware")}
    return tuple(Known(name, int(file["compute_capability"])) for name, file in files.items())


def fitted(gpu: Gpu, configs: Sequence[Known]) -> Gpu:
    """The GPU with the hardware config of its name and compute capability; the same architecture alone is not enough.

    Ceilings differ between cards of an architecture, and floors are computed from them.
    """
    words = gpu.name.lower().replace("-", " ").split()
    fits = [config.name for config in configs if config.compute_capability == gpu.compute_capability]
    return replace(gpu, hardware=next((name for name in fits if name in words), None))


def _of_row(row: list[str]) -> Gpu:
    name, memory, capability, version, clock, highest, memory_clock, mig = row
    memory_mib = _whole(memory)
    return Gpu(
        name=name,
        memory_gib=None if memory_mib is None else round(memory_mib / MIB_PER_GIB, 1),
        compute_capability=_whole(capability.replace(".", "")),
        driver=version,
        sm_clock_mhz=_whole(clock),
        max_sm_clock_mhz=_whole(highest),
        memory_clock_mhz=_whole(memory_clock),
        mig=None if mig.startswith("[") else mig,
    )


def _of_device(device: dict[str, Any]) -> Gpu:
    major, minor = device["capability"]
    return Gpu(device["name"], round(device["bytes"] / GIB, 1), 10 * major + minor)


def _whole(text: str) -> int | None:
    return int(text) if text.isdecimal() else None
