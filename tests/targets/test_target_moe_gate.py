"""The gate target refuses what is not the choice, whatever NaN and infinities do, and counts the known costs."""

import re
from typing import Any

import pytest
import torch

from kernelgen.errors import ConfigError
from kernelgen.targets import moe_gate_k26 as target

TOLERANCE = {"weights": (1e-5, 1e-6), "ids": (0.0, 0.0)}
DIMS = {"T": 24}
# of eight stressed rows: one NaN, all NaN
NAN_ROWS = [4, 5, 12, 13, 20, 21]
Outputs = tuple[torch.Tensor, torch.Tensor]


@pytest.fixture(scope="module", params=target.KINDS)
def case(request: pytest.FixtureRequest) -> tuple[dict[str, Any], Outputs]:
    inputs = target.make_inputs(DIMS, request.param, 3, "cpu")
    return inputs, target.reference(**inputs)


@pytest.fixture(scope="module")
def stressed() -> tuple[dict[str, Any], Outputs]:
    inputs = target.make_inputs(DIMS, "stressed", 3, "cpu")
    return inputs, target.reference(**inputs)


def _faults(case: tuple[dict[str, Any], Outputs], got: Any) -> list[str]:
    return target.compare(case[0], case[1], got, TOLERANCE)


def _of(scores: torch.Tensor, bias: torch.Tensor) -> Outputs:
    """The answer for any scores [T, 384] fp32."""
    ids = (scores + bias).sort(dim=-1, descending=True, stable=True).indices[:, :8]
    chosen = scores.gather(1, ids)
    return chosen / (chosen.sum(dim=-1, keepdim=True) + 1e-20) * 2.827, ids.int().contiguous()


def _scores(inputs: dict[str, Any]) -> torch.Tensor:
    return inputs["logits"].sigmoid().nan_to_num(nan=0.0)


def test_reference_is_accepted_deterministic_and_finite(case: Any) -> None:
    assert _faults(case, case[1]) == []
    assert all(torch.equal(one, other) for one, other in zip(case[1], target.reference(**case[0]), strict=True))


def test_fp32_torch_is_accepted(case: Any) -> None:
    assert _faults(case, _of(_scores(case[0]), case[0]["bias"])) == []


def _zeros(inputs: dict[str, Any], want: Outputs) -> Outputs:
    return torch.zeros_like(want[0]), torch.zeros_like(want[1])


def _first_eight(inputs: dict[str, Any], want: Outputs) -> Outputs:
    return want[0], torch.arange(8, dtype=torch.int32).expand(DIMS["T"], 8).contiguous()


def _half_done(inputs: dict[str, Any], want: Outputs) -> Outputs:
    weights, ids = want[0].clone(), want[1].clone()
    weights[DIMS["T"] // 2 :], ids[DIMS["T"] // 2 :] = 0, -1
    return weights, ids


def _unnormalised(inputs: dict[str, Any], want: Outputs) -> Outputs:
    return _scores(inputs).gather(1, want[1].long()), want[1]


def _unscaled(inputs: dict[str, Any], want: Outputs) -> Outputs:
    return want[0] / 2.827, want[1]


def _biased_weights(inputs: dict[str, Any], want: Outputs) -> Outputs:
    chosen = (_scores(inputs) + inputs["bias"]).gather(1, want[1].long()).abs()
    return chosen / chosen.sum(dim=-1, keepdim=True) * 2.827, want[1]


def _ascending(inputs: dict[str, Any], want: Outputs) -> Outputs:
    return want[0].flip(1).contiguous(), want[1].flip(1).contiguous()


def _bias_ignored(inputs: dict[str, Any], want: Outputs) -> Outputs:
    return _of(_scores(inputs), torch.zeros(384))


def _unwritten(inputs: dict[str, Any], want: Outputs) -> Outputs:
    return torch.full_like(want[0], float("nan")), want[1]


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (_zeros, "names an expert twice"),
        (_first_eight, "leaves out expert|without expert"),
        (_half_done, r"ids\[\d+, 0\] is -1, expected an expert"),
        (_unnormalised, r"weights\["),
        (_unscaled, r"weights\["),
        (_biased_weights, r"weights\["),
        (_ascending, "is not by falling|which ties with it"),
        (_bias_ignored, "leaves out expert|without expert"),
        (_unwritten, "are not finite"),
    ],
)
def test_wrong_answers_are_refused_for_every_kind(case: Any, wrong: Any, sentence: str) -> None:
    faults = _faults(case, wrong(*case))
    assert any(re.search(sentence, fault) for fault in faults), faults


@pytest.mark.parametrize("kind", ["plain", "skewed", "stressed"])
def test_scores_in_bf16_are_refused_where_many_experts_compete(kind: str) -> None:
    inputs = target.make_inputs(DIMS, kind, 3, "cpu")
    scores = inputs["logits"].bfloat16().sigmoid().float().nan_to_num(nan=0.0)
    assert _faults((inputs, target.reference(**inputs)), _of(scores, inputs["bias"])) != []


def test_stressed_rows_hold_nan_and_infinities(stressed: Any) -> None:
    logits = stressed[0]["logits"]
    assert logits.isnan().any(dim=-1).nonzero()[:, 0].tolist() == NAN_ROWS
    assert logits[4].isnan().sum() == 1
    assert logits[5].isnan().all()
    assert logits[6].isposinf().any()
    assert logits[6].isneginf().any()
    assert logits[7].isneginf().all()
    # every score is 0 there: what the epsilon in the denominator is for
    assert torch.equal(stressed[1][0][7], torch.zeros(8))


def test_rows_with_a_nan_may_name_no_expert_at_all(stressed: Any) -> None:
    inputs, (weights, ids) = stressed
    weights, ids = weights.clone(), ids.clone()
    weights[NAN_ROWS], ids[NAN_ROWS] = 0.0, -1
    assert _faults((inputs, stressed[1]), (weights, ids)) == []
    ids[NAN_ROWS] = torch.arange(383, 375, -1, dtype=torch.int32)
    assert _faults((inputs, stressed[1]), (weights, ids)) == []


@pytest.mark.parametrize(
    ("place", "value", "sentence"),
    [
        ("ids", 384, r"ids\[5, 2\] is 384 in a row with a NaN, expected 0 to 383 or -1"),
        ("ids", -2, r"ids\[5, 2\] is -2 in a row"),
        ("ids", 2**31 - 1, r"ids\[5, 2\] is 2147483647"),
        ("weights", -0.5, r"weights\[5, 2\] is -0.5 in a row with a NaN"),
        ("weights", 3.0, r"weights\[5, 2\] is 3 in a row with a NaN"),
        ("weights", float("nan"), r"weights\[5, 2\] is nan: 1 of 192"),
    ],
)
def test_rows_with_a_nan_must_still_be_safe(stressed: Any, place: str, value: float, sentence: str) -> None:
    got = {"weights": stressed[1][0].clone(), "ids": stressed[1][1].clone()}
    got[place][5, 2] = value
    faults = _faults(stressed, (got["weights"], got["ids"]))
    assert any(re.search(sentence, fault) for fault in faults), faults


def test_an_expert_twice_in_a_row_with_a_nan_is_refused(stressed: Any) -> None:
    ids = stressed[1][1].clone()
    ids[5, 2] = ids[5, 3]
    assert any("ids[5], a row with a NaN, names an expert twice" in f for f in _faults(stressed, (stressed[1][0], ids)))


def test_unknown_kind_and_a_tolerance_on_ids_are_refused(stressed: Any) -> None:
    with pytest.raises(ConfigError, match="did you mean 'stressed'"):
        target.make_inputs(DIMS, "stresed", 1, "cpu")
    with pytest.raises(ConfigError, match="tolerance of 'ids' must be 0"):
        target.compare(*stressed, stressed[1], TOLERANCE | {"ids": (0.1, 0.0)})


@pytest.mark.parametrize(
    ("tokens", "microseconds"), [(64, 0.02), (1024, 0.38), (4096, 1.5), (16384, 6.1), (65536, 24.4)]
)
def test_bytes_give_the_known_floors_of_the_gate(tokens: int, microseconds: float) -> None:
    # floors at 4.3 TB/s as tabulated for the region, to the table's rounding
    assert target.bytes_moved({"T": tokens}) / 4.3e12 * 1e6 == pytest.approx(microseconds, rel=0.02, abs=0.005)


def test_costs_are_the_formulas_term_by_term() -> None:
    inputs = target.make_inputs({"T": 3}, "plain", 1, "cpu")
    moved = sum(tensor.nbytes for tensor in (*inputs.values(), *target.reference(**inputs)))
    assert target.bytes_moved({"T": 3}) == moved
    assert target.flops({"T": 3}) == 5 * 3 * 384 + 3 * 24
