"""The routed experts of Kimi K2.6 on one rank, shared by the targets behind the gate: ids, costs and the layer itself.

A rank holds E of E * EP experts. `ids` [T, 8] int32 name its own by 0 to E - 1; a pair with an expert elsewhere is -1.
Ids of a token are distinct, -1 aside. Costs count what routing leaves to do: expected values for uniform routing from
dimensions, exact ones from ids.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from kernelgen.targets.routing import CHOSEN, ROUTED_SCALING_FACTOR

if TYPE_CHECKING:
    from torch import Generator, Tensor

# ids and weights of a pair: int32 and fp32
PAIR_BYTES = 8


def make_ids(tokens: int, experts: int, ranks: int, kind: str, generator: Generator) -> Tensor:
    """Ids [T, 8] int32 of the first of `ranks` ranks with `experts` experts each, on the generator's device.

    plain: uniform. skewed: Zipf's law. ragged: 11 experts reachable, one of this rank's chosen by every token, all
    others empty. stressed: of four tokens one has no expert here, one the same experts as the first token, and the
    others lose a quarter of their pairs.
    """
    import torch

    device = generator.device
    everywhere = experts * ranks
    score = torch.rand(tokens, everywhere, generator=generator, device=device)
    order = torch.randperm(everywhere, generator=generator, device=device)
    if kind == "skewed":
        # the largest of log-popularity plus Gumbel noise draws without replacement by popularity
        score = -torch.log(-torch.log(score.clamp(1e-6, 1 - 1e-6))) - 1.5 * torch.log1p(order.float())
    elif kind == "ragged":
        score += (order < CHOSEN + 2).float()
        score[:, torch.randint(experts, (1,), generator=generator, device=device)] = CHOSEN
    ids = score.topk(CHOSEN, dim=-1).indices
    if kind == "stressed":
        turn = (torch.arange(tokens, device=device) % 4)[:, None]
        ids = torch.where(turn == 2, ids[:1], ids)
        lost = torch.rand(tokens, CHOSEN, generator=generator, device=device) < 0.25
        ids = torch.where((turn == 1) | (lost & (turn % 3 == 0)), -1, ids)
    return torch.where(ids < experts, ids, -1).int()


def make_weights(tokens: int, generator: Generator) -> Tensor:
    """Weights [T, 8] fp32 as the gate makes them: positive, of sum 2.827 before pairs are lost."""
    import torch

    share = 0.1 + torch.rand(tokens, CHOSEN, generator=generator, device=generator.device)
    return share / share.sum(dim=-1, keepdim=True) * ROUTED_SCALING_FACTOR


def experts_hit(tokens: int, experts: int, ranks: int) -> float:
    """Expected distinct experts of this rank that T tokens choose uniformly: E * (1 - (1 - 8 / (E * EP))^T)."""
    return experts * (1.0 - (1.0 - CHOSEN / (experts * ranks)) ** tokens)


def tokens_hit(tokens: int, experts: int, ranks: int) -> float:
    """Expected tokens with an expert of this rank, choosing 8 distinct ones of E * EP uniformly."""
    everywhere = experts * ranks
    none_here = math.comb(everywhere - experts, CHOSEN) / math.comb(everywhere, CHOSEN)
    return tokens * (1.0 - none_here)


def count_hits(ids: Tensor) -> tuple[int, int]:
    """Distinct experts in ids, and tokens with at least one."""
    here = ids >= 0
    return int(ids[here].unique().numel()), int(here.any(dim=-1).sum())


def layer_flops(dims: dict[str, int]) -> float:
    """2 * 8T / EP * 3nH: gate, up and down projection of the pairs this rank expects; activation counts for nothing."""
    return 2.0 * CHOSEN * dims["T"] / dims["EP"] * 3 * dims["n"] * dims["H"]


def layer_bytes(size: tuple[int, int], expert_bytes: float, row_bytes: float, hits: tuple[float, float]) -> float:
    """Weights of the experts hit, rows of the tokens hit, ids and weights of all pairs, and the output [T, H] in bf16.

    `size` is (T, H), `hits` the experts and tokens hit.
    """
    (tokens, width), (experts, rows) = size, hits
    return experts * expert_bytes + rows * row_bytes + tokens * (PAIR_BYTES * CHOSEN + 2.0 * width)


def expert_layer(
    rows: Tensor, ids: Tensor, weights: Tensor, gate_up: Callable[[int], Tensor], down: Callable[[int], Tensor]
) -> Tensor:
    """out [T, H] bf16, computed in float64 expert by expert: the weighted sum of W2 (silu(g) * u), (g, u) = W13 x.

    rows [T, H] of any dtype; gate_up(e) is [2n, H] float64, gate first, and down(e) [H, n] float64. Pairs with id -1
    add nothing.
    """
    import torch

    out = torch.zeros(rows.shape, dtype=torch.float64, device=rows.device)
    for expert in ids[ids >= 0].unique().tolist():
        tokens, place = (ids == expert).nonzero(as_tuple=True)
        gate, up = (rows[tokens].double() @ gate_up(expert).T).chunk(2, dim=-1)
        hidden = torch.nn.functional.silu(gate) * up
        out.index_add_(0, tokens, (hidden @ down(expert).T) * weights[tokens, place, None].double())
    return out.bfloat16()
