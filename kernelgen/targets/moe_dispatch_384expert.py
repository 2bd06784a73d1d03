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
from kernelgen.targets.routing import CHOSEN, EXPERTS, KINDS, choice_faults, choose, make_logits, weigh

if TYPE_CHECKING:
    from torch import Tensor

HIDDEN = 7168
OUTPUTS = ("rows", "offsets", "ids", "weights", "pairs")
# rows compared at once, so that the check needs little memory beside the outputs
ROWS_AT_ONCE = 16384


def make_inputs(dims: dict[str, int], kind: str, seed: int, device: str) -> dict[str, Any]:
    """hidden [T, 7168] bf16, logits [T, 384] fp32, bias [384] fp32 on `device`, the same for the same seed.

    The kinds are those of `routing.make_logits`; stressed ones also have rows of magnitude 1e-30 to 1e30. Raises
    ConfigError for an unknown kind.
    """
    import torch

    if kind not in KINDS:
        raise ConfigError(f"moe_dispatch_384expert has no input kind '{kind}'{nearest(kind, KINDS)}")
    generator = torch.Generator(device=device).manual_seed(seed)
    tokens = dims["T"]
    hidden = torch.randn(tokens, HIDDEN, generator=generator, device=device)
    logits, bias = make_logits(tokens, kind, generator)
    if kind == "stressed":
        magnitude = torch.tensor([1e30, 1.0, 1e-30], device=device)
        hidden *= magnitude[torch.arange(tokens, device=device) % 3, None]
    return {"hidden": hidden.bfloat16(), "logits": logits, "bias": bias}


def reference(hidden: Tensor, logits: Tensor, bias: Tensor) -> tuple[Tensor, ...]:
    """(rows [8T, 7168] bf16, offsets [385] int32, ids [T, 8] int32, weights [T, 8] fp32, pairs [8T] int32).

    Scores, choice and weights in float64, as `routing` has them.
    """
    import torch

    ids = choose(logits, bias)
    flat = ids.reshape(-1)
    order = torch.argsort(flat, stable=True)
    rows = hidden[order // CHOSEN]
    return rows, _offsets(flat), ids.int(), weigh(logits, ids).float(), order.int()


def compare(inputs: dict[str, Any], expected: Any, got: Any, tolerance: ToleranceTable) -> list[str]:
    """What is wrong with `got`, a sentence each; empty where nothing is. `expected` is the reference's answer.

    Raises ConfigError where the tolerance table does not fit the outputs.
    """
    require_exact(tolerance, ("rows", "offsets", "ids", "pairs"))
    faults = structure(OUTPUTS, expected, got)
    if faults:
        return faults
    rows, offsets, ids, weights, pairs = got
    faults = choice_faults(inputs["logits"], inputs["bias"], ids)
    if faults:
        return faults
    faults += element_distance("weights", weigh(inputs["logits"], ids), weights, tolerance)
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


def _offsets(flat_ids: Tensor) -> Tensor:
    """First slot of each expert and the number of pairs, [385] int32."""
    import torch

    experts = torch.arange(EXPERTS + 1, device=flat_ids.device, dtype=flat_ids.dtype)
    return torch.searchsorted(flat_ids.sort().values, experts).int()


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
