"""Says what limits a region, with the metric and value that show it, and what to improve, with figure and goal.

The witness is one launch: of those that load the unit in question the one that adds most to the region, otherwise the
longest. Every number in a sentence is in the file, in the hardware's config or from the target's formulas.
"""

from __future__ import annotations

from kernelgen.config import Hardware
from kernelgen.profile.figures import (
    DRAM_PERCENT,
    DRAM_RATE,
    DRAM_READ,
    DRAM_TOTAL,
    GRID_BLOCKS,
    ISSUE_ACTIVE,
    OCCUPANCY,
    SM_PERCENT,
    TIME,
    Figures,
)
from kernelgen.profile.roofline import (
    AT_ROOFLINE_PERCENT,
    UNDERUTILISED_PERCENT,
    Region,
    Roofline,
    shares,
    short_launches,
)
from kernelgen.profile.stalls import top_stall
from kernelgen.profile.table import Found, short_name
from kernelgen.records import Bottleneck, LimitingFactor

EXCESS = 1.2
"""Traffic above this many times the formula's bytes is worth cutting before its rate is."""

_BUSY = {"DRAM bandwidth": (DRAM_PERCENT, DRAM_RATE, DRAM_TOTAL, DRAM_READ), "SM throughput": (SM_PERCENT,)}

_IDLE = [("idle issue slots", ISSUE_ACTIVE), ("occupancy", OCCUPANCY)]


def limiting_factor(region: Region, roof: Roofline, bottleneck: Bottleneck, hardware: Hardware) -> LimitingFactor:
    """What holds the region back, by its class."""
    dram, sm = shares(region, roof)
    if bottleneck == "latency_bound":
        return _launching(region, hardware)
    if bottleneck != "underutilised":
        name = "DRAM bandwidth" if dram >= sm else "SM throughput"
        return _busy(name, region, _heaviest(name, region)) or _time(region, roof)
    one = region.each[region.dominant]
    loads = {"DRAM bandwidth": one.dram_percent or 0.0, "SM throughput": one.sm_percent or 0.0}
    name = max(loads, key=lambda key: loads[key])
    loaded = _busy(name, region, region.dominant) if loads[name] >= UNDERUTILISED_PERCENT else None
    return loaded or _stalled(region) or _idle(region, hardware) or _time(region, roof)


def target_metric(region: Region, roof: Roofline, bottleneck: Bottleneck) -> str:
    """What to improve, in one sentence with figure and goal."""
    aim = f"time: {_us(region.time_us)} now, the floor is {_us(roof.floor_us)} (by {roof.floor_by})"
    count = len(region.launches)
    dram, sm = shares(region, roof)
    memory = roof.floor_by != "flops" if bottleneck == "underutilised" else dram >= sm
    parts = [aim]
    if count > 1 and bottleneck in ("latency_bound", "underutilised"):
        parts.append(f"launches: {count} now, goal 1")
    if bottleneck != "latency_bound" and (memory or (bottleneck == "underutilised" and _excessive(region, roof))):
        parts.append(_traffic(region, roof))
    if bottleneck != "latency_bound" and not memory:
        parts.append(_arithmetic(region, roof))
    return "; ".join(parts)


def _excessive(region: Region, roof: Roofline) -> bool:
    """Whether more bytes are moved than the formula needs, as far as they were measured."""
    return (region.dram_bytes or 0.0) > EXCESS * roof.floor_bytes


def _traffic(region: Region, roof: Roofline) -> str:
    if region.dram_bytes is not None and _excessive(region, roof):
        return f"DRAM traffic: {_bytes(region.dram_bytes)} now, {_bytes(roof.floor_bytes)} needed"
    goal = f"of {roof.bytes_per_s / 1e12:.2f} TB/s now, goal {AT_ROOFLINE_PERCENT:.0f}%"
    if region.dram_percent is not None:
        return f"DRAM throughput: {region.dram_percent:.1f}% {goal}"
    needed = 100 * roof.floor_bytes / (region.time_us * 1e-6) / roof.bytes_per_s
    return f"DRAM throughput, counting only the bytes needed: {needed:.1f}% {goal}"


def _arithmetic(region: Region, roof: Roofline) -> str:
    now = roof.flops / (region.time_us * 1e-6) / 1e12
    return f"useful arithmetic: {now:.1f} TFLOP/s now, the ceiling is {roof.flops_per_s / 1e12:.0f} TFLOP/s"


def _where(region: Region, index: int) -> str:
    """The launch, and what part of the region it is."""
    name = short_name(region.launches[index].name)
    if len(region.launches) == 1:
        return f"{name} takes {_us(region.time_us)}"
    share = 100 * region.each[index].time_us / region.time_us
    who = f"the longest, {name}," if index == region.dominant else name
    return f"{len(region.launches)} launches take {_us(region.time_us)}; {who} takes {share:.0f}% of it"


def _heaviest(name: str, region: Region) -> int:
    """The launch that adds most to the use of a unit."""

    def load(one: Figures) -> tuple[float, float]:
        percent = one.dram_percent if name == "DRAM bandwidth" else one.sm_percent
        return one.time_us * (percent or 0.0), one.time_us

    return max(range(len(region.each)), key=lambda index: load(region.each[index]))


def _busy(name: str, region: Region, index: int) -> LimitingFactor | None:
    where = _where(region, index)
    for quantity in _BUSY[name]:
        found = region.launches[index].find(quantity.names)
        if found is not None and found.unit == "%":
            return _factor(name, found, f"{where} and uses {name} at {found.number:.1f}% of peak ({found.name})")
        if found is not None:
            figure = f"{found.number:.4g} {found.unit}"
            return _factor(name, found, f"{where} with {quantity.title} at {figure} ({found.name})")
    return None


def _launching(region: Region, hardware: Hardware) -> LimitingFactor:
    short = short_launches(region, hardware)
    held = 100 * sum(region.each[index].time_us for index in short) / region.time_us
    found = region.launches[region.dominant].find(TIME.names)
    assert found is not None, "a region's launches have a time"
    count = len(region.launches)
    each = "it is" if count == 1 else f"{len(short)} of them, {held:.0f}% of the time, are"
    floor = _us(float(hardware.launch_floor_us.value))
    return _factor(
        "launch count" if count > 1 else "launch latency",
        found,
        f"{_where(region, region.dominant)}; {each} so short that launching decides, at {floor} for an empty kernel",
    )


def _stalled(region: Region) -> LimitingFactor | None:
    stall = top_stall(region.launches[region.dominant])
    if stall is None:
        return None
    sentence = (
        f"{_where(region, region.dominant)}; there warps {stall.waiting} for {stall.share_percent:.0f}% of their time "
        f"({stall.metric} reads {f'{stall.value:.4g} {stall.unit}'.strip()})"
    )
    return LimitingFactor(name=stall.name, metric=stall.metric, value=stall.value, unit=stall.unit, sentence=sentence)


def _idle(region: Region, hardware: Hardware) -> LimitingFactor | None:
    """Without stall reasons: idle issue slots, else few warps; a persistent kernel has few by design."""
    launch = region.launches[region.dominant]
    blocks = launch.find(GRID_BLOCKS.names)
    persistent = blocks is not None and blocks.number <= hardware.sm_count.value
    causes = [("idle issue slots", ISSUE_ACTIVE)] if persistent else _IDLE
    for name, quantity in causes:
        found = launch.find(quantity.names)
        if found is not None:
            where = _where(region, region.dominant)
            return _factor(name, found, f"{where} with {quantity.title} at {found.number:.1f}% ({found.name})")
    return None


def _time(region: Region, roof: Roofline) -> LimitingFactor:
    """The file has no counter that says why."""
    found = region.launches[region.dominant].find(TIME.names)
    assert found is not None, "a region's launches have a time"
    ratio = region.time_us / roof.floor_us
    sentence = f"{_where(region, region.dominant)}; in all {ratio:.1f} times the floor, and no counter says why"
    return _factor("time", found, sentence)


def _factor(name: str, found: Found, sentence: str) -> LimitingFactor:
    return LimitingFactor(name=name, metric=found.name, value=found.number, unit=found.unit, sentence=sentence)


def _us(microseconds: float) -> str:
    return f"{microseconds:.1f} us"


def _bytes(count: float) -> str:
    for size, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= size:
            return f"{count / size:.2f} {unit}"
    return f"{count:.0f} B"
