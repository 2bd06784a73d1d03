"""How far a solution's answer may lie from the Model's: KernelBench's tolerance, element by element, in float64.

KernelBench compares with torch.allclose, rtol and atol alike: 1e-2 at first, since then by precision. Here the absolute
part is a share of the output's own size: more of it where values are large, less where all of them are small.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from kernelgen.targets.compare import ToleranceTable, bounds
from kernelgen.targets.findings import Spec

# of KernelBench at its commit 0d12226, src/kernelbench/eval.py, get_tolerance_for_precision: rtol and atol alike
TOLERANCES = {torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 1e-2}
COARSEST = 1e-2
FINEST = 1e-4


def tolerances(inputs: Sequence[Spec], outputs: Sequence[Spec]) -> dict[str, tuple[float, float]]:
    """rtol and atol by output: those of the coarsest floating-point dtype; whole numbers have none."""
    dtypes = [getattr(torch, dtype) for _, dtype, _ in (*inputs, *outputs)]
    bound = max((_bound(dtype) for dtype in dtypes if dtype.is_floating_point), default=0.0)
    return {
        name: (bound, bound) if getattr(torch, dtype).is_floating_point else (0.0, 0.0) for name, dtype, _ in outputs
    }


def _bound(dtype: torch.dtype) -> float:
    return TOLERANCES.get(dtype, FINEST if dtype.itemsize > 4 else COARSEST)


def distance(name: str, want: Any, have: Any, tolerance: ToleranceTable, *, tightened: bool = False) -> list[str]:
    """A fault where an element is off by more than atol * size + rtol * |expected|, or where only one is not finite.

    size is the root mean square of the expected values along the last axis, but at least 1, so that sums of many terms
    that cancel are not held to more digits than they have; `tightened`, at least that of the whole output, so that
    zeros are no right answer where all values are small.
    """
    rtol, atol = bounds(tolerance, name)
    right, got = want.double(), have.double()
    odd = ~right.isfinite()
    same = (right == got) | (right.isnan() & got.isnan())
    limit = atol * _size(torch.where(odd, 0.0, right), tightened) + rtol * right.abs()
    off = (got - right).abs()
    wrong = torch.where(odd | ~got.isfinite(), ~same, off > limit)
    if not bool(wrong.any()):
        return []
    excess = torch.where(wrong, (off - limit).nan_to_num(nan=torch.inf, posinf=torch.inf, neginf=torch.inf), -1.0)
    place = tuple(int(axis) for axis in torch.unravel_index(excess.reshape(-1).argmax(), excess.shape))
    allowed = limit.expand_as(right)[place].item()
    return [
        f"{name}{list(place)} is {got[place].item():.7g}, expected {right[place].item():.7g}: "
        f"off by {off[place].item():.3g}, allowed {allowed:.3g} ({int(wrong.sum())} of {wrong.numel()} are wrong)"
    ]


def _size(right: Any, tightened: bool) -> Any:
    """The size that an absolute tolerance is a share of; broadcasts to the output."""
    squares = right.square()
    rows = (squares.mean(dim=-1, keepdim=True) if squares.dim() else squares).sqrt()
    whole = squares.mean().sqrt().item() if squares.numel() else 0.0
    return rows.clamp(min=min(whole, 1.0) if tightened and whole else 1.0)
