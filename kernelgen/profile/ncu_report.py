"""Nsight Compute's own report, `.ncu-rep` or packed `.ncu-repz`, through NVIDIA's package `ncu-report`.

The package is an extra; without it the file is refused with the install line and the way around it. Every metric is
kept under ncu's name, with the unit and the value the report stores; values by instruction or unit are left to ncu's
own viewer. `KernelLaunch.line` is the launch's number. Interface: Nsight Compute, Python Report Interface, 2026.3.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kernelgen.errors import ProfileError
from kernelgen.profile.table import KernelLaunch, LaunchTable, Metric
from kernelgen.profile.textfile import shown

REPORT = "ncu report"

MAGIC = "NVR\0"
_ZSTD = "(\ufffd/\ufffd"  # how a head shows zstd's magic number, which is no UTF-8
_PACKAGE = "ncu_report"
_AS_CSV = "export it with ncu --import FILE --page raw --csv --print-units base"
_DEVICE_NAME = "device__attribute_display_name"
_CAPABILITY = ("device__attribute_compute_capability_major", "device__attribute_compute_capability_minor")
_GRID = tuple(f"launch__grid_dim_{axis}" for axis in "xyz")
_BLOCK = tuple(f"launch__block_dim_{axis}" for axis in "xyz")


def is_report(head: str) -> bool:
    """Whether the head of a file is a report's."""
    return head.startswith((MAGIC, _ZSTD))


def read_report(path: Path) -> LaunchTable:
    """All launches of a report, range by range."""
    file = shown(path)
    module = _package(file)
    try:
        launches = tuple(_launches(module, module.load_report(str(path))))
    except (OSError, RuntimeError, ValueError, TypeError) as error:
        raise ProfileError(f"{file} cannot be read by ncu-report ({_one_line(error)}); {_AS_CSV}") from error
    if not launches:
        raise ProfileError(f"{file} has no kernel that ncu-report can read, so it may be cut; profile again")
    return LaunchTable(REPORT, launches)


def _package(file: str) -> Any:
    try:
        return importlib.import_module(_PACKAGE)
    except ImportError as error:
        raise ProfileError(
            f"{file} is an Nsight Compute report and needs a package that does not load here ({_one_line(error)}): "
            f"pip install 'kernelgen[ncu]', or {_AS_CSV}"
        ) from error


def _launches(module: Any, report: Any) -> Iterator[KernelLaunch]:
    number = 0
    for range_index in range(report.num_ranges()):
        span = report.range_by_idx(range_index)
        for action_index in range(span.num_actions()):
            number += 1
            yield _launch(module, span.action_by_idx(action_index), number)


def _launch(module: Any, action: Any, number: int) -> KernelLaunch:
    metrics: dict[str, Metric] = {}
    for name in action.metric_names():
        metric = action.metric_by_name(name)
        value = metric.value() if metric is not None and metric.has_value() else None
        if value is not None:
            metrics[name] = Metric(metric.unit(), str(value), _number(value))
    capability = [metrics[name].text for name in _CAPABILITY if name in metrics]
    return KernelLaunch(
        name=action.name(module.IAction.NameBase_DEMANGLED),
        grid=_extents(metrics, _GRID),
        block=_extents(metrics, _BLOCK),
        capability=".".join(capability) if len(capability) == len(_CAPABILITY) else "",
        device=metrics[_DEVICE_NAME].text if _DEVICE_NAME in metrics else "",
        line=number,
        metrics=metrics,
    )


def _number(value: str | int | float) -> float | None:
    """The value where it is a finite number: ncu writes nan for what a pass could not collect."""
    return float(value) if not isinstance(value, str) and math.isfinite(value) else None


def _extents(metrics: dict[str, Metric], names: tuple[str, ...]) -> str:
    """`(1760, 1, 1)` as ncu prints it; empty where the report does not say."""
    if not all(name in metrics for name in names):
        return ""
    return f"({', '.join(metrics[name].text for name in names)})"


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
