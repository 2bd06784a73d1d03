"""Triton candidates with one fault each, in pairs with a fresh candidate that has the same fault and an honest one.

The fresh ones share no name and no size with the first, so that a rule learned from the first must name the cause.
"""

from __future__ import annotations

from typing import NamedTuple

HEAD = "import torch\nimport triton\nimport triton.language as tl\n\n\n"
DTYPES = {"a": "bfloat16", "b": "bfloat16"}
"""Of the entry point's tensors."""


class Faulty(NamedTuple):
    """One fault."""

    first: str
    """What is judged first."""
    fresh: str
    """The same fault in other words."""
    honest: tuple[str, ...]
    """Without it."""


def product(
    *,
    name: str = "gemm",
    tiles: tuple[int, int, int] = (64, 64, 64),
    names: tuple[str, str, str] = ("BLOCK_M", "BLOCK_N", "BLOCK_K"),
    options: str = "num_warps=4, num_stages=3",
    right: str = "y",
) -> str:
    """A product of two 4096 x 4096 matrices."""
    m, n, k = names
    sizes = ", ".join(f"{key}={value}" for key, value in zip(names, tiles, strict=True))
    return f"""{HEAD}@triton.jit
def {name}_kernel(left, right, out, size, {m}: tl.constexpr, {n}: tl.constexpr, {k}: tl.constexpr):
    rows = tl.program_id(0) * {m} + tl.arange(0, {m})
    columns = tl.program_id(1) * {n} + tl.arange(0, {n})
    depth = tl.arange(0, {k})
    total = tl.zeros(({m}, {n}), tl.float32)
    for start in range(0, size, {k}):
        x = tl.load(left + rows[:, None] * size + start + depth[None, :])
        y = tl.load(right + (start + depth)[:, None] * size + columns[None, :])
        total = tl.dot(x, {right}, total)
    tl.store(out + rows[:, None] * size + columns[None, :], total)


def entry(a, b):
    out = torch.empty(4096, 4096, dtype=torch.float32, device=a.device)
    {name}_kernel[(4096 // {tiles[0]}, 4096 // {tiles[1]})](a, b, out, 4096, {sizes}, {options})
    return out
"""


def tuned(rows: str) -> str:
    """The same product with configurations of its own."""
    source = product().replace("BLOCK_M=64, BLOCK_N=64, BLOCK_K=64, num_warps=4, num_stages=3", "")
    grid = "lambda meta: (4096 // meta['BLOCK_M'], 4096 // meta['BLOCK_N'])"
    source = source.replace("(4096 // 64, 4096 // 64)", grid)
    return source.replace("@triton.jit", f"@triton.autotune(configs=[{rows}], key=['size'])\n@triton.jit")


def fill(name: str, extent: str, constant: str) -> str:
    """Writes a block of an extent, the compile-time number `constant`."""
    return f"""{HEAD}@triton.jit
def {name}(out, {constant}: tl.constexpr):
    tl.store(out + tl.arange(0, {constant}), 1.0)


def entry(a, b):
    {name}[(1,)](a, {constant}={extent})
    return a
"""


def described(name: str, columns: int, constant: str) -> str:
    """Copies through tensor descriptors whose rows have so many elements."""
    return f"""{HEAD}@triton.jit
def {name}(source, out, rows, columns, {constant}: tl.constexpr):
    there = tl.make_tensor_descriptor(source, [rows, columns], [columns, 1], [16, {constant}])
    tl.store(out + tl.arange(0, 16)[:, None] * columns + tl.arange(0, {constant})[None, :], there.load([0, 0]))


def entry(a, b):
    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, device=a.device))
    {name}[(1,)](a, torch.empty_like(a), 4096, 4096, {constant}={columns})
    return a
"""


def named(function: str) -> str:
    """Calls a function of Triton's language."""
    return fill("apply_kernel", "64", "SIZE").replace("1.0", f"tl.{function}(tl.arange(0, SIZE).to(tl.float32))")


OTHER = ("TILE_ROWS", "TILE_COLUMNS", "DEPTH")
FAULTS = {
    "shared_memory": Faulty(
        product(tiles=(128, 256, 128), options="num_warps=8, num_stages=4"),
        product(name="multiply", tiles=(256, 256, 64), names=OTHER, options="num_warps=8, num_stages=5"),
        (product(), product(tiles=(128, 256, 64), options="num_warps=8, num_stages=4")),
    ),
    "num_warps": Faulty(
        product(options="num_warps=3, num_stages=3"),
        product(name="multiply", names=OTHER, tiles=(32, 32, 32), options="num_warps=6, num_stages=2"),
        (product(), product(options="num_warps=8, num_stages=3")),
    ),
    "threads": Faulty(
        product(options="num_warps=64, num_stages=2"),
        product(name="multiply", names=OTHER, tiles=(128, 64, 32), options="num_warps=128, num_stages=3"),
        (product(), product(options="num_warps=32, num_stages=3")),
    ),
    "block_shape": Faulty(
        fill("fill_kernel", "48", "SIZE"), fill("ones", "3 * 32", "WIDTH"), (fill("fill_kernel", "64", "SIZE"),)
    ),
    "dot_dtype": Faulty(
        product(right="y.to(tl.float32)"),
        product(name="multiply", names=OTHER, tiles=(32, 32, 32), right="y.to(tl.float16)"),
        (product(), product(right="(y * 2.0).to(x.dtype)")),
    ),
    "dot_shape": Faulty(
        product(tiles=(64, 64, 8)), product(name="multiply", names=OTHER, tiles=(32, 16, 4)), (product(),)
    ),
    "alignment": Faulty(
        described("copy_kernel", 4, "COLUMNS"), described("take", 2, "N"), (described("copy_kernel", 8, "COLUMNS"),)
    ),
    "unknown_name": Faulty(named("tanhh"), named("tanhh").replace("SIZE", "WIDTH"), (named("exp"),)),
}
"""By the last word of the check that refuses them."""
