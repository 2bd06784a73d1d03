"""MoE routing and permutation of Kimi K2.6: 8 of 384 experts for each token, rows gathered in expert order.

The reference scores in float64. Honest fp32 kernels may rank near ties otherwise, so `compare` holds a candidate to its
own ids: they must be a right choice within EPSILON, and weights, offsets, pairs and rows must follow from them exactly.
`ids` are ordered: by falling s + bias, equal logits with equal bias by index. Logits are finite; NaN is not covered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernelgen.errors import ConfigError, nearest
from kernelgen.targets.compare import (
    ToleranceTable,
    element_distance,
    exact_distance,
    require_exact,
    structure,
)

if TYPE_CHECKING:
    from torch import Generator, Tensor

HIDDEN = 7168
EXPERTS = 384
CHOSEN = 8
ROUTED_SCALING_FACTOR = 2.827
WEIGHT_EPSILON = 1e-20
# scores s + bias that lie closer than this, relative to max(1, |score|), may change places: fp32 rounds a score near 1
# by 2^-24 and the sigmoid before it by a few times as much
EPSILON = 2.0**-20
OUTPUTS = ("rows", "offsets", "ids", "weights", "pairs")
KINDS = ("plain", "skewed", "ragged", "stressed")
# rows compared at once, so that the check needs little memory beside the outputs
ROWS_AT_ONCE = 16384


def make_inputs(dims: dict[str, int], kind: str, seed: int, device: str) -> dict[str, Any]:
    """hidden [T, 7168] bf16, logits [T, 384] fp32, bias [384] fp32 on `device`, the same for the same seed.

    plain: normal logits, small bias. skewed: popularity of experts by Zipf's law. ragged: 11 experts reachable, one of
    them chosen by every token, all others empty. stressed: exact ties, equal and saturated logits, a bias as large as
    the scores, rows of magnitude 1e-30 to 1e30. Raises ConfigError for an unknown kind.
    """
    import torch

    if kind not in KINDS:
        raise ConfigError(f"moe_dispatch_384expert has no input kind '{kind}'{nearest(kind, KINDS)}")
    generator = torch.Generator(device=device).manual_seed(seed)
    tokens = dims["T"]
    hidden = torch.randn(tokens, HIDDEN, generator=generator, device=device)
    logits = 1.5 * torch.randn(tokens, EXPERTS, generator=generator, device=device)
    bias = 0.05 * torch.randn(EXPERTS, generator=generator, device=device)
    if kind == "skewed":
        rank = torch.randperm(EXPERTS, generator=generator, device=device)
        logits += 3.0 - 1.5 * torch.log1p(rank.float())
    elif kind == "ragged":
        reachable = torch.randperm(EXPERTS, generator=generator, device=device)[: CHOSEN + 3]
        bias -= 4.0
        bias[reachable] += 4.0
        bias[reachable[0]] += 4.0
    elif kind == "stressed":
        magnitude = torch.tensor([1e30, 1.0, 1e-30], device=device)
        hidden *= magnitude[torch.arange(tokens, device=device) % 3, None]
        logits = _stressed_logits(logits, generator)
        bias = torch.randint(-8, 9, (EXPERTS,), generator=generator, device=device) / 8.0
    return {"hidden": hidden.bfloat16(), "logits": logits, "bias": bias}


def reference(hidden: Tensor, logits: Tensor, bias: Tensor) -> tuple[Tensor, ...]:
    """(rows [8T, 7168] bf16, offsets [385] int32, ids [T, 8] int32, weights [T, 8] fp32, pairs [8T] int32).

    s = sigmoid(logits) and s + bias in float64; the weights are the chosen s over their sum plus 1e-20, times 2.827
    (moonshotai/Kimi-K2.5 config.json: scoring_func, norm_topk_prob, routed_scaling_factor).
    """
    import torch

    biased = _biased(logits, bias)
    ids = torch.sort(biased, dim=-1, descending=True, stable=True).indices[:, :CHOSEN]
    flat = ids.reshape(-1)
    order = torch.argsort(flat, stable=True)
    rows = hidden[order // CHOSEN]
    return rows, _offsets(flat), ids.int().contiguous(), _weights(logits, ids).float(), order.int()


def compare(inputs: dict[str, Any], expected: Any, got: Any, tolerance: ToleranceTable) -> list[str]:
    """What is wrong with `got`, a sentence each; empty where nothing is. `expected` is the reference's answer.

    Raises ConfigError where the tolerance table does not fit the outputs.
    """
    require_exact(tolerance, ("rows", "offsets", "ids", "pairs"))
    faults = structure(OUTPUTS, expected, got)
    if faults:
        return faults
    rows, offsets, ids, weights, pairs = got
    faults = _choice_faults(inputs["logits"], inputs["bias"], ids)
    if faults:
        return faults
    faults += element_distance("weights", _weights(inputs["logits"], ids.long()), weights, tolerance)
    faults += exact_distance("offsets", _offsets(ids.reshape(-1)), offsets, "it must follow from the counts of ids")
    grouping = _grouping_faults(ids, pairs)
    return faults + (grouping or _row_faults(inputs["hidden"], pairs, rows))


def flops(dims: dict[str, int]) -> float:
    """A sigmoid (4 operations) and an addition for each score, an addition, division and product for each weight.

    Comparisons count for nothing, as usual: the region is bound by memory or by launches at every T.
    """
    tokens = dims["T"]
    return 5.0 * tokens * EXPERTS + 3.0 * tokens * CHOSEN


def bytes_moved(dims: dict[str, int]) -> float:
    """Inputs read and outputs written once: 2TH + 16TH for the rows (H = 7168), 4TE + 4E for logits and bias (E = 384),
    12 bytes for each pair (id, weight, pair index), 4(E + 1) for the offsets.
    """
    tokens = dims["T"]
    rows = 2.0 * tokens * HIDDEN * (1 + CHOSEN)
    scores = 4.0 * EXPERTS * (tokens + 1)
    return rows + scores + 12.0 * tokens * CHOSEN + 4.0 * (EXPERTS + 1)


def _stressed_logits(normal: Tensor, generator: Generator) -> Tensor:
    """Rows in turn: all equal; saturated at -30 or 30; a few distinct values (exact ties); nearly equal."""
    import torch

    turn = torch.arange(normal.shape[0], device=normal.device) % 4
    sign = torch.randint(0, 2, normal.shape, generator=generator, device=normal.device) * 2 - 1
    kinds = torch.stack([torch.zeros_like(normal), 30.0 * sign, torch.round(normal), 1e-3 * normal])
    return kinds[turn, torch.arange(normal.shape[0], device=normal.device)].contiguous()


def _biased(logits: Tensor, bias: Tensor) -> Tensor:
    return logits.double().sigmoid() + bias.double()


def _weights(logits: Tensor, ids: Tensor) -> Tensor:
    """Weights [T, 8] float64 of the given ids."""
    chosen = logits.double().sigmoid().gather(1, ids)
    return chosen / (chosen.sum(dim=-1, keepdim=True) + WEIGHT_EPSILON) * ROUTED_SCALING_FACTOR


def _offsets(flat_ids: Tensor) -> Tensor:
    """First slot of each expert and the number of pairs, [385] int32."""
    import torch

    experts = torch.arange(EXPERTS + 1, device=flat_ids.device, dtype=flat_ids.dtype)
    return torch.searchsorted(flat_ids.sort().values, experts).int()


def _choice_faults(logits: Tensor, bias: Tensor, ids: Tensor) -> list[str]:
    """Whether ids are 8 distinct experts, the best within EPSILON, in order, exact ties by index."""
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


def _grouping_faults(ids: Tensor, pairs: Tensor) -> list[str]:
    """Whether pairs are a permutation of 0 to 8T-1, sorted by the experts of ids."""
    import torch

    every = torch.arange(pairs.numel(), device=pairs.device, dtype=pairs.dtype)
    faults = exact_distance("sorted pairs", every, pairs.sort().values, "every pair must appear once")
    if faults:
        return faults
    flat = ids.reshape(-1)
    place = "the expert of the pair in each slot must be the slot's"
    return exact_distance("ids of pairs", flat.sort().values, flat[pairs.long()], place)


def _row_faults(hidden: Tensor, pairs: Tensor, rows: Tensor) -> list[str]:
    """Whether rows are bitwise copies of the tokens of pairs."""
    import torch

    bits, source = rows.view(torch.int16), hidden.view(torch.int16)
    for start in range(0, pairs.numel(), ROWS_AT_ONCE):
        tokens = pairs[start : start + ROWS_AT_ONCE].long() // CHOSEN
        want = source[tokens]
        have = bits[start : start + ROWS_AT_ONCE]
        if torch.equal(want, have):
            continue
        slot, column = (want != have).nonzero()[0].tolist()
        token = int(tokens[slot])
        return [
            f"rows[{start + slot}, {column}] is {rows[start + slot, column].item():.7g}, expected the copy "
            f"{hidden[token, column].item():.7g} of token {token}"
        ]
    return []
