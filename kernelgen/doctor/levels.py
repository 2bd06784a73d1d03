"""What each level of the ladder can judge here, DSL by DSL: a table of needs, and what is there of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, get_args

Level = Literal["L0", "L1", "L2"]
Dsl = Literal["triton", "tilelang", "cuda"]
Way = Literal["parse", "compile", "gpu", "interpreter"]

LEVELS: Final[tuple[Level, ...]] = get_args(Level)
DSLS: Final[tuple[Dsl, ...]] = get_args(Dsl)

GPU: Final = "a GPU torch can use"
WAYS: Final[Mapping[tuple[Level, Dsl], Sequence[tuple[Way, tuple[str, ...]]]]] = MappingProxyType(
    {
        ("L0", "triton"): [("parse", ())],
        ("L0", "tilelang"): [("parse", ())],
        ("L0", "cuda"): [("parse", ())],
        ("L1", "triton"): [("compile", ("torch", "triton", "ptxas", "cuobjdump"))],
        ("L1", "tilelang"): [("compile", ("torch", "tilelang", "nvcc", "g++", "cuobjdump"))],
        ("L1", "cuda"): [("compile", ("torch", "nvcc", "g++", "cuobjdump"))],
        ("L2", "triton"): [
            ("gpu", ("torch", "triton", "ptxas", "a C compiler", GPU)),
            ("interpreter", ("torch", "triton", "numpy")),
        ],
        ("L2", "tilelang"): [("gpu", ("torch", "tilelang", "nvcc", "g++", GPU))],
        ("L2", "cuda"): [("gpu", ("torch", "nvcc", "g++", GPU))],
    }
)
"""The ways to judge, the best first, each with what it needs."""


@dataclass(frozen=True)
class Cell:
    """One level for one DSL."""

    by: Way | None
    """How it is judged here; None where it is not."""
    missing: tuple[str, ...]
    """What the best way lacks; empty where it is the way."""


def table(have: frozenset[str]) -> dict[Level, dict[Dsl, Cell]]:
    """The whole table for a machine that has these things."""
    return {level: {dsl: _cell(WAYS[level, dsl], have) for dsl in DSLS} for level in LEVELS}


def _cell(ways: Sequence[tuple[Way, tuple[str, ...]]], have: frozenset[str]) -> Cell:
    _, best = ways[0]
    lacking = tuple(need for need in best if need not in have)
    return Cell(next((way for way, needs in ways if have.issuperset(needs)), None), lacking)


def abilities(cells: Mapping[Level, Mapping[Dsl, Cell]]) -> list[str]:
    """What can be judged, a phrase a level: `L0`, `L1 (triton, cuda)`, `L2 as a logic check (triton)`."""
    said = []
    for level in LEVELS:
        on_gpu = [dsl for dsl in DSLS if cells[level][dsl].by in ("parse", "compile", "gpu")]
        logic = [dsl for dsl in DSLS if cells[level][dsl].by == "interpreter"]
        if on_gpu:
            said.append(level if len(on_gpu) == len(DSLS) else f"{level} ({', '.join(on_gpu)})")
        if logic:
            said.append(f"{level} as a logic check ({', '.join(logic)})")
    return said
