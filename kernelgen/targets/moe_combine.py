"""The end of Kimi K2.6's MoE layer: each token's eight expert rows, weighted and summed, and the shared expert's row.

A pair whose weight is 0 was computed on another rank or not at all: its row of `z` is unwritten memory, may hold NaN or
infinities, and adds nothing. `shared` has S * T rows: none with S = 0, where there is no shared row to add.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernelgen.errors import ConfigError, nearest
from kernelgen.targets.compare import ToleranceTable, element_distance, structure
from kernelgen.targets.experts import make_ids, make_weights
from kernelgen.targets.routing import CHOSEN, EXPERTS
from kernelgen.targets.routing import KINDS as ROUTED_KINDS

if TYPE_CHECKING:
    from torch import Generator, Tensor

HIDDEN = 7168
# ranks that the experts of a kind are spread over; a pair of another rank has weight 0
RANKS = {"plain": 1, "skewed": 1, "ragged": 8, "stressed": 8, "exact": 1}
KINDS = (*ROUTED_KINDS, "exact")
# exact inputs: weights 87 * 3 and 87 * 5, which bf16 cannot hold, on rows 5m and -3m, which cancel; one pair of rows of
# small whole numbers with weights 1, 2 or 4 stays, of which bf16 can hold the sum
COMMON, FACTORS = 87, (3, 5)
LARGEST_MULTIPLE, LARGEST_REST, REST_POWERS = 8, 7, 3
# tokens summed at once, so that the float64 copy of z stays small
TOKENS_AT_ONCE = 2048


def make_inputs(dims: dict[str, int], kind: str, seed: int, device: str) -> dict[str, Any]:
    """z [T, 8, 7168] bf16, weights [T, 8] fp32, shared [S*T, 7168] bf16 on `device`, the same for the same seed.

    plain: all weights positive. skewed: one weight of each token 1e4 times the others. ragged: most pairs on another
    rank, with weight 0 and rows of NaN and infinities. stressed: such pairs too, tokens in turn 1, 1e-30 and 1e30 as
    large, and z that nearly cancels over each token. exact: whole numbers that leave no rounding to an fp32 sum, in any
    order. Raises ConfigError for an unknown kind.
    """
    import torch

    if kind not in KINDS:
        raise ConfigError(f"moe_combine has no input kind '{kind}'{nearest(kind, KINDS)}")
    generator = torch.Generator(device=device).manual_seed(seed)
    tokens = dims["T"]
    z = torch.empty(tokens, CHOSEN, HIDDEN, dtype=torch.bfloat16, device=device).normal_(generator=generator)
    shared = torch.empty(dims["S"] * tokens, HIDDEN, dtype=torch.bfloat16, device=device).normal_(generator=generator)
    weights = make_weights(tokens, generator)
    if kind == "exact":
        _make_exact(z, weights, shared, generator)
    elif kind == "skewed":
        weights[:, 1:] *= 1e-4
    elif kind == "stressed":
        size = torch.tensor([1.0, 1e-30, 1e30], device=device)[torch.arange(tokens, device=device) % 3]
        z[:, 1::2] = -z[:, ::2] * 1.25
        z *= size[:, None, None].bfloat16()
        shared *= size.repeat(dims["S"])[:, None].bfloat16()
    if RANKS[kind] > 1:
        elsewhere = make_ids(tokens, EXPERTS // RANKS[kind], RANKS[kind], kind, generator) < 0
        weights.masked_fill_(elsewhere, 0.0)
        unwritten = torch.tensor([float("nan"), float("inf"), -1.0], dtype=torch.bfloat16, device=device)
        turn = torch.arange(tokens * CHOSEN, device=device).reshape(tokens, CHOSEN) % len(unwritten)
        torch.where(elsewhere[:, :, None], unwritten[turn][:, :, None], z, out=z)
    return {"z": z, "weights": weights, "shared": shared}


def reference(z: Tensor, weights: Tensor, shared: Tensor) -> tuple[Tensor, ...]:
    """(out [T, 7168] bf16,): out[t] is the sum of weights[t, k] * z[t, k] over the k with weights[t, k] != 0, plus
    shared[t] where there is one, in float64.
    """
    import torch

    parts = [slice(start, start + TOKENS_AT_ONCE) for start in range(0, z.shape[0], TOKENS_AT_ONCE)]
    return (torch.cat([_total(z[part], weights[part], shared[part]).bfloat16() for part in parts]),)


def compare(inputs: dict[str, Any], expected: Any, got: Any, tolerance: ToleranceTable) -> list[str]:
    """What is wrong with `got`, a sentence each; empty where nothing is. `expected` is the reference's answer.

    Every element must lie within rtol * |sum| + atol * (sum of |terms|) of the float64 sum: not of its rounding to
    bf16, which would double the error of an honest answer; cancelling terms are judged by their size. Raises
    ConfigError where the tolerance table lacks the output.
    """
    faults = structure(("out",), expected, got)
    for start in range(0, 0 if faults else expected[0].shape[0], TOKENS_AT_ONCE):
        part = slice(start, start + TOKENS_AT_ONCE)
        z, weights, shared = (inputs[name][part] for name in ("z", "weights", "shared"))
        want, size = _total(z, weights, shared), _total(z.abs(), weights, shared.abs())
        faults = element_distance("out", want, got[0][part], tolerance, size)
        if faults:
            return [f"of the tokens from {start} on, {fault}" for fault in faults] if start else faults
    return faults


def flops(dims: dict[str, int]) -> float:
    """A product and an addition for each element of z, an addition for each of shared."""
    return float(HIDDEN * dims["T"] * (2 * CHOSEN + dims["S"]))


def bytes_moved(dims: dict[str, int]) -> float:
    """16TH for z, 32T for the weights, 2TH for the output, and 2TH where there is a shared row (H = 7168)."""
    return dims["T"] * (2.0 * HIDDEN * (CHOSEN + 1 + dims["S"]) + 4.0 * CHOSEN)


def bytes_of(inputs: dict[str, Any]) -> float:
    """Bytes for these very weights: as `bytes_moved`, without the rows of pairs whose weight is 0."""
    weights, shared = inputs["weights"], inputs["shared"]
    rows = int((weights != 0).sum()) + weights.shape[0] + shared.shape[0]
    return float(2.0 * HIDDEN * rows + 4.0 * weights.numel())


def _make_exact(z: Tensor, weights: Tensor, shared: Tensor, generator: Generator) -> None:
    """Whole numbers in place: three pairs of rows whose products cancel, whichever comes first, and a small rest."""
    import torch

    def whole(least: int, beyond: int, shape: Any) -> Tensor:
        return torch.randint(least, beyond, shape, generator=generator, device=z.device).float()

    multiple = whole(-LARGEST_MULTIPLE, LARGEST_MULTIPLE + 1, z[:, ::2].shape)
    one, other = FACTORS
    factor = one + (other - one) * whole(0, 2, weights[:, ::2].shape)
    partner = one + other - factor
    weights[:, ::2], weights[:, 1::2] = COMMON * factor, COMMON * partner
    z[:, ::2], z[:, 1::2] = partner[:, :, None] * multiple, -factor[:, :, None] * multiple
    weights[:, -2:] = torch.exp2(whole(0, REST_POWERS, weights[:, -2:].shape))
    z[:, -2:] = whole(-LARGEST_REST, LARGEST_REST + 1, z[:, -2:].shape)
    shared.copy_(whole(-LARGEST_REST, LARGEST_REST + 1, shared.shape))


def _total(z: Tensor, weights: Tensor, shared: Tensor) -> Tensor:
    """Weighted sums [t, 7168] float64 of some tokens; `shared` has their rows, or none at all."""
    factor = weights.double()[:, :, None]
    total = (z.double() * factor).masked_fill_(factor == 0, 0.0).sum(dim=1)
    return total + shared.double() if len(shared) else total
