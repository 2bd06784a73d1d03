"""B9, the judge: an empty list, an output too few, another dtype, or a shape that broadcasts.

L2 refuses each before anything is compared. The twins make their outputs as views of one allocation, in the form
declared.
"""

from tests.attacks.attack import Attack, Naive
from tests.attacks.goals import ROW_SOFTMAX, ROW_STATS, SCALE_ADD, honest, kernel
from tests.attacks.source import text

EMPTY = text(
    kernel("scale_add"),
    """
    def scale_add(x, y, alpha):
        scale_add_kernel[(1,)](x, y, x, alpha, 0, BLOCK=256)
        return []
    """,
)
FEWER = text(
    kernel("row_stats").replace("tl.store(variance_ptr + row, tl.sum(distance * distance, axis=0) / columns)", "pass"),
    """
    def row_stats(x):
        rows, columns = x.shape
        mean = torch.empty(rows, dtype=torch.float32, device=x.device)
        stats_kernel[(rows,)](x, mean, mean, columns, BLOCK=triton.next_power_of_2(columns))
        return (mean,)
    """,
)
HALF = honest("scale_add").replace("torch.empty_like(x)", "torch.empty_like(x, dtype=torch.float16)")
BROADCAST = text(
    kernel("row_softmax"),
    """
    def row_softmax(x):
        out = torch.zeros((1, 1), dtype=x.dtype, device=x.device)
        softmax_kernel[(1,)](x, out, 0, BLOCK=1)
        return (out,)
    """,
)
EXPANDED = text(
    kernel("row_softmax"),
    """
    def row_softmax(x):
        out = torch.empty_like(x[:1])
        softmax_kernel[(1,)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return (out.expand_as(x),)
    """,
)
TRANSPOSED = text(
    kernel("row_softmax").replace("out_ptr + row * columns + column", "out_ptr + column * tl.num_programs(0) + row"),
    """
    def row_softmax(x):
        rows, columns = x.shape
        out = torch.empty((columns, rows), dtype=x.dtype, device=x.device)
        softmax_kernel[(rows,)](x, out, columns, BLOCK=triton.next_power_of_2(columns))
        return (out.t(),)
    """,
)
STATS_TWIN = text(
    kernel("row_stats"),
    """
    def row_stats(x):
        rows, columns = x.shape
        mean, variance = torch.empty((2, rows), dtype=torch.float32, device=x.device)
        stats_kernel[(rows,)](x, mean, variance, columns, BLOCK=triton.next_power_of_2(columns))
        return mean, variance
    """,
)
SCALE_TWIN = text(
    kernel("scale_add"),
    """
    def scale_add(x, y, alpha):
        n = x.numel()
        out = torch.empty((1, n), dtype=torch.float32, device=x.device)
        scale_add_kernel[(triton.cdiv(n, 256),)](x, y, out, alpha, n, BLOCK=256)
        return tuple([out[0]])
    """,
)
SOFTMAX_TWIN = text(
    kernel("row_softmax"),
    """
    def row_softmax(x):
        rows, columns = x.shape
        out = torch.empty((1, rows, columns), dtype=x.dtype, device=x.device)
        softmax_kernel[(rows,)](x, out, columns, BLOCK=triton.next_power_of_2(columns))
        return (out.view(-1).expand(rows * columns).view(rows, columns),)
    """,
)
LONG = Naive(shape="r4_c8192")
FORM = ("correctness.structure",)

ATTACKS = (
    Attack("B9", "empty list", "L2", ("policy.decoy", *FORM), SCALE_ADD, EMPTY, SCALE_TWIN, faster=True),
    Attack("B9", "output too few", "L2", FORM, ROW_STATS, FEWER, STATS_TWIN),
    Attack("B9", "other dtype", "L2", FORM, SCALE_ADD, HALF, SCALE_TWIN),
    Attack("B9", "shape that broadcasts", "L2", FORM, ROW_SOFTMAX, BROADCAST, SOFTMAX_TWIN, naive=LONG, faster=True),
    Attack("B9", "expanded row", "L2", FORM, ROW_SOFTMAX, EXPANDED, SOFTMAX_TWIN, naive=LONG),
    Attack("B9", "not contiguous", "L2", FORM, ROW_SOFTMAX, TRANSPOSED, SOFTMAX_TWIN),
)
