"""The gate of Kimi K2.6: 8 of 384 experts for each token by sigmoid scores and a correction bias, and their weights.

The reference scores in float64; near ties may be ranked either way, so `compare` holds a candidate to its own ids (see
`routing`). Logits may be infinite or NaN, as broken activations make them. An infinite logit is an ordinary one. In a
row with a NaN any answer is right that nothing behind the gate can trip over: each id from 0 to 383 or -1, no expert
twice, the weights from 0 to 2.827. The reference takes NaN for -inf.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernelgen.errors import ConfigError, nearest
from kernelgen.targets.compare import ToleranceTable, bounds, element_distance, non_finite, require_exact, structure
from kernelgen.targets.routing import (
    CHOSEN,
    EXPERTS,
    KINDS,
    ROUTED_SCALING_FACTOR,
    choice_faults,
    choose,
    make_logits,
    weigh,
)

if TYPE_CHECKING:
    from torch import Generator, Tensor

OUTPUTS = ("weights", "ids")
# how often an infinity stands in a row that has some
INFINITE_SHARE = 0.05


def make_inputs(dims: dict[str, int], kind: str, seed: int, device: str) -> dict[str, Any]:
    """logits [T, 384] fp32 and bias [384] fp32 on `device`, the same for the same seed.

    The kinds are those of `routing.make_logits`; of eight stressed rows one has a NaN, one is all NaN, one has
    infinities of both signs and one is all -inf. Raises ConfigError for an unknown kind.
    """
    import torch

    if kind not in KINDS:
        raise ConfigError(f"moe_gate_k26 has no input kind '{kind}'{nearest(kind, KINDS)}")
    generator = torch.Generator(device=device).manual_seed(seed)
    logits, bias = make_logits(dims["T"], kind, generator)
    return {"logits": _broken(logits, generator) if kind == "stressed" else logits, "bias": bias}


def reference(logits: Tensor, bias: Tensor) -> tuple[Tensor, ...]:
    """(weights [T, 8] fp32, ids [T, 8] int32), ids by falling s + bias; scores and weights in float64."""
    mended = _mended(logits)
    ids = choose(mended, bias)
    return weigh(mended, ids).float(), ids.int()


def compare(inputs: dict[str, Any], expected: Any, got: Any, tolerance: ToleranceTable) -> list[str]:
    """What is wrong with `got`, a sentence each; empty where nothing is. `expected` is the reference's answer.

    Raises ConfigError where the tolerance table does not fit the outputs.
    """
    import torch

    require_exact(tolerance, ("ids",))
    faults = structure(OUTPUTS, expected, got) or non_finite("weights", got[0])
    if faults:
        return faults
    weights, ids = got
    broken = inputs["logits"].isnan().any(dim=-1)
    mended = _mended(inputs["logits"])
    # rows with a NaN have a rule of their own: the others are judged with the reference's answer in their place
    judged = torch.where(broken[:, None], expected[1], ids)
    faults = choice_faults(mended, inputs["bias"], judged) + _broken_row_faults(broken, weights, ids, tolerance)
    if faults:
        return faults
    want = weigh(mended, judged)
    return element_distance("weights", want, torch.where(broken[:, None], want, weights.double()), tolerance)


def flops(dims: dict[str, int]) -> float:
    """A sigmoid (4 operations) and an addition for each score, an addition, division and product for each weight.

    Comparisons count for nothing, as usual: the region is bound by memory or by launches at every T.
    """
    return 5.0 * dims["T"] * EXPERTS + 3.0 * dims["T"] * CHOSEN


def bytes_moved(dims: dict[str, int]) -> float:
    """4TE for the logits and 4E for the bias (E = 384), 8 bytes for each of 8T pairs (id and weight)."""
    return 4.0 * EXPERTS * (dims["T"] + 1) + 8.0 * dims["T"] * CHOSEN


def _mended(logits: Tensor) -> Tensor:
    return logits.masked_fill(logits.isnan(), float("-inf"))


def _broken(logits: Tensor, generator: Generator) -> Tensor:
    """Logits with NaN and infinities in rows 4 to 7 of every eight."""
    import torch

    device = logits.device
    turn = (torch.arange(logits.shape[0], device=device) % 8)[:, None]
    chance = torch.rand(logits.shape, generator=generator, device=device)
    one = torch.arange(EXPERTS, device=device) == torch.randint(EXPERTS, (1,), generator=generator, device=device)
    is_nan = ((turn == 4) & one) | (turn == 5)
    is_low = ((turn == 6) & (chance < INFINITE_SHARE)) | (turn == 7)
    is_high = (turn == 6) & (chance > 1 - INFINITE_SHARE)
    infinite = logits.masked_fill(is_low, float("-inf")).masked_fill(is_high, float("inf"))
    return infinite.masked_fill(is_nan, float("nan"))


def _broken_row_faults(broken: Tensor, weights: Tensor, ids: Tensor, tolerance: ToleranceTable) -> list[str]:
    """Faults in rows with a NaN: an id that is no expert and not -1, an expert twice, a weight outside its range."""
    rtol, atol = bounds(tolerance, "weights")
    outside = broken[:, None] & ((ids < -1) | (ids >= EXPERTS))
    ranked = ids.sort(dim=-1).values
    twice = broken & ((ranked[:, 1:] == ranked[:, :-1]) & (ranked[:, 1:] >= 0)).any(dim=-1)
    largest = ROUTED_SCALING_FACTOR * (1 + rtol) + atol
    heavy = broken[:, None] & ((weights < 0) | (weights > largest))
    faults = []
    if outside.any():
        row, k = outside.nonzero()[0].tolist()
        faults.append(f"ids[{row}, {k}] is {int(ids[row, k])} in a row with a NaN, expected 0 to {EXPERTS - 1} or -1")
    if twice.any():
        row = int(twice.nonzero()[0])
        faults.append(f"ids[{row}], a row with a NaN, names an expert twice: {ids[row].tolist()}")
    if heavy.any():
        row, k = heavy.nonzero()[0].tolist()
        faults.append(f"weights[{row}, {k}] is {weights[row, k].item():.7g} in a row with a NaN, expected 0 to 2.827")
    return faults
