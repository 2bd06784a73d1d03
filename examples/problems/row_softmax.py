"""A problem in KernelBench's form: softmax along the rows of a float32 matrix."""

import torch
import torch.nn as nn

ROWS, COLUMNS = 37, 1000


class Model(nn.Module):
    """A softmax, without weights."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (ROWS, COLUMNS); returns the same shape."""
        return torch.softmax(x, dim=-1)


def get_inputs():
    """What forward is called with."""
    return [torch.rand(ROWS, COLUMNS)]


def get_init_inputs():
    """What Model is made with."""
    return []
