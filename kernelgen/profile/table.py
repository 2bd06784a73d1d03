"""What every profile reader yields: the launches of a file with all their metrics, under the profiler's own names.

A reader takes a path and gives a `LaunchTable`; nothing after it knows the file format. Texts stay as the profiler
wrote them, numbers are in the unit beside them, and a figure the file lacks has no number: it is never 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kernelgen.ids import canonical_json

# ncu's own name of a metric behind the unit and pass that collected it: `TPC.TriageCompute.sm__cycles_active.avg`
_COLLECTOR = re.compile(r"[A-Za-z0-9_]+\.Triage[A-Za-z]*\.")
_ANONYMOUS = ("<unnamed>", "(anonymous namespace)")


class Metric(NamedTuple):
    """One figure of one launch."""

    unit: str
    """As the profiler prints it; empty for a plain number."""
    text: str
    """As the profiler prints it."""
    number: float | None
    """In `unit`; None for a word, `n/a`, `nan` and the like."""


class Found(NamedTuple):
    """A metric with a number, and the name it has in the file."""

    name: str
    unit: str
    number: float


@dataclass(frozen=True, slots=True)
class KernelLaunch:
    """One kernel launch as the file tells it."""

    name: str
    """The kernel's name as the profiler gives it, a C++ signature with all its arguments where it is one."""
    grid: str
    """As the profiler prints it, or empty."""
    block: str
    """As the profiler prints it, or empty."""
    capability: str
    """Compute capability as the profiler prints it, as in `9.0`, or empty."""
    device: str
    """The device's name, or empty."""
    line: int
    """Line of the file where the launch begins; its number in a format without lines."""
    metrics: Mapping[str, Metric]
    """By the name the file gives it; a details page's are `Section Name: Metric Name`."""

    def find(self, names: Iterable[str]) -> Found | None:
        """The first of the names that has a number here; a collector's copy counts only where none has one plainly."""
        wanted = tuple(names)
        for name in wanted:
            metric = self.metrics.get(name)
            if metric is not None and metric.number is not None:
                return Found(name, metric.unit, metric.number)
        for key, metric in self.metrics.items():
            prefix = _COLLECTOR.match(key) if ".Triage" in key else None
            if prefix is not None and metric.number is not None and key[prefix.end() :] in wanted:
                return Found(key, metric.unit, metric.number)
        return None


@dataclass(frozen=True, slots=True)
class LaunchTable:
    """All launches of one profile file, in order; at least one."""

    format: str
    """The format's name, such as `ncu raw csv`."""
    launches: tuple[KernelLaunch, ...]


def short_name(name: str) -> str:
    """The function's bare name: `void native::gather_kernel<16, long>(char *)` gives `gather_kernel`."""
    for spelling in _ANONYMOUS:
        name = name.replace(spelling, "anonymous")
    bare = re.split(r"[<(]", name, maxsplit=1)[0].strip()
    words = bare.rsplit("::", 1)[-1].split()
    return words[-1] if words else name


def raw_text(table: LaunchTable) -> str:
    """Canonical JSON of every launch's raw metric names, units and value texts.

    Column by column: under each metric's name the texts of all launches in order, null where a launch lacks it, and the
    unit, once where all launches share it, else a list of one a launch.
    """
    count = len(table.launches)
    texts: dict[str, list[str | None]] = {}
    units: dict[str, list[str | None]] = {}
    for index, launch in enumerate(table.launches):
        for name, metric in launch.metrics.items():
            if name not in texts:
                texts[name], units[name] = [None] * count, [None] * count
            texts[name][index], units[name][index] = metric.text, metric.unit
    metrics = {name: {"unit": _shared(units[name]), "values": values} for name, values in texts.items()}
    launches = [
        {"name": x.name, "grid": x.grid, "block": x.block, "capability": x.capability, "device": x.device}
        for x in table.launches
    ]
    return canonical_json({"format": table.format, "launches": launches, "metrics": metrics})


def _shared(units: list[str | None]) -> str | list[str | None] | None:
    known = {unit for unit in units if unit is not None}
    return units if len(known) > 1 else next(iter(known), None)
