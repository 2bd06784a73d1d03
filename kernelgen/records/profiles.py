"""Profiles: where the time goes in a region."""

from __future__ import annotations

from kernelgen.config import Frozen
from kernelgen.records.base import Bottleneck, Digest, Id


class Launch(Frozen):
    """One kernel launch of a profile."""

    name: str
    """The kernel's name as the profiler gives it."""
    time_us: float
    """Duration."""
    dram_bytes: float | None
    """Bytes moved to and from device memory."""
    grid: str
    """As the profiler prints it."""
    block: str
    """As the profiler prints it."""


class LimitingFactor(Frozen):
    """What holds the region back, and the metric that says so."""

    name: str
    """Such as `DRAM bandwidth` or `long scoreboard stalls`."""
    metric: str
    """The raw metric's name."""
    value: float
    """Its value."""
    unit: str
    """Its unit, as the profiler gives it."""
    sentence: str
    """One sentence for the prompt."""


class Profile(Frozen):
    """Where the time goes in a region."""

    id: Id
    """Of this import."""
    target: str
    """Target name."""
    hardware: str
    """Hardware name."""
    shape: str
    """The target's shape it was taken at."""
    dims: dict[str, int]
    """That shape's dimensions."""
    subject: str
    """What was profiled, in a phrase: the champion's id and kernel names, or what ran instead of it."""
    subject_source_digest: Digest | None
    """Digest of the champion source that was profiled; None when it was something else."""
    source_file: str
    """File name, without folders."""
    source_digest: Digest
    """Digest of the file's bytes."""
    format: str
    """Such as `ncu raw csv`."""
    device: str
    """The device as the profiler names it, or empty."""
    launches: tuple[Launch, ...]
    """The launches summed as the region, in order."""
    dominant: int
    """Index of the launch that takes most time."""
    time_us: float
    """Sum over the launches."""
    dram_bytes: float | None
    """Sum over the launches."""
    flops: float
    """Of the region by the target's formula."""
    floor_bytes: float
    """Of the region by the target's formula."""
    floor_us: float
    """The larger of bytes over bandwidth, flops over peak, and the launch floor."""
    floor_by: str
    """Which of the three, as in `dram bytes`."""
    dram_percent: float | None
    """DRAM throughput over the region, percent of the hardware's ceiling."""
    sm_percent: float | None
    """SM throughput, time-weighted percent of peak."""
    occupancy_percent: float | None
    """Achieved occupancy, time-weighted."""
    intensity: float
    """FLOPs a byte, by the target's formulas."""
    ridge: float
    """FLOPs a byte at which the hardware's roofline turns."""
    bottleneck: Bottleneck
    """Class of the region."""
    limiting_factor: LimitingFactor
    """What limits it."""
    target_metric: str
    """What to improve, with figure and goal."""
    raw: Digest
    """Digest of the stored text with every launch's raw metric names, units and values."""
