"""A problem in KernelBench's form: a * x + y on float32 vectors, the factor a number."""

import torch
import torch.nn as nn

SIZE = 5000


class Model(nn.Module):
    """A scaled sum."""

    def forward(self, x: torch.Tensor, y: torch.Tensor, factor: float) -> torch.Tensor:
        """x, y: (SIZE,); returns the same shape."""
        return factor * x + y


def get_inputs():
    """What forward is called with."""
    return [torch.randn(SIZE), torch.randn(SIZE), 1.5]


def get_init_inputs():
    """What Model is made with."""
    return []
