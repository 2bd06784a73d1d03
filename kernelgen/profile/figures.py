"""The figures a region is judged by, read from a launch whatever the profiler calls them and in whatever unit.

Names drift between profiler versions and pages, so each quantity lists all it is known under, the exact ones first. A
quantity the file lacks is None. A unit of the wrong kind, or a value no GPU can show, is an error that names both.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernelgen.errors import ProfileError
from kernelgen.profile.table import Found, KernelLaunch, short_name

_SIZES = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}  # ncu counts in thousands, not 1024s

_SECONDS_US = {"n": 1e-3, "u": 1.0, "m": 1e3, "": 1e6}

TIME_US = {f"{prefix}{unit}": size for unit in ("s", "second") for prefix, size in _SECONDS_US.items()}
BYTES = {f"{prefix}byte": size for prefix, size in _SIZES.items()}
BYTES_PER_S = {f"{unit}/{per}": size for unit, size in BYTES.items() for per in ("s", "second")}
PERCENT = {"%": 1.0}


@dataclass(frozen=True, slots=True)
class Quantity:
    """One thing a launch is asked for."""

    title: str
    """In words, for messages."""
    units: dict[str, float]
    """Units it may come in, each with its factor to the base unit."""
    most: float
    """More than this, in the base unit, no GPU shows."""
    names: tuple[str, ...]
    """What profilers call it: metric names, then `Section Name: Metric Name` of ncu's details page."""


LONGEST_US = 3.6e9  # one hour
MOST_BYTES = 1e18
MOST_BYTES_PER_S = 1e15
MOST_BLOCKS = 2.0**63
MOST_PERCENT = 200.0  # ncu's percentages overshoot 100 where passes disagree

TRACE_TIME = "dur"
"""A kernel's duration in a torch.profiler trace."""
MEAN_TIME = "time (ns) / count"
"""Proton's time of one launch: it sums the launches of a kernel."""
ESTIMATED_OCCUPANCY = "est. achieved occupancy %"
"""torch.profiler's estimate from registers, shared memory and launch shape: no counter."""

TIME = Quantity(
    "time",
    TIME_US,
    LONGEST_US,
    (
        "gpu__time_duration.sum",
        "gpu__time_duration.avg",
        "GPU Speed Of Light Throughput: Duration",
        "GPU Speed Of Light: Duration",
        TRACE_TIME,
        MEAN_TIME,
    ),
)
DRAM_READ = Quantity("bytes read from DRAM", BYTES, MOST_BYTES, ("dram__bytes_read.sum",))
DRAM_WRITE = Quantity("bytes written to DRAM", BYTES, MOST_BYTES, ("dram__bytes_write.sum",))
DRAM_TOTAL = Quantity("DRAM bytes", BYTES, MOST_BYTES, ("dram__bytes.sum",))
DRAM_RATE = Quantity(
    "DRAM bytes a second",
    BYTES_PER_S,
    MOST_BYTES_PER_S,
    ("dram__bytes.sum.per_second", "Memory Workload Analysis: Memory Throughput"),
)
DRAM_PERCENT = Quantity(
    "DRAM throughput",
    PERCENT,
    MOST_PERCENT,
    (
        "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
        "dram__throughput.avg.pct_of_peak_sustained_elapsed",
        "GPU Speed Of Light Throughput: DRAM Throughput",
        "GPU Speed Of Light: DRAM Throughput",
    ),
)
SM_PERCENT = Quantity(
    "SM throughput",
    PERCENT,
    MOST_PERCENT,
    (
        "sm__throughput.avg.pct_of_peak_sustained_elapsed",
        "GPU Speed Of Light Throughput: Compute (SM) Throughput",
        "GPU Speed Of Light: Compute (SM) Throughput",
    ),
)
OCCUPANCY = Quantity(
    "achieved occupancy",
    PERCENT,
    MOST_PERCENT,
    ("sm__warps_active.avg.pct_of_peak_sustained_active", "Occupancy: Achieved Occupancy"),
)
OCCUPANCY_ESTIMATE = Quantity("estimated occupancy", PERCENT, MOST_PERCENT, (ESTIMATED_OCCUPANCY,))
GRID_BLOCKS = Quantity(
    "blocks", {"": 1.0, "block": 1.0}, MOST_BLOCKS, ("launch__grid_size", "Launch Statistics: Grid Size")
)
ISSUE_ACTIVE = Quantity(
    "issue slots busy",
    PERCENT,
    MOST_PERCENT,
    ("smsp__issue_active.avg.pct_of_peak_sustained_active", "Scheduler Statistics: One or More Eligible"),
)


@dataclass(frozen=True, slots=True)
class Figures:
    """One launch's figures in base units."""

    time_us: float
    dram_bytes: float | None
    dram_percent: float | None
    """Of the peak the profiler knows."""
    sm_percent: float | None
    occupancy_percent: float | None
    """Measured, else the profiler's estimate."""
    occupancy_estimated: bool
    """Whether it is the estimate."""


def figures(launch: KernelLaunch, file: str) -> Figures:
    """The launch's figures; ProfileError naming file and line where it has no time, or one cannot be right."""
    time_us = value(launch, TIME, file)
    if time_us is None:
        raise ProfileError(
            f"{file}:{launch.line}: launch '{short_name(launch.name)}' has no duration (gpu__time_duration.sum, or "
            "Duration of section GPU Speed Of Light Throughput); profile again with ncu --set full"
        )
    measured, estimate = value(launch, OCCUPANCY, file), value(launch, OCCUPANCY_ESTIMATE, file)
    return Figures(
        time_us=time_us,
        dram_bytes=_dram_bytes(launch, time_us, file),
        dram_percent=value(launch, DRAM_PERCENT, file),
        sm_percent=value(launch, SM_PERCENT, file),
        occupancy_percent=estimate if measured is None else measured,
        occupancy_estimated=measured is None and estimate is not None,
    )


def value(launch: KernelLaunch, quantity: Quantity, file: str) -> float | None:
    """The quantity in its base unit, or None where the launch lacks it."""
    found = launch.find(quantity.names)
    return None if found is None else _base(found, quantity, launch, file)


def _base(found: Found, quantity: Quantity, launch: KernelLaunch, file: str) -> float:
    factor = quantity.units.get(found.unit)
    if factor is None:
        raise ProfileError(
            f"{file}:{launch.line}: {found.name} has the unit '{found.unit}', but {quantity.title} comes in "
            f"{', '.join(quantity.units)}; export the file again as ncu prints it"
        )
    base = found.number * factor
    if not 0 <= base <= quantity.most:
        raise ProfileError(
            f"{file}:{launch.line}: {found.name} reads {found.number:g} {found.unit}, which no GPU shows; the file is "
            "damaged or edited, export it again"
        )
    return base


def _dram_bytes(launch: KernelLaunch, time_us: float, file: str) -> float | None:
    """Read plus written; else their sum as one metric; else rate times time."""
    read, written = value(launch, DRAM_READ, file), value(launch, DRAM_WRITE, file)
    if read is not None and written is not None:
        return read + written
    total = value(launch, DRAM_TOTAL, file)
    if total is not None:
        return total
    rate = value(launch, DRAM_RATE, file)
    return None if rate is None else rate * time_us * 1e-6
