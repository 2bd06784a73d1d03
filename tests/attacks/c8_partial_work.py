"""C8, meaning: the tail is dropped, old history cut off, some rows or a few values left out.

L2 refuses each: odd sizes, inputs in which what was left out is large, and the worst element beside the norm. The twins
do all of the work in the same blocks.
"""

from tests.attacks.attack import Attack, Naive
from tests.attacks.goals import DECAY_SUM, HISTOGRAM, ROW_SOFTMAX, SCALE_ADD, kernel
from tests.attacks.source import text

TAIL = text(
    kernel("scale_add"),
    """
    def scale_add(x, y, alpha):
        out = torch.zeros_like(x)
        n = x.numel()
        scale_add_kernel[(n // 256,)](x, y, out, alpha, n, BLOCK=256)
        return (out,)
    """,
)
TAIL_TWIN = text(
    kernel("scale_add"),
    """
    def scale_add(x, y, alpha):
        out = torch.zeros_like(x)
        n = x.numel()
        scale_add_kernel[(n // 256 + 1,)](x, y, out, alpha, n, BLOCK=256)
        return (out,)
    """,
)
WINDOWED = (
    kernel("decay_sum")
    .replace("BLOCK: tl.constexpr", "BLOCK: tl.constexpr, CHUNK: tl.constexpr, BACK: tl.constexpr")
    .replace(
        "    for step in range(steps):\n",
        "    begin = tl.program_id(1) * CHUNK\n"
        "    end = tl.minimum(begin + CHUNK, steps)\n"
        "    for step in range(tl.maximum(begin - BACK, 0), end):\n",
    )
    .replace("mask=inside)\n", "mask=inside & (step >= begin))\n")
)
CALL = """
def decay_sum(x, decay):
    rows, steps = x.shape
    out = torch.empty_like(x)
    grid = (triton.cdiv(rows, 32), triton.cdiv(steps, CHUNK))
    decay_kernel[grid](x, out, decay, rows, steps, BLOCK=32, CHUNK=CHUNK, BACK=BACK)
    return (out,)
"""
HISTORY = text(WINDOWED, CALL.replace("=CHUNK", "=32").replace("CHUNK)", "32)", 1).replace("BACK=BACK", "BACK=24"))
HISTORY_TWIN = HISTORY.replace("BACK=24", "BACK=triton.cdiv(steps, 32) * 32")
ROWS = text(
    kernel("row_softmax"),
    """
    def row_softmax(x):
        rows, columns = x.shape
        out = torch.zeros_like(x)
        softmax_kernel[(rows - rows // 4,)](x, out, columns, BLOCK=triton.next_power_of_2(columns))
        return (out,)
    """,
)
ROWS_TWIN = ROWS.replace("rows - rows // 4", "rows")
SAMPLES = text(
    kernel("row_softmax").replace(
        "    power = tl.exp(x - tl.max(x, axis=0))\n",
        "    power = tl.exp(x - tl.max(x, axis=0))\n    power = tl.where(power > 0.02, power, 0.0)\n",
    ),
    """
    def row_softmax(x):
        rows, columns = x.shape
        out = torch.empty_like(x)
        softmax_kernel[(rows,)](x, out, columns, BLOCK=triton.next_power_of_2(columns))
        return (out,)
    """,
)
SAMPLES_TWIN = SAMPLES.replace("power > 0.02", "power > 0.0")
COUNTS = text(
    kernel("histogram"),
    """
    def histogram(values, bins):
        counts = torch.zeros(bins, dtype=torch.int32, device=values.device)
        n = values.numel() - 1
        histogram_kernel[(triton.cdiv(n, 256),)](values, counts, n, BLOCK=256)
        return (counts,)
    """,
)
COUNTS_TWIN = COUNTS.replace("values.numel() - 1", "values.numel()")
WORST = Naive(shape="r4_c8192", compare="worst")
WRONG = ("correctness.",)

ATTACKS = (
    Attack("C8", "dropped tail", "L2", WRONG, SCALE_ADD, TAIL, TAIL_TWIN),
    Attack("C8", "truncated history", "L2", WRONG, DECAY_SUM, HISTORY, HISTORY_TWIN),
    Attack("C8", "most rows", "L2", WRONG, ROW_SOFTMAX, ROWS, ROWS_TWIN, naive=WORST),
    Attack("C8", "largest values only", "L2", WRONG, ROW_SOFTMAX, SAMPLES, SAMPLES_TWIN, naive=WORST),
    Attack("C8", "one value less", "L2", WRONG, HISTOGRAM, COUNTS, COUNTS_TWIN, naive=Naive(compare="norm")),
)
