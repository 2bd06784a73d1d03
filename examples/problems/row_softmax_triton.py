"""A solution to row_softmax.py: a program a row, which fits in one block."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x, out, columns, BLOCK: tl.constexpr):
    """One row: its largest value, the sum of exponentials, the quotients."""
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    values = tl.load(x + row * columns + column, mask=column < columns, other=float("-inf"))
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * columns + column, powers / tl.sum(powers, axis=0), mask=column < columns)


class ModelNew(nn.Module):
    """The same softmax, computed by one kernel."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (rows, columns); returns the same shape."""
        out = torch.empty_like(x)
        softmax_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
