"""What operators do to the extents, dtypes and addresses of values in a Triton kernel."""

from __future__ import annotations

import ast
from dataclasses import replace

from kernelgen.constraints.constants import UNKNOWN
from kernelgen.constraints.tiles import NOTHING, Shape, Tile, added, broadcast, multiplied, promoted


def joined(left: Tile, right: Tile, dtype: str | None, strides: Shape | None) -> Tile:
    """What an operation on two operands gives."""
    return Tile(
        shape=broadcast(left.shape, right.shape),
        dtype=dtype,
        pointer=left.pointer or right.pointer,
        strides=strides,
        loads=left.loads | right.loads,
        loops=left.loops | right.loops,
    )


def binary(op: ast.operator, left: Tile, right: Tile) -> Tile:
    """`left op right`."""
    pointer = next((tile for tile in (left, right) if tile.pointer), None)
    dtype = pointer.dtype if pointer else promoted(left, right, division=isinstance(op, ast.Div))
    strides = None
    if isinstance(op, ast.Add | ast.Sub):
        strides = added(left, right)
    elif isinstance(op, ast.Mult):
        strides = multiplied(left, right)
    elif isinstance(op, ast.Mod) and right.shape == ():
        strides = left.strides  # a wrapped index runs on but for its seam
    return joined(left, right, dtype, strides)


def compared(left: Tile, right: Tile) -> Tile:
    """A comparison."""
    return joined(left, right, "int1", None)


def expanded(value: Tile, index: ast.expr) -> Tile:
    """`value[:, None]` and the like."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    if value.shape is None:
        return replace(value, strides=None)
    known = value.strides if value.strides is not None else (None,) * len(value.shape)
    old, shape, strides = list(zip(value.shape, known, strict=True)), list[int | None](), list[int | None]()
    for part in parts:
        if isinstance(part, ast.Constant) and part.value is None:
            shape.append(1)
            strides.append(0)
        elif isinstance(part, ast.Slice) and old:
            extent, stride = old.pop(0)
            shape.append(extent)
            strides.append(stride)
        else:
            return NOTHING
    rest = [pair[0] for pair in old], [pair[1] for pair in old]
    return replace(value, shape=(*shape, *rest[0]), strides=(*strides, *rest[1]), direct=False)


def transposed(value: Tile) -> Tile:
    """A block with its two extents exchanged."""
    if value.shape is None or len(value.shape) != 2:
        return replace(value, shape=None, strides=None, direct=False)
    strides, layout = (None if known is None else known[::-1] for known in (value.strides, value.layout))
    return replace(value, shape=value.shape[::-1], strides=strides, layout=layout)


def merged(first: Tile, second: Tile) -> Tile:
    """A value that is one or the other: what both have in common."""
    return Tile(
        shape=first.shape if first.shape == second.shape else None,
        dtype=first.dtype if first.dtype == second.dtype else None,
        pointer=first.pointer and second.pointer,
        constant=first.constant if first.constant == second.constant else UNKNOWN,
        strides=first.strides if first.strides == second.strides else None,
        loads=first.loads & second.loads,
        loops=first.loops | second.loops,
    )


def cast(value: Tile, dtype: str | None) -> Tile:
    """A value converted to another dtype, None for one that is not told."""
    if value.pointer:
        return replace(value, dtype=None)
    return value if dtype == value.dtype is not None else replace(value, dtype=dtype, constant=UNKNOWN, direct=False)
