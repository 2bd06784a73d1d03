"""How many bytes of shared memory a Triton kernel's loops stage for their products, told from its source.

Triton 3.6 and 3.7 copy what a loop loads for `tl.dot` ahead of its use, one copy of the tile in shared memory for each
turn that it is ahead (measured on their sm_90a code). The count assumes addresses that can be copied 16 bytes at a
time, and takes the smaller figure wherever the text leaves a choice: an element of unknown dtype has one byte, what a
block needs beside (scratch of reductions, of layout changes, loop-invariant operands) is left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from kernelgen.constraints.seen import Load, Trace
from kernelgen.constraints.tiles import BITS, Tile

WGMMA_ROWS, WGMMA_WARPS = 64, 4
"""From these on a product reads its operands from shared memory while the next ones arrive: one copy more."""
LEAST_COPY_BITS = 32
"""What is copied ahead at a time at least: smaller elements only where they follow one another."""
BYTE = 8


def staged_bytes(trace: Trace, num_warps: int, num_stages: int) -> int:
    """Bytes that the loop which stages most has in shared memory; 0 where none stages anything."""
    loops = {product.loop for product in trace.products if product.loop is not None}
    return max((_of_loop(trace, loop, num_warps, num_stages) for loop in loops), default=0)


def _of_loop(trace: Trace, loop: int, num_warps: int, num_stages: int) -> int:
    stages = trace.stages.get(loop, num_stages)
    if stages is None:
        return 0
    copies: dict[int, int] = {}
    operands = [
        (operand, inner, product.left)
        for product in trace.products
        if product.loop == loop
        for operand, inner in ((product.left, -1), (product.right, -2))
    ]
    staged = {number for operand, _, _ in operands for number in operand.loads if trace.loads[number].loop == loop}
    ahead = max(1, (stages - 1) // (1 + _indirection(trace, loop, staged)))
    for operand, inner, left in operands:
        for number in operand.loads & staged:
            count = 1 if stages < 2 else ahead + (1 if operand.direct and _reads_shared(left, num_warps) else 0)
            if _turned_bytes(operand, inner):
                count = 1 if stages > 1 else 0
            copies[number] = max(copies.get(number, 0), count)
    return sum(count * _bytes(trace.loads[number]) for number, count in copies.items())


def _indirection(trace: Trace, loop: int, staged: Iterable[int]) -> int:
    """How many loads of the same loop stand one behind another before a staged one."""

    def behind(number: int, seen: frozenset[int]) -> int:
        needs = [n for n in trace.loads[number].needs if trace.loads[n].loop == loop and n not in seen]
        return max((1 + behind(n, seen | {n}) for n in needs), default=0)

    return max((behind(number, frozenset({number})) for number in staged), default=0)


def _reads_shared(left: Tile, num_warps: int) -> bool:
    rows = left.shape[-2] if left.shape is not None and len(left.shape) >= 2 else None
    return rows is not None and rows >= WGMMA_ROWS and num_warps >= WGMMA_WARPS


def _turned_bytes(operand: Tile, inner: int) -> bool:
    """Whether an 8-bit operand may lie the wrong way for the product: it is then turned in registers, not staged."""
    if operand.dtype is not None and BITS.get(operand.dtype, BYTE) != BYTE:
        return False
    return operand.layout is None or len(operand.layout) < 2 or operand.layout[inner] != 1


def _bytes(load: Load) -> int:
    """Bytes of a load's tile; 0 where an extent is not known, it is no block of rows, or too scattered to be copied."""
    if load.shape is None or len(load.shape) < 2 or None in load.shape:
        return 0
    bits = BITS.get(load.dtype, BYTE) if load.dtype is not None else BYTE
    if bits < LEAST_COPY_BITS and not load.runs_on:
        return 0
    return prod(extent or 0 for extent in load.shape) * bits // BYTE
