"""The dispatch target refuses every answer that is not the routing, accepts honest fp32, and counts the known costs."""

import re
from itertools import pairwise
from typing import Any

import pytest
import torch

from kernelgen.errors import ConfigError
from kernelgen.targets import moe_dispatch_384expert as target

KINDS = target.KINDS
TOLERANCE = {"weights": (1e-5, 1e-6), "rows": (0.0, 0.0)}
DIMS = {"T": 24}
Outputs = tuple[torch.Tensor, ...]


@pytest.fixture(scope="module", params=KINDS)
def case(request: pytest.FixtureRequest) -> tuple[dict[str, Any], Outputs]:
    inputs = target.make_inputs(DIMS, request.param, 3, "cpu")
    return inputs, target.reference(**inputs)


def _faults(inputs: dict[str, Any], got: Any) -> list[str]:
    return target.compare(inputs, target.reference(**inputs), got, TOLERANCE)


def _from_ids(inputs: dict[str, Any], ids: torch.Tensor) -> Outputs:
    """A consistent answer for any choice of ids."""
    flat = ids.reshape(-1)
    order = flat.argsort(stable=True)
    chosen = inputs["logits"].double().sigmoid().gather(1, ids.long())
    weights = (chosen / chosen.sum(dim=-1, keepdim=True) * 2.827).float()
    counts = torch.bincount(flat.long(), minlength=384).cumsum(0)
    offsets = torch.cat([counts.new_zeros(1), counts]).int()
    return inputs["hidden"][order // 8], offsets, ids, weights, order.int()


def test_reference_is_accepted_and_deterministic(case: tuple[dict[str, Any], Outputs]) -> None:
    inputs, expected = case
    assert _faults(inputs, expected) == []
    assert all(torch.equal(one, other) for one, other in zip(expected, target.reference(**inputs), strict=True))


def test_fp32_torch_is_accepted(case: tuple[dict[str, Any], Outputs]) -> None:
    inputs, _ = case
    biased = inputs["logits"].sigmoid() + inputs["bias"]
    ids = biased.sort(dim=-1, descending=True, stable=True).indices[:, :8].int().contiguous()
    assert _faults(inputs, _from_ids(inputs, ids)) == []


def test_any_order_within_an_expert_is_accepted(case: tuple[dict[str, Any], Outputs]) -> None:
    inputs, (_, offsets, ids, weights, pairs) = case
    flipped = torch.cat([pairs[start:end].flip(0) for start, end in pairwise(offsets.tolist())])
    assert not torch.equal(flipped, pairs)
    assert _faults(inputs, (inputs["hidden"][flipped // 8], offsets, ids, weights, flipped)) == []


def _zeros(inputs: dict[str, Any], want: Outputs) -> Outputs:
    return tuple(torch.zeros_like(tensor) for tensor in want)


def _constant(inputs: dict[str, Any], want: Outputs) -> Outputs:
    first_eight = torch.arange(8, dtype=torch.int32).expand(DIMS["T"], 8).contiguous()
    return _from_ids(inputs, first_eight)


def _first_rows_only(inputs: dict[str, Any], want: Outputs) -> Outputs:
    rows = want[0].clone()
    rows[len(rows) // 2 :] = 0
    return (rows, *want[1:])


def _last_element(inputs: dict[str, Any], want: Outputs) -> Outputs:
    rows = want[0].clone()
    rows[-1, -1] = -rows[-1, -1]
    return (rows, *want[1:])


def _token_order(inputs: dict[str, Any], want: Outputs) -> Outputs:
    pairs = torch.arange(8 * DIMS["T"], dtype=torch.int32)
    return inputs["hidden"][pairs // 8], *want[1:4], pairs


def _reversed(inputs: dict[str, Any], want: Outputs) -> Outputs:
    return want[0].flip(0), *want[1:4], want[4].flip(0)


def _one_pair_twice(inputs: dict[str, Any], want: Outputs) -> Outputs:
    pairs = want[4].clone()
    pairs[1] = pairs[0]
    return inputs["hidden"][pairs // 8], *want[1:4], pairs


def _unnormalised(inputs: dict[str, Any], want: Outputs) -> Outputs:
    return *want[:3], inputs["logits"].sigmoid().gather(1, want[2].long()), want[4]


def _unscaled(inputs: dict[str, Any], want: Outputs) -> Outputs:
    return *want[:3], want[3] / 2.827, want[4]


def _equal_weights(inputs: dict[str, Any], want: Outputs) -> Outputs:
    return *want[:3], torch.full_like(want[3], 2.827 / 8), want[4]


def _ascending(inputs: dict[str, Any], want: Outputs) -> Outputs:
    return _from_ids(inputs, want[2].flip(1).contiguous())


def _bias_ignored(inputs: dict[str, Any], want: Outputs) -> Outputs:
    ids = inputs["logits"].sort(dim=-1, descending=True, stable=True).indices[:, :8]
    return _from_ids(inputs, ids.int().contiguous())


def _bf16_scores(inputs: dict[str, Any], want: Outputs) -> Outputs:
    biased = inputs["logits"].bfloat16().sigmoid() + inputs["bias"].bfloat16()
    return _from_ids(inputs, biased.sort(dim=-1, descending=True, stable=True).indices[:, :8].int().contiguous())


def _offsets_shifted(inputs: dict[str, Any], want: Outputs) -> Outputs:
    return want[0], want[1].roll(1), *want[2:]


def _one_expert_out_of_range(inputs: dict[str, Any], want: Outputs) -> Outputs:
    ids = want[2].clone()
    ids[5, 3] = 384
    return *want[:2], ids, *want[3:]


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (_zeros, "names an expert twice"),
        (_constant, "leaves out expert|without expert"),
        (_first_rows_only, r"rows\[\d+, \d+\] is 0, expected the copy"),
        (_last_element, r"rows\[191, 7167\]"),
        (_token_order, "must be the slot's"),
        (_reversed, "must be the slot's"),
        (_one_pair_twice, "every pair must appear once"),
        (_unnormalised, r"weights\["),
        (_unscaled, r"weights\["),
        (_ascending, "is not by falling"),
        (_bias_ignored, "leaves out expert|without expert"),
        (_offsets_shifted, "must follow from the counts"),
        (_one_expert_out_of_range, r"ids\[5, 3\] is 384"),
    ],
)
def test_wrong_answers_are_refused_for_every_kind(case: Any, wrong: Any, sentence: str) -> None:
    inputs, expected = case
    faults = _faults(inputs, wrong(inputs, expected))
    assert any(re.search(sentence, fault) for fault in faults), faults


@pytest.mark.parametrize("kind", ["plain", "skewed", "ragged"])
def test_equal_weights_are_refused_where_scores_differ(kind: str) -> None:
    inputs = target.make_inputs(DIMS, kind, 3, "cpu")
    assert any("weights[" in fault for fault in _faults(inputs, _equal_weights(inputs, target.reference(**inputs))))


@pytest.mark.parametrize("kind", ["plain", "skewed", "stressed"])
def test_scores_in_bf16_are_refused_where_many_experts_compete(kind: str) -> None:
    inputs = target.make_inputs(DIMS, kind, 3, "cpu")
    assert any(fault.startswith("ids[") for fault in _faults(inputs, _bf16_scores(inputs, target.reference(**inputs))))


def test_exact_ties_go_to_the_lowest_index() -> None:
    inputs = target.make_inputs({"T": 2}, "plain", 1, "cpu")
    inputs["logits"].zero_()
    inputs["bias"].zero_()
    lowest = torch.arange(8, dtype=torch.int32).expand(2, 8).contiguous()
    assert torch.equal(target.reference(**inputs)[2], lowest)
    assert _faults(inputs, _from_ids(inputs, lowest)) == []
    swapped = lowest.clone()
    swapped[1, :2] = torch.tensor([1, 0])
    assert _faults(inputs, _from_ids(inputs, swapped)) == [
        "ids[1, 0] is 1 after expert 0, which ties with it and comes first"
    ]
    assert "without expert" in _faults(inputs, _from_ids(inputs, lowest + 8))[0]


@pytest.mark.parametrize(("gap", "accepted"), [(1e-6, True), (1e-3, False)])
@pytest.mark.parametrize("place", [0, 7])
def test_near_ties_may_change_places_within_the_choice_and_across_its_edge(
    gap: float, accepted: bool, place: int
) -> None:
    inputs = target.make_inputs({"T": 1}, "plain", 1, "cpu")
    inputs["bias"].zero_()
    # by falling score: experts 300, 299, …, 292; the pair at `place` lies only `gap` apart
    ranked = torch.arange(300, 291, -1)
    inputs["logits"].fill_(-5.0)
    inputs["logits"][0, ranked] = torch.linspace(2.0, 0.4, 9)
    inputs["logits"][0, ranked[place + 1]] = inputs["logits"][0, ranked[place]] - gap
    swapped = ranked.int()
    swapped[[place, place + 1]] = swapped[[place + 1, place]]
    assert _faults(inputs, _from_ids(inputs, ranked[None, :8].int().contiguous())) == []
    faults = _faults(inputs, _from_ids(inputs, swapped[None, :8].contiguous()))
    assert (faults == []) is accepted, faults


def test_ragged_leaves_most_experts_empty_and_gives_one_every_token() -> None:
    inputs = target.make_inputs(DIMS, "ragged", 3, "cpu")
    counts = target.reference(**inputs)[1].diff()
    assert int(counts.max()) == DIMS["T"]
    assert int((counts == 0).sum()) >= 384 - 11


def test_skewed_experts_are_far_from_balanced() -> None:
    inputs = target.make_inputs({"T": 256}, "skewed", 3, "cpu")
    counts = target.reference(**inputs)[1].diff().sort(descending=True).values
    assert counts[:16].sum() > 0.5 * counts.sum()


def test_stressed_has_exact_ties_and_saturated_scores() -> None:
    inputs = target.make_inputs(DIMS, "stressed", 3, "cpu")
    assert inputs["logits"][0].unique().numel() == 1
    assert inputs["logits"][1].abs().unique().tolist() == [30.0]
    assert inputs["bias"].unique().numel() <= 17
    assert inputs["hidden"].isfinite().all()


def test_unknown_kind_and_a_tolerance_on_exact_outputs_are_refused() -> None:
    with pytest.raises(ConfigError, match="did you mean 'skewed'"):
        target.make_inputs(DIMS, "skewd", 1, "cpu")
    inputs = target.make_inputs({"T": 1}, "plain", 1, "cpu")
    expected = target.reference(**inputs)
    with pytest.raises(ConfigError, match="tolerance of 'rows' must be 0"):
        target.compare(inputs, expected, expected, {"weights": (0.0, 0.0), "rows": (0.1, 0.0)})


@pytest.mark.parametrize(("tokens", "microseconds"), [(16, 0.49), (512, 15.7), (4096, 125.5)])
def test_bytes_give_the_known_floors_of_dispatch(tokens: int, microseconds: float) -> None:
    # floors at 4.26 TB/s of the dispatch region in the H200 measurements
    assert target.bytes_moved({"T": tokens}) / 4.26e12 * 1e6 == pytest.approx(microseconds, rel=0.02)


def test_costs_are_the_formulas_term_by_term() -> None:
    inputs = target.make_inputs({"T": 3}, "plain", 1, "cpu")
    moved = sum(tensor.nbytes for tensor in (*inputs.values(), *target.reference(**inputs)))
    assert target.bytes_moved({"T": 3}) == moved
    assert target.flops({"T": 3}) == 5 * 3 * 384 + 3 * 24
