"""torch.profiler's Chrome trace (`export_chrome_trace`, `.json` or `.json.gz`): the GPU kernels among its events.

Copies and fills that ran as such (categories `gpu_memcpy`, `gpu_memset`) are no kernels and are left out, as ncu leaves
them out. A trace has times and launch shapes but no counters, so nothing is known of DRAM; its occupancy is an estimate
from the launch shape (`est. achieved occupancy %`), and 0 there means that there is none. Read event by event.
Format: Kineto's `output_json.cpp`; older releases write the category `Kernel`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from kernelgen.errors import ProfileError
from kernelgen.profile.figures import ESTIMATED_OCCUPANCY, TRACE_TIME
from kernelgen.profile.jsonfigures import MetricPool, dims, storable
from kernelgen.profile.jsonscan import JsonScanner
from kernelgen.profile.table import KernelLaunch, LaunchTable, Metric, short_name
from kernelgen.profile.textfile import pieces, shown

TORCH = "torch.profiler trace"

_EVENTS, _DEVICES = "traceEvents", "deviceProperties"
_CATEGORIES = ("kernel", "Kernel")
_UNITS = {ESTIMATED_OCCUPANCY: "%"}
# what says which launch it was, and not how it went
_IDENTITY = frozenset({"External id", "external id", "correlation", "device", "context", "stream", "grid", "block"})
_AGAIN = "record it again with prof.export_chrome_trace"


class _Seen(NamedTuple):
    """A kernel event, before the devices are known."""

    name: str
    grid: str
    block: str
    device: Any
    line: int
    metrics: Mapping[str, Metric]


def is_trace(head: str) -> bool:
    """Whether the head of a file shows a trace's list of events."""
    return head.lstrip().startswith("{") and f'"{_EVENTS}"' in head


def read_trace(path: Path) -> LaunchTable:
    """All kernel launches of a trace, in the file's order."""
    file = shown(path)
    scanner = JsonScanner(pieces(path), file)
    pool = MetricPool()
    seen: list[_Seen] = []
    devices: dict[Any, dict[str, Any]] = {}
    for key in scanner.members():
        if key == _EVENTS:
            seen += [_kernel(event, pool, scanner.line, file) for event in scanner.items() if _is_kernel(event)]
        elif key == _DEVICES:
            devices = _by_id(scanner.value())
        else:
            scanner.value()
    if not seen:
        raise ProfileError(
            f"{file} holds no GPU kernels; profile with ProfilerActivity.CUDA among the activities, on a GPU"
        )
    return LaunchTable(TORCH, tuple(_launch(one, devices) for one in seen))


def _is_kernel(event: Any) -> bool:
    return isinstance(event, dict) and event.get("cat") in _CATEGORIES and event.get("ph") == "X"


def _kernel(event: dict[str, Any], pool: MetricPool, line: int, file: str) -> _Seen:
    name, duration, given = event.get("name"), event.get("dur"), event.get("args")
    if not isinstance(name, str) or not name:
        raise ProfileError(f"{file}:{line}: a kernel event has no name; the file is damaged, {_AGAIN}")
    if isinstance(duration, bool) or not isinstance(duration, int | float):
        raise ProfileError(f"{file}:{line}: kernel event '{short_name(storable(name))}' has no dur; {_AGAIN}")
    args = given if isinstance(given, dict) else {}
    metrics = {TRACE_TIME: pool.metric("us", duration)}
    for key, value in args.items():
        unknown = key == ESTIMATED_OCCUPANCY and value == 0
        if key not in _IDENTITY and isinstance(value, str | int | float) and not unknown:
            metrics[pool.name(key)] = pool.metric(_UNITS.get(key, ""), value)
    grid, block = dims(args.get("grid")), dims(args.get("block"))
    return _Seen(pool.name(name), grid, block, args.get("device"), line, metrics)


def _by_id(properties: Any) -> dict[Any, dict[str, Any]]:
    """The entries of `deviceProperties` by id; what has another form tells nothing."""
    entries = properties if isinstance(properties, list) else []
    return {one["id"]: one for one in entries if isinstance(one, dict) and isinstance(one.get("id"), int)}


def _launch(seen: _Seen, devices: Mapping[Any, dict[str, Any]]) -> KernelLaunch:
    device = devices.get(seen.device, {}) if isinstance(seen.device, int) else {}
    major, minor = device.get("computeMajor"), device.get("computeMinor")
    known = isinstance(major, int) and isinstance(minor, int)
    return KernelLaunch(
        name=seen.name,
        grid=seen.grid,
        block=seen.block,
        capability=f"{major}.{minor}" if known else "",
        device=storable(str(device.get("name", ""))),
        line=seen.line,
        metrics=seen.metrics,
    )
