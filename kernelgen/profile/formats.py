"""The profile formats kernelgen reads, told apart by content and never by a file's ending.

To add one, write a file beside `ncu.py` with a `sniff` and a `read` and add a line to FORMATS; the contract test in
tests/profile takes a sample of each. No two formats may claim the same file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kernelgen.errors import ProfileError
from kernelgen.profile import ncu, ncu_report, proton, torch_trace
from kernelgen.profile.table import LaunchTable
from kernelgen.profile.textfile import head, shown


@dataclass(frozen=True, slots=True)
class Format:
    """One kind of profile file."""

    name: str
    """As the Profile record and messages name it."""
    sniff: Callable[[str], bool]
    """Whether the head of a file is of this kind; bytes that are no text show as replacement characters."""
    read: Callable[[Path], LaunchTable]
    """All launches of the file; raises nothing but ProfileError."""


FORMATS = (
    Format(ncu.RAW, ncu.is_raw, ncu.read_raw),
    Format(ncu.DETAILS, ncu.is_details, ncu.read_details),
    Format(ncu_report.REPORT, ncu_report.is_report, ncu_report.read_report),
    Format(torch_trace.TORCH, torch_trace.is_trace, torch_trace.read_trace),
    Format(proton.PROTON, proton.is_hatchet, proton.read_hatchet),
)


def read(path: Path) -> LaunchTable:
    """The launches of a profile file of any known format; ProfileError names the formats where it is of none."""
    start = head(path)
    if not start.strip():
        raise ProfileError(f"{shown(path)} is empty; profile again, or give another file")
    for known in FORMATS:
        if known.sniff(start):
            return known.read(path)
    names = ", ".join(known.name for known in FORMATS)
    if "\0" in start:
        raise ProfileError(f"{shown(path)} is a binary file; known formats are {names}; export it as one of them")
    raise ProfileError(f"{shown(path)} is not a profile of a known format ({names}); export it as one of them")
