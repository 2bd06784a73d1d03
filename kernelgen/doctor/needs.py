"""What is missing here, what it would give, and the line that installs it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from kernelgen.doctor.facts import Facts
from kernelgen.doctor.levels import DSLS, LEVELS, Cell, Dsl, Level
from kernelgen.ladder.install import (
    CORE_LINE,
    GXX_LINE,
    KERNELS_LINE,
    NCU_LINE,
    NCU_REPORT_LINE,
    NVCC_LINE,
    TILELANG_LINE,
    TOKENS_LINE,
)

LINES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "torch": KERNELS_LINE,
        "triton": KERNELS_LINE,
        "numpy": KERNELS_LINE,
        "ptxas": KERNELS_LINE,
        "cuobjdump": KERNELS_LINE,
        "tilelang": TILELANG_LINE,
        "nvcc": NVCC_LINE,
        "g++": GXX_LINE,
        "a C compiler": GXX_LINE,
    }
)
"""By what the ladder needs; a GPU is not installed with a line."""


@dataclass(frozen=True)
class Missing:
    """Something that is not here."""

    what: str
    """Its name."""
    gives: str
    """What could be done with it."""
    install: str
    """The command, or commands, that install it."""


def missing(facts: Facts, table: Mapping[Level, Mapping[Dsl, Cell]]) -> list[Missing]:
    """What is not here: what generating lacks first, then the ladder, then profiling."""
    return [*_core(facts), *_ladder(table), *_profiling(facts)]


def _core(facts: Facts) -> Iterator[Missing]:
    lacking = [package for package in facts.core.value or () if package.problem]
    if lacking:
        # the versions wanted stand in kernelgen's own metadata, which a source tree does not have
        is_known = all(package.wanted for package in lacking)
        wanted = " ".join(f"'{package.name}{package.wanted}'" for package in lacking)
        line = f"pip install {wanted}" if is_known else CORE_LINE
        yield Missing(", ".join(package.name for package in lacking), "generating", line)
    if ((facts.imported.value or {}).get("does") or {}).get("tokens"):
        yield Missing("token encodings", "generating", TOKENS_LINE)


def _ladder(table: Mapping[Level, Mapping[Dsl, Cell]]) -> Iterator[Missing]:
    """What the ladder lacks, one entry for each install line."""
    for line in dict.fromkeys(LINES.values()):
        lacking = {need for need, its_line in LINES.items() if its_line == line}
        absent: set[str] = set()
        phrases = []
        for level in LEVELS:
            dsls = [dsl for dsl in DSLS if lacking & set(table[level][dsl].missing)]
            absent |= {need for dsl in dsls for need in table[level][dsl].missing if need in lacking}
            phrases += [f"{level} ({', '.join(dsls)})"] if dsls else []
        if absent:
            yield Missing(", ".join(need for need in LINES if need in absent), ", ".join(phrases), line)


def _profiling(facts: Facts) -> Iterator[Missing]:
    if facts.no_gpu() is None and facts.ncu.value is None:
        yield Missing("ncu", "taking profiles", NCU_LINE)
    if facts.optional.value is not None and facts.version("ncu-report") is None:
        yield Missing("ncu-report", "importing .ncu-rep files", NCU_REPORT_LINE)
