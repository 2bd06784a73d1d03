"""What a Triton kernel was seen to do in its source: blocks, products, loads and descriptors, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field

from kernelgen.constraints.tiles import Shape, Tile


@dataclass(frozen=True)
class Load:
    """One load."""

    shape: Shape | None
    """Extents of what it loads."""
    dtype: str | None
    """Of its elements."""
    loop: int | None
    """The loop it stands in and depends on."""
    runs_on: bool
    """Whether its addresses may follow one another."""
    needs: frozenset[int]
    """Loads its addresses are computed from."""


@dataclass(frozen=True)
class Product:
    """One `tl.dot`."""

    left: Tile
    """First operand."""
    right: Tile
    """Second operand."""
    loop: int | None
    """The innermost pipelined loop it stands in."""


@dataclass(frozen=True)
class Descriptor:
    """One tensor descriptor made in a kernel."""

    last: int | None
    """Last extent of its block."""
    stride: int | None
    """Last stride, where it is written out."""
    dtype: str | None
    """Of its elements."""


@dataclass
class Trace:
    """What a kernel was seen to do."""

    extents: list[int] = field(default_factory=list)
    """Every known extent of a block it makes."""
    products: list[Product] = field(default_factory=list)
    """Every product."""
    loads: list[Load] = field(default_factory=list)
    """Every load, by number."""
    stages: dict[int, int | None] = field(default_factory=dict)
    """Stages that a loop itself asks for, by loop."""
    descriptors: list[Descriptor] = field(default_factory=list)
    """Every tensor descriptor made."""
