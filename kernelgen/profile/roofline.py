"""Where a region stands on its hardware's roofline: sums over its launches, its floor, and the class of its bottleneck.

DRAM is counted against the ceiling in the hardware's config (measured where known), so a region can reach 100%. The
rule is the one of kernel profiling agents: the busier of SM and DRAM decides; at 95% and more it is the roofline; under
60% on both nothing is used up, and the region is latency bound where short launches hold half its time, else
underutilised. Where the file has no counter, the least the formula needs stands in for it in that rule alone: the
figure stays None.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from kernelgen.config import Hardware
from kernelgen.errors import ProfileError
from kernelgen.profile.figures import Figures, figures
from kernelgen.profile.table import KernelLaunch
from kernelgen.records import Bottleneck

Peak = Literal["bf16", "fp8"]

AT_ROOFLINE_PERCENT = 95.0
UNDERUTILISED_PERCENT = 60.0
SHORT_LAUNCH_FLOORS = 5.0
"""A launch shorter than this many empty kernels is mostly launching."""
SHORT_SHARE_PERCENT = 50.0
"""Short launches that hold this much of the time make a region latency bound."""
COVERED_PERCENT = 90.0
"""Launches with a figure must hold this much of the time for its average to stand for the region."""


@dataclass(frozen=True, slots=True)
class Region:
    """The chosen launches as one."""

    launches: tuple[KernelLaunch, ...]
    each: tuple[Figures, ...]
    """Figures by launch."""
    dominant: int
    """Index of the launch that takes most time."""
    time_us: float
    """Sum."""
    dram_bytes: float | None
    """Sum; None unless every launch has it."""
    dram_percent: float | None
    """Bytes over time over the hardware's ceiling; without bytes the time-weighted share, put on the same ceiling."""
    sm_percent: float | None
    """Time-weighted percent of peak."""
    occupancy_percent: float | None
    """Time-weighted."""
    occupancy_estimated: bool
    """Whether any of it is the profiler's estimate and no measurement."""


@dataclass(frozen=True, slots=True)
class Roofline:
    """What the hardware allows the region's formula."""

    flops: float
    floor_bytes: float
    bytes_per_s: float
    """Ceiling of device memory."""
    flops_per_s: float
    """Ceiling of the peak that was chosen."""
    floor_us: float
    """The larger of bytes over bandwidth, FLOPs over peak, and the launch floor."""
    floor_by: str
    """Which of the three: `dram bytes`, `flops` or `launch`."""
    intensity: float
    """FLOPs a byte, by formula."""
    ridge: float
    """FLOPs a byte where the roofline turns."""


def region(launches: Sequence[KernelLaunch], hardware: Hardware, file: str) -> Region:
    """Sum the launches; ProfileError where one has no time or all of them together take none."""
    each = tuple(figures(launch, file) for launch in launches)
    times = [one.time_us for one in each]
    time_us = math.fsum(times)
    if time_us < min(1e-3, hardware.launch_floor_us.value):
        raise ProfileError(f"{file}: the chosen launches take no time at all; the file is damaged, export it again")
    moved = [one.dram_bytes for one in each if one.dram_bytes is not None]
    dram_bytes = math.fsum(moved) if len(moved) == len(each) else None
    ceiling = float(hardware.dram_bytes_per_s.value)
    if dram_bytes is not None:
        dram_percent: float | None = 100 * dram_bytes / (time_us * 1e-6) / ceiling
    else:
        share = _weighted([one.dram_percent for one in each], times)
        dram_percent = None if share is None else share * float(hardware.dram_peak_bytes_per_s.value) / ceiling
    return Region(
        launches=tuple(launches),
        each=each,
        dominant=times.index(max(times)),
        time_us=time_us,
        dram_bytes=dram_bytes,
        dram_percent=dram_percent,
        sm_percent=_weighted([one.sm_percent for one in each], times),
        occupancy_percent=_weighted([one.occupancy_percent for one in each], times),
        occupancy_estimated=any(one.occupancy_estimated for one in each),
    )


def _weighted(values: Sequence[float | None], times: Sequence[float]) -> float | None:
    """Average weighted by time over the launches that have the figure, or None where they cover too little."""
    known = [(value, time) for value, time in zip(values, times, strict=True) if value is not None]
    covered = math.fsum(time for _, time in known)
    if not known or covered == 0 or covered < COVERED_PERCENT / 100 * math.fsum(times):
        return None
    return math.fsum(value * time for value, time in known) / covered


def roofline(hardware: Hardware, *, flops: float, floor_bytes: float, peak: Peak = "bf16") -> Roofline:
    """The floor of a region with these FLOPs and bytes; ProfileError where the hardware has no such peak."""
    chosen = hardware.bf16_flops_per_s if peak == "bf16" else hardware.fp8_flops_per_s
    if chosen is None:
        raise ProfileError(f"hardware {hardware.name} has no {peak} peak; import against bf16")
    flops_per_s, bytes_per_s = float(chosen.value), float(hardware.dram_bytes_per_s.value)
    parts = {
        "dram bytes": floor_bytes / bytes_per_s * 1e6,
        "flops": flops / flops_per_s * 1e6,
        "launch": float(hardware.launch_floor_us.value),
    }
    floor_by = max(parts, key=lambda part: parts[part])
    return Roofline(
        flops=flops,
        floor_bytes=floor_bytes,
        bytes_per_s=bytes_per_s,
        flops_per_s=flops_per_s,
        floor_us=parts[floor_by],
        floor_by=floor_by,
        intensity=flops / floor_bytes,
        ridge=flops_per_s / bytes_per_s,
    )


def short_launches(region: Region, hardware: Hardware) -> list[int]:
    """Indices of the launches that are mostly launching."""
    limit = SHORT_LAUNCH_FLOORS * float(hardware.launch_floor_us.value)
    return [index for index, one in enumerate(region.each) if one.time_us < limit]


def classify(region: Region, roof: Roofline, hardware: Hardware) -> Bottleneck:
    """The class of the region's bottleneck, by the rule above."""
    dram, sm = shares(region, roof)
    busier = max(dram, sm)
    if busier >= AT_ROOFLINE_PERCENT or 100 * roof.floor_us / region.time_us >= AT_ROOFLINE_PERCENT:
        return "at_roofline"
    if busier >= UNDERUTILISED_PERCENT:
        return "memory_bound" if dram >= sm else "compute_bound"
    short_us = math.fsum(region.each[index].time_us for index in short_launches(region, hardware))
    return "latency_bound" if 100 * short_us / region.time_us >= SHORT_SHARE_PERCENT else "underutilised"


def shares(region: Region, roof: Roofline) -> tuple[float, float]:
    """DRAM and SM use in percent: measured, else the least that the formula needs in that time."""
    seconds = region.time_us * 1e-6
    needed_dram = 100 * roof.floor_bytes / roof.bytes_per_s / seconds
    needed_sm = 100 * roof.flops / roof.flops_per_s / seconds
    return (
        needed_dram if region.dram_percent is None else region.dram_percent,
        needed_sm if region.sm_percent is None else region.sm_percent,
    )
