"""A problem in KernelBench's form: relu(x @ W^T + b), weights of a torch.nn.Linear, all float32."""

import torch
import torch.nn as nn

ROWS, COLUMNS, FEATURES = 48, 96, 80


class Model(nn.Module):
    """A linear layer and its activation."""

    def __init__(self, columns: int, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(columns, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (ROWS, COLUMNS); returns (ROWS, FEATURES)."""
        return torch.relu(self.linear(x))


def get_inputs():
    """What forward is called with."""
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs():
    """What Model is made with."""
    return [COLUMNS, FEATURES]
