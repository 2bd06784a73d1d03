"""What is known of one value inside a Triton kernel: extents, dtype, where it was loaded from, how its addresses run.

Plain data and the arithmetic on it; `kernelgen.constraints.trace` follows a kernel with it. None is "not known", and
whatever is computed from it is not known either.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from kernelgen.constraints.constants import UNKNOWN, Constant

BITS: Mapping[str, int] = MappingProxyType(
    {
        "int1": 8, "int8": 8, "uint8": 8, "int16": 16, "uint16": 16, "int32": 32, "uint32": 32, "int64": 64,
        "uint64": 64, "float8e4nv": 8, "float8e5": 8, "float16": 16, "bfloat16": 16, "float32": 32, "float64": 64,
    }
)  # fmt: skip
"""Bits of an element in memory, by Triton's name of the dtype."""
OF_TORCH: Mapping[str, str] = MappingProxyType(
    {"bool": "int1", "float8_e4m3fn": "float8e4nv", "float8_e5m2": "float8e5", "half": "float16", "float": "float32"}
)
"""Triton's name of a dtype where torch's is another."""
_FLOATS = ("float16", "bfloat16", "float32", "float64")

Shape = tuple[int | None, ...]
FREE = -1
"""A stride that is a number of run time, and so perhaps 1."""


@dataclass(frozen=True)
class Tile:
    """A value of a kernel."""

    shape: Shape | None = None
    """Extents; () for a scalar."""
    dtype: str | None = None
    """Triton's name; of a pointer, that of its elements."""
    pointer: bool = False
    """Whether it is an address, or a block of them."""
    constant: Constant = UNKNOWN
    """Its value where it is known when compiling."""
    strides: Shape | None = None
    """By how much an integer or an address grows along each extent; None along one where that is not known."""
    loads: frozenset[int] = frozenset()
    """Numbers of the loads it is computed from, no product between."""
    direct: bool = False
    """Whether it is what a load gave, not computed further."""
    layout: Shape | None = None
    """Of what a load gave: how its addresses ran along each extent."""
    loops: frozenset[int] = frozenset()
    """Loops whose every turn may change it."""


NOTHING = Tile()


def scalar(constant: Constant = UNKNOWN, dtype: str | None = None) -> Tile:
    """A number."""
    return Tile(shape=(), dtype=dtype, constant=constant, strides=())


def broadcast(left: Shape | None, right: Shape | None) -> Shape | None:
    """The shape of an operation on two shapes."""
    if left is None or right is None:
        return None
    if len(left) < len(right):
        left, right = right, left
    right = (1,) * (len(left) - len(right)) + right
    return tuple(b if a == 1 else a for a, b in zip(left, right, strict=True))


def promoted(left: Tile, right: Tile, *, division: bool = False) -> str | None:
    """The dtype of an arithmetic operation, by Triton's rules for floats; a number in the source takes the other's."""
    for one, other in ((left, right), (right, left)):
        is_literal = one.constant is not UNKNOWN and one.dtype is None
        if is_literal and other.dtype in _FLOATS:
            return "float32" if division and BITS[other.dtype] == 16 else other.dtype
    dtypes = {left.dtype, right.dtype}
    if None in dtypes or not dtypes & set(_FLOATS):
        return left.dtype if len(dtypes) == 1 and not division else None
    floats = sorted((d for d in dtypes if d in _FLOATS), key=lambda d: BITS[str(d)])
    widest = floats[-1]
    if widest in ("float32", "float64"):
        return widest
    if len(floats) == 2:
        return None
    return "float32" if division else widest


def strides_of(tile: Tile, rank: int) -> Shape:
    """Its strides in a block of `rank` extents; a number does not grow."""
    if tile.strides is None:
        return (None,) * rank
    return (0,) * (rank - len(tile.strides)) + tile.strides


def added(left: Tile, right: Tile) -> Shape | None:
    """Strides of a sum."""
    shape = broadcast(left.shape, right.shape)
    if shape is None:
        return None
    pairs = zip(strides_of(left, len(shape)), strides_of(right, len(shape)), strict=True)
    return tuple(map(_sum, *zip(*pairs, strict=True))) if shape else ()


def _sum(left: int | None, right: int | None) -> int | None:
    if left == 0 or right == 0:
        return right if left == 0 else left
    return None if left in (None, FREE) or right in (None, FREE) else (left or 0) + (right or 0)


def multiplied(left: Tile, right: Tile) -> Shape | None:
    """Strides of a product: known where one factor is a number."""
    for tile, factor in ((left, right), (right, left)):
        if factor.shape == () and tile.strides is not None:
            by = factor.constant if isinstance(factor.constant, int) else None
            return tuple(_times(stride, by) for stride in tile.strides)
    return None


def _times(stride: int | None, by: int | None) -> int | None:
    if stride in (0, None):
        return stride
    return FREE if by is None or stride == FREE else (stride or 0) * by


def runs_on(strides: Shape | None) -> bool:
    """Whether addresses may follow one another along some extent."""
    return strides is not None and any(stride in (1, FREE) for stride in strides)
