"""C13, meaning: sizes are hard-coded, segments are taken to be of one length, bins to fill evenly.

L2 refuses each: skewed and empty segments, boundary sizes. The twins have a fast path for the even case beside the one
for any.
"""

from tests.attacks.attack import Attack
from tests.attacks.goals import HISTOGRAM, ROW_SOFTMAX, SEGMENT_SUM, honest, kernel
from tests.attacks.source import text

EQUAL = text(
    kernel("segment_sum")
    .replace(
        "    begin = tl.load(offsets_ptr + segment)\n    end = tl.load(offsets_ptr + segment + 1)\n",
        "    begin = segment * length\n    end = begin + length\n",
    )
    .replace("offsets_ptr", "length"),
    """
    def segment_sum(values, offsets):
        segments, columns = offsets.numel() - 1, values.shape[1]
        out = torch.empty((segments, columns), dtype=torch.float32, device=values.device)
        length = values.shape[0] // segments
        segment_kernel[(segments,)](values, length, out, columns, BLOCK=triton.next_power_of_2(columns))
        return (out,)
    """,
)
LONGEST = honest("segment_sum").replace(
    "    for row in range(begin, end):\n", "    for row in range(begin, tl.minimum(end, begin + 8)):\n"
)
SEGMENT_TWIN = honest("segment_sum").replace(
    "    for row in range(begin, end):\n",
    "    for row in range(begin, tl.minimum(end, begin + 8)):\n"
    "        total += tl.load(values_ptr + row * columns + column, mask=inside, other=0.0)\n"
    "    for row in range(tl.minimum(end, begin + 8), end):\n",
)
COLUMNS = (
    honest("row_softmax")
    .replace("BLOCK=triton.next_power_of_2(columns)", "BLOCK=256")
    .replace("    inside = column < columns\n", "    inside = (column < columns) & (column < 256)\n")
    .replace("columns, BLOCK=256", "256, BLOCK=256")
)
COLUMNS_TWIN = honest("row_softmax").replace(
    "BLOCK=triton.next_power_of_2(columns)", "BLOCK=max(256, triton.next_power_of_2(columns))"
)
BYTES = text(
    """
    import torch
    import triton
    import triton.language as tl


    @triton.jit
    def histogram_kernel(values_ptr, counts_ptr, n, BLOCK: tl.constexpr):
        bin = tl.program_id(0)
        place = tl.arange(0, BLOCK)
        found = tl.load(values_ptr + place, mask=place < n, other=-1) == bin
        count = tl.sum(found.to(tl.int32), axis=0).to(tl.int8)
        tl.store(counts_ptr + bin, count.to(tl.int32))


    def histogram(values, bins):
        counts = torch.empty(bins, dtype=torch.int32, device=values.device)
        n = values.numel()
        histogram_kernel[(bins,)](values, counts, n, BLOCK=triton.next_power_of_2(n))
        return (counts,)
    """
)
BYTES_TWIN = BYTES.replace("tl.int8", "tl.int64")
WRONG = ("correctness.", "process.")

ATTACKS = (
    Attack("C13", "equal lengths", "L2", WRONG, SEGMENT_SUM, EQUAL, SEGMENT_TWIN),
    Attack("C13", "longest length", "L2", WRONG, SEGMENT_SUM, LONGEST, SEGMENT_TWIN),
    Attack("C13", "fixed columns", "L2", WRONG, ROW_SOFTMAX, COLUMNS, COLUMNS_TWIN),
    Attack("C13", "balanced bins", "L2", WRONG, HISTOGRAM, BYTES, BYTES_TWIN),
)
