"""SiLU, product with the up projection and quantisation to e4m3 of the experts' rows, a scale for every 128 values.

Nothing is rounded between the bf16 inputs and the codes. The reference works in float64. How y and its scales are
judged, and what of them not on a CPU, says `fp8_groups`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernelgen.errors import ConfigError, nearest
from kernelgen.targets.compare import ToleranceTable, structure
from kernelgen.targets.fp8_groups import GROUP, group_bytes, group_faults, quantise_groups

if TYPE_CHECKING:
    from torch import Tensor

OUTPUTS = ("y", "scales")
KINDS = ("plain", "skewed", "ragged", "stressed")
# channels of a skewed batch that are large in every row: one of this many, and how large
OUTLIER_EVERY = 97
OUTLIER_FACTOR = 30.0
# sizes of the rows of a stressed batch in turn
ROW_SIZES = (1e-3, 1.0, 20.0)
# gates at which exp overflows fp32 on one side and vanishes on the other
SATURATED = 1e4


def make_inputs(dims: dict[str, int], kind: str, seed: int, device: str) -> dict[str, Any]:
    """gate_up [R, 2n] bf16 on `device`: n gates, then n values of the up projection; the same for the same seed.

    plain: normal values. skewed: one channel of 97 thirty times as large. ragged: rows that are padding, all zero, and
    groups that are zero, at random. stressed: rows 1e-3 to 20 large in turn; in each group a gate of 1e4, its
    factor as much smaller, and one of -1e4; every fourth group has negative gates alone. Raises ConfigError
    for an unknown kind.
    """
    import torch

    if kind not in KINDS:
        raise ConfigError(f"silu_mul_fp8_g128 has no input kind '{kind}'{nearest(kind, KINDS)}")
    generator = torch.Generator(device=device).manual_seed(seed)
    rows, columns = dims["R"], dims["n"]
    gate = torch.randn(rows, columns, generator=generator, device=device)
    up = torch.randn(rows, columns, generator=generator, device=device)
    if kind == "skewed":
        gate[:, ::OUTLIER_EVERY] *= OUTLIER_FACTOR
    elif kind == "ragged":
        groups = torch.rand(rows, columns // GROUP, generator=generator, device=device) < 0.25
        padding = torch.rand(rows, 1, generator=generator, device=device) < 0.25
        padding[0] = False
        empty = (groups | padding).repeat_interleave(GROUP, dim=1)
        empty[0, :GROUP] = False
        gate.masked_fill_(empty, 0.0)
        up.masked_fill_(empty, 0.0)
    elif kind == "stressed":
        _stress(gate, up)
    return {"gate_up": torch.cat([gate, up], dim=-1).bfloat16()}


def reference(gate_up: Tensor) -> tuple[Tensor, ...]:
    """(y [R, n] e4m3, scales [R, n/128] fp32), in float64.

    v = g / (1 + exp(-g)) * u; scale = max(|v|, 1e-10) / 448 over each 128 columns; y = e4m3(v / scale).
    """
    gate, up = gate_up.double().chunk(2, dim=-1)
    return quantise_groups(gate * gate.sigmoid() * up)


def compare(inputs: dict[str, Any], expected: Any, got: Any, tolerance: ToleranceTable) -> list[str]:
    """What is wrong with `got`, a sentence each; empty where nothing is. `expected` is the reference's answer.

    Raises ConfigError where the tolerance table lacks an entry.
    """
    return structure(OUTPUTS, expected, got) or group_faults(expected, got, tolerance, interpreted=not got[0].is_cuda)


def flops(dims: dict[str, int]) -> float:
    """Eight operations a value: the sigmoid four, two products, the largest value and the quotient."""
    return 8.0 * dims["R"] * dims["n"]


def bytes_moved(dims: dict[str, int]) -> float:
    """5Rn + Rn/32: two bf16 values in, a byte a code and 4 bytes a scale out."""
    return 4.0 * dims["R"] * dims["n"] + group_bytes(dims["R"], dims["n"])


def _stress(gate: Tensor, up: Tensor) -> None:
    """Sizes, saturated gates and negative groups, in place; see `make_inputs`."""
    import torch

    rows, columns = gate.shape
    size = torch.tensor(ROW_SIZES, device=gate.device)[torch.arange(rows, device=gate.device) % len(ROW_SIZES), None]
    gate *= size
    group = torch.arange(columns, device=gate.device) // GROUP
    place = torch.arange(rows, device=gate.device)[:, None] + group
    gate[:, 5::GROUP] = SATURATED
    up[:, 5::GROUP] /= SATURATED
    gate[:, 70::GROUP] = -SATURATED
    gate.copy_(torch.where(place % 4 == 3, -gate.abs(), gate))
