"""What Triton's operations do to the extents, dtypes and addresses of values: one case each, unknown for the others."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from kernelgen.constraints.constants import UNKNOWN, Constant
from kernelgen.constraints.tiles import (
    BITS,
    NOTHING,
    Shape,
    Tile,
    added,
    broadcast,
    joined,
    multiplied,
    promoted,
    scalar,
)

_ELEMENTWISE = frozenset(
    {"exp", "exp2", "log", "log2", "sqrt", "rsqrt", "sigmoid", "abs", "sin", "cos", "floor", "ceil", "erf", "softmax"}
)
_BINARY = frozenset({"maximum", "minimum", "fdiv", "div_rn"})
_REDUCTIONS = frozenset({"sum", "max", "min"})
_HINTS = frozenset({"multiple_of", "max_contiguous", "max_constancy", "assume"})
_SCALARS = frozenset({"program_id", "num_programs", "cdiv"})


class Walker(Protocol):
    """What an operation needs of who follows the kernel."""

    seen: object

    def tile(self, node: ast.expr, names: dict[str, Tile]) -> Tile: ...

    def constant(self, node: ast.expr, names: dict[str, Tile]) -> Constant: ...
