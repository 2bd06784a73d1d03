"""Inputs that a problem does not announce: the same tensors with other values, so that a solution cannot know them.

Each kind is a function of a value alone: equal elements stay equal and zeros stay zero, so that triangular, symmetric,
diagonal and masked tensors remain what the problem says they are. Only floating-point tensors change.
"""

from __future__ import annotations

from typing import Any

import torch

PLAIN = "plain"
KINDS = (PLAIN, "centred", "negative", "scaled", "spiked", "zeros")
SCALE = 4.0
SPIKE = 16.0
SPIKED_SHARE = 0.999
# more elements than this are sampled to find what is large among them
SAMPLED = 1 << 16


def vary(value: Any, kind: str) -> Any:
    """An input as a kind has it; numbers and whole-number tensors as they are.

    centred: mean of the nonzero values taken away. negative: of the other sign. scaled: four times as large. spiked:
    the largest thousandth sixteen times as large. zeros: nothing left.
    """
    if kind == PLAIN or not isinstance(value, torch.Tensor) or not value.is_floating_point() or not value.numel():
        return value
    wide = value.double() if value.dtype.itemsize > 2 else value.float()
    if kind == "centred":
        held = wide[wide != 0]
        wide = torch.where(wide != 0, wide - (held.mean() if held.numel() else 0.0), wide)
    elif kind == "negative":
        wide = -wide
    elif kind == "scaled":
        wide = wide * SCALE
    elif kind == "spiked":
        wide = torch.where(wide.abs() >= _large(wide), wide * SPIKE, wide)
    else:
        wide = torch.zeros_like(wide)
    return wide.to(value.dtype)


def _large(wide: torch.Tensor) -> torch.Tensor:
    """The size from which a value counts as large."""
    flat = wide.abs().reshape(-1)
    step = -(-flat.numel() // SAMPLED)
    return torch.quantile(flat[::step].contiguous(), SPIKED_SHARE)
