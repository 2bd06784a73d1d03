"""What a launch's warps wait for most, from ncu's per-issue ratios, older percentages, samples, or its rule's text."""

from __future__ import annotations

import re
from typing import NamedTuple

from kernelgen.profile.ncu import STALL_RULE
from kernelgen.profile.table import KernelLaunch

_PER_ISSUE = re.compile(r"smsp__average_warps?_issue_stalled_(\w+)_per_issue_active\.ratio")
_FAMILIES = (
    _PER_ISSUE,
    re.compile(r"smsp__average_warps?_issue_stalled_(\w+)_per_warp_active\.pct"),
    re.compile(r"smsp__pcsamp_warps_issue_stalled_(\w+)(?<!_not_issued)"),
)
# what the per-issue ratios are parts of; their own sum can fall short of it, since a report may not list every reason
_WARP_LATENCY = ("smsp__average_warp_latency_per_inst_issued.ratio",)
# a selected warp issues, and one not selected lost to another that does: neither waits for anything
_NO_STALL = frozenset({"selected", "not_selected"})
_RULE = re.compile(
    r"spends (?P<cycles>[0-9.]+) cycles being stalled (?P<waiting>.+?)\. .*about (?P<percent>[0-9.]+)% of the total",
    re.DOTALL,
)
_WAITS_FOR = {
    "long_scoreboard": "data from global or local memory",
    "short_scoreboard": "shared memory or the special function units",
    "barrier": "the block's other warps at a barrier",
    "wait": "fixed latencies between dependent instructions",
    "mio_throttle": "room in the shared memory and special function queue",
    "lg_throttle": "room in the global memory queue",
    "tex_throttle": "room in the texture queue",
    "math_pipe_throttle": "a busy arithmetic pipe",
    "membar": "a memory barrier",
    "gmma": "a warpgroup matrix product",
    "warpgroup_arrive": "a warpgroup matrix product",
    "branch_resolving": "a branch target",
    "dispatch_stall": "the dispatcher",
    "drain": "stores to leave at the kernel's end",
    "imc_miss": "constants that missed the cache",
    "no_instruction": "instructions to be fetched",
    "no_instructions": "instructions to be fetched",
    "sleeping": "the end of their sleep",
}


class Stall(NamedTuple):
    """The top stall reason of a launch."""

    name: str
    """In words, such as `long scoreboard stalls`."""
    metric: str
    """The raw metric's name."""
    value: float
    """In `unit`."""
    unit: str
    """As the profiler gives it."""
    share_percent: float
    """Of all the time a warp spends between two instructions."""
    waiting: str
    """What the warps do meanwhile, as in `wait for data from global or local memory`."""


def top_stall(launch: KernelLaunch) -> Stall | None:
    """The largest stall reason, or None where the file says nothing of stalls or no warp stalled."""
    for family in _FAMILIES:
        reasons = {
            match[1]: (name, metric.number, metric.unit)
            for name, metric in launch.metrics.items()
            if metric.number is not None and metric.number >= 0 and (match := family.fullmatch(name))
        }
        waits = {reason: found for reason, found in reasons.items() if reason not in _NO_STALL}
        if any(number > 0 for _, number, _ in waits.values()):
            reason = max(waits, key=lambda key: waits[key][1])
            name, number, unit = waits[reason]
            total = sum(number for _, number, _ in reasons.values())
            latency = launch.find(_WARP_LATENCY) if family is _PER_ISSUE else None
            share = 100 * number / max(total, latency.number if latency else 0.0)
            words = reason.replace("_", " ").removesuffix(" stall")
            meanwhile = f"wait for {_WAITS_FOR[reason]}" if reason in _WAITS_FOR else f"stall on {words}"
            return Stall(f"{words} stalls", name, number, unit, share, meanwhile)
    return _from_rule(launch)


def _from_rule(launch: KernelLaunch) -> Stall | None:
    rule = launch.metrics.get(STALL_RULE)
    match = None if rule is None else _RULE.search(rule.text)
    if match is None:
        return None
    try:
        cycles, percent = float(match["cycles"]), float(match["percent"])
    except ValueError:
        return None
    waiting = " ".join(match["waiting"].split()).replace("waiting", "wait", 1)
    return Stall("warp stalls", STALL_RULE, cycles, "cycle", percent, waiting)
