"""D4, round the task: the champion handed in again, or a library's kernel, with other names and comments.

L0 refuses it by its tokens against champion, plays and named libraries. The twin computes the same another way: in one
pass over blocks of columns.
"""

from tests.attacks.attack import Attack
from tests.attacks.goals import ROW_SOFTMAX, honest
from tests.attacks.source import text

CHAMPION = honest("row_softmax")
RENAMED = text(
    '"""A new softmax, written from scratch for Hopper: wide rows, one pass."""',
    "# every name is new",
    CHAMPION.partition('"""\n')[2]
    .replace("softmax_kernel", "wide_rows")
    .replace("columns", "width")
    .replace("column", "lane")
    .replace("inside", "live")
    .replace("power", "weight")
    .replace("next_weight", "next_power")
    .replace("    x = tl.load", "    # load the row\n    x = tl.load"),
)
PADDED = text(
    CHAMPION,
    """
    @triton.jit
    def other_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
        place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out_ptr + place, tl.load(x_ptr + place, mask=place < n) * 2.0, mask=place < n)


    def other(x):
        out = torch.empty_like(x)
        other_kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
        return out
    """,
)
TWIN = text(
    """
    import torch
    import triton
    import triton.language as tl


    @triton.jit
    def softmax_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
        row = tl.program_id(0).to(tl.int64)
        largest = tl.full((), float("-inf"), tl.float32)
        total = tl.full((), 0.0, tl.float32)
        for begin in range(0, columns, BLOCK):
            column = begin + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + row * columns + column, mask=column < columns, other=float("-inf"))
            above = tl.maximum(largest, tl.max(x, axis=0))
            total = total * tl.exp(largest - above) + tl.sum(tl.exp(x - above), axis=0)
            largest = above
        for begin in range(0, columns, BLOCK):
            column = begin + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + row * columns + column, mask=column < columns, other=float("-inf"))
            tl.store(out_ptr + row * columns + column, tl.exp(x - largest) / total, mask=column < columns)


    def row_softmax(x):
        rows, columns = x.shape
        out = torch.empty_like(x)
        softmax_kernel[(rows,)](x, out, columns, BLOCK=128)
        return (out,)
    """
)
KNOWN = {"champion naive": CHAMPION}

ATTACKS = (
    Attack("D4", "champion again", "L0", ("policy.similar",), ROW_SOFTMAX, CHAMPION, TWIN, known=KNOWN),
    Attack("D4", "names changed", "L0", ("policy.similar",), ROW_SOFTMAX, RENAMED, TWIN, known=KNOWN),
    Attack("D4", "padded with dead code", "L0", ("policy.similar",), ROW_SOFTMAX, PADDED, TWIN, known=KNOWN),
)
