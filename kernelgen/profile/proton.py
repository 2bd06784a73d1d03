"""Triton Proton's hatchet file (`proton.finalize()` writes NAME.hatchet): a JSON list of call tree and device table.

A frame with `time (ns)` and a `count` above 0 is a kernel; the time is the sum of its `count` launches, so each of them
is given the mean, as `time (ns) / count`, beside the file's own figures. What ran inside `__proton_launch_metadata` is
Proton's own bookkeeping and left out. `flops…` and `bytes` are what the program said of itself and no counters: they
are kept, and no figure is taken from them. Spelling: Triton 3.7, `third_party/proton/csrc/lib/Data/TreeData.cpp`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kernelgen.errors import ProfileError
from kernelgen.profile.figures import MEAN_TIME
from kernelgen.profile.jsonfigures import MetricPool, storable
from kernelgen.profile.table import KernelLaunch, LaunchTable, Metric
from kernelgen.profile.textfile import shown, whole

PROTON = "proton hatchet"

MOST_LAUNCHES = 100_000
"""More than any region has: a file with more holds a whole run."""

_TIME, _COUNT, _CYCLES = "time (ns)", "count", "cycles"
_UNITS = {_TIME: "ns"}
_BOOKKEEPING = "__proton_launch_metadata"
_DEVICE, _KIND, _CUDA = "device_id", "device_type", "CUDA"
_AGAIN = "profile again with triton.profiler, one call of the region"


def is_hatchet(head: str) -> bool:
    """Whether the head of a file shows a hatchet tree."""
    return head.lstrip().startswith("[") and '"frame"' in head and '"metrics"' in head


def read_hatchet(path: Path) -> LaunchTable:
    """All kernel launches of a hatchet file, in the tree's order; a kernel's launches are alike."""
    file = shown(path)
    tree = _parsed(path)
    roots = [one for one in tree if isinstance(one, dict) and "frame" in one]
    tables = [one for one in tree if isinstance(one, dict) and "frame" not in one]
    devices = tables[0] if tables else {}
    pool = MetricPool()
    launches: list[KernelLaunch] = []
    cycles = False
    for number, (name, metrics) in enumerate(_frames(roots, file), 1):
        cycles = cycles or _CYCLES in metrics
        count = metrics.get(_COUNT)
        if _TIME not in metrics or not isinstance(count, int) or count <= 0:
            continue
        if len(launches) + count > MOST_LAUNCHES:
            raise ProfileError(f"{file} holds over {MOST_LAUNCHES} launches, so more than one call; {_AGAIN}")
        launches += [_launch(name, metrics, _capability(metrics, devices, file), number, pool)] * count
    if not launches and cycles:
        raise ProfileError(f"{file} holds cycles inside kernels and no times; profile with backend='cupti'")
    if not launches:
        raise ProfileError(f"{file} holds no GPU kernels; {_AGAIN} between proton.start and proton.finalize")
    return LaunchTable(PROTON, tuple(launches))


def _parsed(path: Path) -> list[Any]:
    try:
        tree = json.loads(whole(path))
    except json.JSONDecodeError as error:
        raise ProfileError(
            f"{shown(path)}:{error.lineno}: is no whole JSON ({error.msg}); the file was cut or damaged, {_AGAIN}"
        ) from error
    except (RecursionError, ValueError) as error:
        raise ProfileError(f"{shown(path)} cannot be read as JSON ({error}); {_AGAIN}") from error
    if not isinstance(tree, list):
        raise ProfileError(f"{shown(path)} is no list of a call tree and a device table; {_AGAIN}")
    return tree


def _frames(roots: list[Any], file: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and metrics of every frame in the tree's order, bookkeeping aside."""
    stack = roots[::-1]
    while stack:
        node = stack.pop()
        frame = node.get("frame") if isinstance(node, dict) else None
        name = frame.get("name") if isinstance(frame, dict) else None
        metrics, children = (node.get("metrics"), node.get("children", [])) if isinstance(node, dict) else (None, [])
        if not isinstance(name, str) or not isinstance(metrics, dict) or not isinstance(children, list):
            raise ProfileError(f"{file} has a frame without name, metrics or children; the file is damaged, {_AGAIN}")
        if name != _BOOKKEEPING:
            yield storable(name), metrics
            stack += children[::-1]


def _launch(name: str, metrics: dict[str, Any], capability: str, number: int, pool: MetricPool) -> KernelLaunch:
    """One of the launches of a frame; `number` is the frame's, since the writer may put all on one line."""
    kept: dict[str, Metric] = {
        pool.name(key): pool.metric(_UNITS.get(key, ""), value)
        for key, value in metrics.items()
        if isinstance(value, str | int | float) and key not in (_DEVICE, _KIND)
    }
    total = kept[_TIME].number if _TIME in kept else None
    if total is not None:
        kept[MEAN_TIME] = pool.metric("ns", total / metrics[_COUNT])
    return KernelLaunch(name, grid="", block="", capability=capability, device="", line=number, metrics=kept)


def _capability(metrics: dict[str, Any], devices: dict[str, Any], file: str) -> str:
    """`9.0` where the device table says arch 90; empty where it says nothing."""
    kind, index = metrics.get(_KIND, _CUDA), metrics.get(_DEVICE)
    if kind != _CUDA:
        raise ProfileError(f"{file} was taken on {storable(str(kind))}; kernelgen reads profiles of NVIDIA GPUs")
    table = devices.get(_CUDA)
    device = table.get(str(index)) if isinstance(table, dict) else None
    arch = str(device.get("arch", "")) if isinstance(device, dict) else ""
    if not (arch.isascii() and arch.isdigit() and len(arch) > 1):
        return ""
    return f"{arch[:-1]}.{arch[-1]}"
