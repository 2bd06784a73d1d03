"""Residual add, RMSNorm and quantisation to e4m3 of Kimi K2's rows of 7168, a scale for every 128 values.

The norm is of the fp32 sum, not of the sum as it is stored in bf16, as in flashinfer-bench's fused_add_rmsnorm_h7168.
The reference works in float64. How y and its scales are judged, and what of them not on a CPU, says `fp8_groups`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernelgen.errors import ConfigError, nearest
from kernelgen.targets.compare import ToleranceTable, element_distance, structure
from kernelgen.targets.fp8_groups import GROUP, group_bytes, group_faults, quantise_groups

if TYPE_CHECKING:
    from torch import Generator, Tensor

HIDDEN = 7168
OUTPUTS = ("residual_out", "y", "scales")
# rms_norm_eps differs between the model's releases
EPSILONS = {"plain": 1e-5, "skewed": 1e-6, "ragged": 1e-5, "stressed": 1e-6}
# channels that are large in every row of a skewed batch, as attention sinks make them, and how large
OUTLIERS = 16
OUTLIER_FACTOR = 100.0
# sizes of the rows of a stressed batch in turn: below, at and far above sqrt(eps); squares of the last fit fp32
ROW_SIZES = (1e-4, 1e-2, 1.0, 1e4)
# of a stressed row that is one spike near its end over small values
SPIKE = 3e3


def make_inputs(dims: dict[str, int], kind: str, seed: int, device: str) -> dict[str, Any]:
    """x [T, 7168] bf16, residual [T, 7168] bf16, weight [7168] bf16 on `device` and eps (float), the same for the same
    seed.

    plain: normal values. skewed: 16 channels a hundred times as large. ragged: rows that are zero but for a random
    part, so that whole groups are zero, and one row that is all zero. stressed: rows 1e-4 to 1e4 large in turn; in the
    first of them the residual cancels x but for rounding; in the last a spike stands near the end. Raises ConfigError
    for an unknown kind.
    """
    import torch

    if kind not in EPSILONS:
        raise ConfigError(f"add_rmsnorm_fp8_g128 has no input kind '{kind}'{nearest(kind, EPSILONS)}")
    generator = torch.Generator(device=device).manual_seed(seed)
    shape = (dims["T"], HIDDEN)
    x = torch.randn(shape, generator=generator, device=device)
    residual = torch.randn(shape, generator=generator, device=device)
    weight = 1.0 + 0.2 * torch.randn(HIDDEN, generator=generator, device=device)
    if kind == "skewed":
        channels = torch.randperm(HIDDEN, generator=generator, device=device)[:OUTLIERS]
        residual[:, channels] *= OUTLIER_FACTOR
    elif kind == "ragged":
        _leave_a_part(x, residual, generator)
    elif kind == "stressed":
        _stress(x, residual, weight)
    return {
        "x": x.bfloat16(),
        "residual": residual.bfloat16(),
        "weight": weight.bfloat16(),
        "eps": EPSILONS[kind],
    }


def reference(x: Tensor, residual: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, ...]:
    """(residual_out [T, 7168] bf16, y [T, 7168] e4m3, scales [T, 56] fp32), in float64.

    r = x + residual; residual_out = bf16(r); v = r * (mean(r^2) + eps)^-0.5 * weight; scale = max(|v|, 1e-10) / 448
    over each 128 columns; y = e4m3(v / scale).
    """
    total = x.double() + residual.double()
    normal = total * (total.square().mean(dim=-1, keepdim=True) + eps).rsqrt() * weight.double()
    codes, scales = quantise_groups(normal)
    return total.bfloat16(), codes, scales


def compare(inputs: dict[str, Any], expected: Any, got: Any, tolerance: ToleranceTable) -> list[str]:
    """What is wrong with `got`, a sentence each; empty where nothing is. `expected` is the reference's answer.

    Raises ConfigError where the tolerance table lacks an entry.
    """
    faults = structure(OUTPUTS, expected, got)
    if faults:
        return faults
    return element_distance("residual_out", expected[0], got[0], tolerance) + group_faults(
        expected[1:], got[1:], tolerance, interpreted=not got[1].is_cuda
    )


def flops(dims: dict[str, int]) -> float:
    """Seven operations a value: the sum, its square and the addition of it, two products, the comparison for the
    largest and the quotient; what a row or a group needs once counts for nothing.
    """
    return 7.0 * dims["T"] * HIDDEN


def bytes_moved(dims: dict[str, int]) -> float:
    """7TH + TH/32 (H = 7168): x and residual in, residual out in bf16, a byte a code, 4 bytes a scale; the weight."""
    tokens = dims["T"]
    return 6.0 * tokens * HIDDEN + group_bytes(tokens, HIDDEN) + 2.0 * HIDDEN


def _leave_a_part(x: Tensor, residual: Tensor, generator: Generator) -> None:
    """Zero every row outside a part of random length, in place; the last row wholly."""
    import torch

    tokens = x.shape[0]
    ends = torch.randint(GROUP, HIDDEN - GROUP, (tokens, 1), generator=generator, device=x.device)
    beyond = torch.arange(HIDDEN, device=x.device) >= ends
    # a single row stays: it is all the batch has
    beyond[1:][-1:] = True
    x.masked_fill_(beyond, 0.0)
    residual.masked_fill_(beyond, 0.0)


def _stress(x: Tensor, residual: Tensor, weight: Tensor) -> None:
    """Sizes, cancellation and a spike, in place; see `make_inputs`."""
    import torch

    tokens = x.shape[0]
    turn = torch.arange(tokens, device=x.device) % len(ROW_SIZES)
    sizes = torch.tensor(ROW_SIZES, device=x.device)[turn, None]
    x *= sizes
    residual *= sizes
    nearly = x.bfloat16().float() * (1.0 - 2.0**-7)
    residual.copy_(torch.where(turn[:, None] == 0, -nearly, residual))
    last = turn == len(ROW_SIZES) - 1
    residual[:, HIDDEN - 3] = torch.where(last, SPIKE * sizes[:, 0], residual[:, HIDDEN - 3])
    # a weight of zero makes groups with zeros in them, and a negative one turns signs
    weight[::3] *= -1.0
    weight[1::64] = 0.0
