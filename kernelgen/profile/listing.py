"""`kernelgen profile kernels FILE`: the kernels of a profile file, with launches and time, before a regex chooses.

Names are the whole ones that `kernels=REGEX` is matched against. Nothing is imported or written.
"""

from __future__ import annotations

from pathlib import Path

from kernelgen.config import Frozen
from kernelgen.profile import formats
from kernelgen.profile.figures import figures
from kernelgen.profile.textfile import shown


class KernelRow(Frozen):
    """One kernel name of a file."""

    name: str
    """As the profiler gives it."""
    launches: int
    """How often it ran."""
    time_us: float
    """Sum over its launches."""
    share_percent: float
    """Of the time of all launches in the file."""


class KernelListing(Frozen):
    """What a profile file holds."""

    format: str
    """As the Profile record names it."""
    launches: int
    """All launches of the file."""
    time_us: float
    """Their sum."""
    kernels: tuple[KernelRow, ...]
    """By name, the one that takes most time first."""


def list_kernels(path: Path) -> KernelListing:
    """The kernels of a profile file of any known format; ProfileError where it cannot be read."""
    table = formats.read(path)
    times: dict[str, list[float]] = {}
    for launch in table.launches:
        times.setdefault(launch.name, []).append(figures(launch, shown(path)).time_us)
    total = sum(sum(each) for each in times.values())
    rows = [
        KernelRow(
            name=name,
            launches=len(each),
            time_us=sum(each),
            share_percent=100 * sum(each) / total if total else 0.0,
        )
        for name, each in times.items()
    ]
    ranked = tuple(sorted(rows, key=lambda row: -row.time_us))
    return KernelListing(format=table.format, launches=len(table.launches), time_us=total, kernels=ranked)
