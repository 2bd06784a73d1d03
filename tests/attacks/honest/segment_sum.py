"""Sum of each segment's rows, a program a segment."""

import torch
import triton
import triton.language as tl


@triton.jit
def segment_kernel(values_ptr, offsets_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    segment = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    inside = column < columns
    begin = tl.load(offsets_ptr + segment)
    end = tl.load(offsets_ptr + segment + 1)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for row in range(begin, end):
        total += tl.load(values_ptr + row * columns + column, mask=inside, other=0.0)
    tl.store(out_ptr + segment * columns + column, total, mask=inside)


def segment_sum(values, offsets):
    segments, columns = offsets.numel() - 1, values.shape[1]
    out = torch.empty((segments, columns), dtype=torch.float32, device=values.device)
    segment_kernel[(segments,)](values, offsets, out, columns, BLOCK=triton.next_power_of_2(columns))
    return (out,)
