"""The gate of Kimi K2.6, shared by the targets that route: 8 of 384 experts for each token, and their weights.

All scores are float64 here. Honest fp32 kernels may rank near ties otherwise, so a candidate is held to its own ids:
they must be a right choice within EPSILON, in order, exact ties by index, and its weights must follow from them. Logits
may be infinite, as sigmoid(inf) = 1 and sigmoid(-inf) = 0; a target that takes NaN replaces it first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Generator, Tensor

EXPERTS = 384
CHOSEN = 8
ROUTED_SCALING_FACTOR = 2.827
WEIGHT_EPSILON = 1e-20
# scores s + bias that lie closer than this, relative to max(1, |score|), may change places: fp32 rounds a score near 1
# by 2^-24 and the sigmoid before it by a few times as much
EPSILON = 2.0**-20
KINDS = ("plain", "skewed", "ragged", "stressed")


def make_logits(tokens: int, kind: str, generator: Generator) -> tuple[Tensor, Tensor]:
    """Logits [T, 384] fp32 and bias [384] fp32 on the generator's device.

    plain: normal logits, small bias. skewed: popularity of experts by Zipf's law. ragged: 11 experts reachable, one of
    them chosen by every token, all others empty. stressed: exact ties, equal and saturated logits, a bias as large as
    the scores.
    """
    import torch

    device = generator.device
    logits = 1.5 * torch.randn(tokens, EXPERTS, generator=generator, device=device)
    bias = 0.05 * torch.randn(EXPERTS, generator=generator, device=device)
    if kind == "skewed":
        rank = torch.randperm(EXPERTS, generator=generator, device=device)
        logits += 3.0 - 1.5 * torch.log1p(rank.float())
    elif kind == "ragged":
        reachable = torch.randperm(EXPERTS, generator=generator, device=device)[: CHOSEN + 3]
        bias -= 4.0
        bias[reachable] += 4.0
        bias[reachable[:1]] += 4.0
    elif kind == "stressed":
        logits = _stressed_logits(logits, generator)
        bias = torch.randint(-8, 9, (EXPERTS,), generator=generator, device=device) / 8.0
    return logits, bias


def choose(logits: Tensor, bias: Tensor) -> Tensor:
    """Ids [T, 8] int64 of the largest sigmoid(logits) + bias in falling order, ties by index, in float64."""
    import torch

    ranked = torch.sort(_biased(logits, bias), dim=-1, descending=True, stable=True)
    return ranked.indices[:, :CHOSEN].contiguous()


def weigh(logits: Tensor, ids: Tensor) -> Tensor:
    """Weights [T, 8] float64 of the given ids: the chosen s = sigmoid(logits) over their sum plus 1e-20, times 2.827.

    From moonshotai/Kimi-K2.5 config.json: scoring_func, norm_topk_prob, routed_scaling_factor.
    """
    chosen = logits.double().sigmoid().gather(1, ids.long())
    return chosen / (chosen.sum(dim=-1, keepdim=True) + WEIGHT_EPSILON) * ROUTED_SCALING_FACTOR


def choice_faults(logits: Tensor, bias: Tensor, ids: Tensor) -> list[str]:
    """Whether ids [T, 8] are 8 distinct experts, the best within EPSILON, in order, exact ties by index."""
    import torch

    outside = (ids < 0) | (ids >= EXPERTS)
    if outside.any():
        row, k = outside.nonzero()[0].tolist()
        return [f"ids[{row}, {k}] is {int(ids[row, k])}, expected an expert from 0 to {EXPERTS - 1}"]
    chosen = torch.zeros_like(logits, dtype=torch.bool).scatter_(1, ids.long(), True)
    repeated = chosen.sum(dim=-1) < CHOSEN
    if repeated.any():
        row = int(repeated.nonzero()[0])
        return [f"ids[{row}] names an expert twice: {ids[row].tolist()}"]
    biased = _biased(logits, bias)
    slack = EPSILON * biased.abs().clamp(min=1.0)
    scores, ease = biased.gather(1, ids.long()), slack.gather(1, ids.long())
    left_out = (biased - slack).masked_fill(chosen, float("-inf")).amax(dim=-1)
    worse = left_out > (scores + ease).amin(dim=-1)
    if worse.any():
        row = int(worse.nonzero()[0])
        best = int(biased[row].masked_fill(chosen[row], float("-inf")).argmax())
        return [f"ids[{row}] leaves out expert {best}, whose s + bias {biased[row, best]:.7g} is among the 8 largest"]
    swapped = scores[:, 1:] - ease[:, 1:] > scores[:, :-1] + ease[:, :-1]
    if swapped.any():
        row, k = swapped.nonzero()[0].tolist()
        return [f"ids[{row}] is not by falling s + bias: {scores[row, k]:.7g} stands before {scores[row, k + 1]:.7g}"]
    return _tie_faults(logits, bias, ids, chosen)


def _stressed_logits(normal: Tensor, generator: Generator) -> Tensor:
    """Rows in turn: all equal; saturated at -30 or 30; a few distinct values (exact ties); nearly equal."""
    import torch

    turn = torch.arange(normal.shape[0], device=normal.device) % 4
    sign = torch.randint(0, 2, normal.shape, generator=generator, device=normal.device) * 2 - 1
    kinds = torch.stack([torch.zeros_like(normal), 30.0 * sign, torch.round(normal), 1e-3 * normal])
    return kinds[turn, torch.arange(normal.shape[0], device=normal.device)].contiguous()


def _biased(logits: Tensor, bias: Tensor) -> Tensor:
    return logits.double().sigmoid() + bias.double()


def _tie_faults(logits: Tensor, bias: Tensor, ids: Tensor, chosen: Tensor) -> list[str]:
    """Experts of equal logit and equal bias: the lower index is chosen first, and stands first."""
    import torch

    experts = torch.arange(EXPERTS, device=ids.device)
    rank = torch.full_like(logits, CHOSEN, dtype=torch.long)
    rank.scatter_(1, ids.long(), torch.arange(CHOSEN, device=ids.device).expand_as(ids).contiguous())
    for k in range(CHOSEN):
        own = ids[:, k : k + 1].long()
        equal = (logits == logits.gather(1, own)) & (bias == bias[own])
        wrong = equal & (experts < own) & (rank > k)
        if wrong.any():
            row, expert = wrong.nonzero()[0].tolist()
            place = "after" if chosen[row, expert] else "without"
            return [f"ids[{row}, {k}] is {int(own[row])} {place} expert {expert}, which ties with it and comes first"]
    return []
