"""A solution to matmul_bias_relu.py: one Triton kernel, weights read from a torch.nn.Linear that is never called."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def linear_relu_kernel(x, weight, bias, out, rows, features, columns, BLOCK: tl.constexpr, STEP: tl.constexpr):
    """A tile of BLOCK x BLOCK outputs: x (rows, columns), weight (features, columns), both row-major."""
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    feature = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for start in range(0, columns, STEP):
        column = start + tl.arange(0, STEP)
        left = tl.load(x + row[:, None] * columns + column, mask=(row[:, None] < rows) & (column < columns), other=0.0)
        right = tl.load(
            weight + feature * columns + column[:, None],
            mask=(feature < features) & (column[:, None] < columns),
            other=0.0,
        )
        total += tl.dot(left, right, input_precision="ieee")
    total += tl.load(bias + feature, mask=feature < features, other=0.0)
    total = tl.maximum(total, 0.0)
    tl.store(out + row[:, None] * features + feature, total, mask=(row[:, None] < rows) & (feature < features))


class ModelNew(nn.Module):
    """The same layer, computed by one kernel."""

    def __init__(self, columns: int, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(columns, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (rows, columns); returns (rows, features)."""
        rows, columns = x.shape
        features = self.linear.weight.shape[0]
        out = torch.empty((rows, features), dtype=x.dtype, device=x.device)
        grid = (triton.cdiv(rows, 32), triton.cdiv(features, 32))
        linear_relu_kernel[grid](
            x, self.linear.weight, self.linear.bias, out, rows, features, columns, BLOCK=32, STEP=32
        )
        return out
