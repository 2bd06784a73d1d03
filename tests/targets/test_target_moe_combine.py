"""The combine target refuses cheap sums and anything that lets unwritten rows through, and counts the known costs."""

from typing import Any

import pytest
import torch

from kernelgen.errors import ConfigError
from kernelgen.targets import moe_combine as target

TOLERANCE = {"out": (8e-3, 1e-5)}
Outputs = tuple[torch.Tensor, ...]


@pytest.fixture(scope="module", params=[(kind, shared) for kind in target.KINDS for shared in (0, 1)], ids=str)
def case(request: pytest.FixtureRequest) -> tuple[dict[str, Any], Outputs]:
    kind, shared = request.param
    inputs = target.make_inputs({"T": 12, "S": shared}, kind, 3, "cpu")
    return inputs, target.reference(**inputs)


def _faults(case: tuple[dict[str, Any], Outputs], got: Any) -> list[str]:
    return target.compare(case[0], case[1], got, TOLERANCE)


def _sum(inputs: dict[str, Any], dtype: torch.dtype = torch.float32, **changes: Any) -> Outputs:
    """The weighted sum, a rank after another, in some precision; `changes` replace inputs."""
    given = inputs | changes
    z = given["z"].masked_fill(given["weights"][:, :, None] == 0, 0.0).to(dtype)
    total = given["shared"].to(dtype) if len(given["shared"]) else torch.zeros(z.shape[0], 7168, dtype=dtype)
    for k in range(8):
        total = total + given["weights"][:, k, None].to(dtype) * z[:, k]
    return (total.bfloat16(),)


def test_reference_is_accepted_and_deterministic(case: Any) -> None:
    assert _faults(case, case[1]) == []
    assert torch.equal(case[1][0], target.reference(**case[0])[0])


def test_sums_in_fp32_are_accepted(case: Any) -> None:
    assert _faults(case, _sum(case[0])) == []


def test_sums_in_bf16_are_refused(case: Any) -> None:
    assert _faults(case, _sum(case[0], torch.bfloat16)) != []


def _zeros(inputs: dict[str, Any]) -> Outputs:
    return (torch.zeros_like(inputs["z"][:, 0]),)


def _first_expert_only(inputs: dict[str, Any]) -> Outputs:
    weights = inputs["weights"].clone()
    weights[:, 1:] = 0
    return _sum(inputs, weights=weights)


def _seven_of_eight(inputs: dict[str, Any]) -> Outputs:
    weights = inputs["weights"].clone()
    last = (weights != 0).long().cumsum(dim=-1).argmax(dim=-1)
    weights[torch.arange(len(weights)), last] = 0
    return _sum(inputs, weights=weights)


def _equal_weights(inputs: dict[str, Any]) -> Outputs:
    return _sum(inputs, weights=torch.where(inputs["weights"] == 0, 0.0, 2.827 / 8))


def _weights_in_bf16(inputs: dict[str, Any]) -> Outputs:
    return _sum(inputs, weights=inputs["weights"].bfloat16().float())


def _first_tokens_only(inputs: dict[str, Any]) -> Outputs:
    out = _sum(inputs)[0]
    out[6:] = 0
    return (out,)


def _last_column(inputs: dict[str, Any]) -> Outputs:
    out = _sum(inputs)[0]
    out[0, -1] += 0.05 * out[0, -1].abs() + 1.0
    return (out,)


@pytest.mark.parametrize(
    "wrong",
    [
        _zeros, _first_expert_only, _seven_of_eight, _equal_weights, _weights_in_bf16, _first_tokens_only, _last_column,
    ],
)  # fmt: skip
def test_wrong_answers_are_refused_for_every_kind(case: Any, wrong: Any) -> None:
    faults = _faults(case, wrong(case[0]))
    assert faults
    assert all(fault.startswith("out[") for fault in faults)


def test_a_forgotten_shared_row_is_refused() -> None:
    for kind in target.KINDS:
        inputs = target.make_inputs({"T": 12, "S": 1}, kind, 3, "cpu")
        got = _sum(inputs, shared=inputs["shared"][:0])
        assert _faults((inputs, target.reference(**inputs)), got) != [], kind


@pytest.mark.parametrize("kind", ["ragged", "stressed"])
def test_unwritten_rows_multiplied_by_zero_are_refused(kind: str) -> None:
    inputs = target.make_inputs({"T": 12, "S": 0}, kind, 3, "cpu")
    unwritten = inputs["weights"] == 0
    assert inputs["z"][unwritten].isnan().any()
    assert inputs["z"][unwritten].isinf().any()
    assert inputs["z"][~unwritten].isfinite().all()
    got = (torch.einsum("tkh,tk->th", inputs["z"].float(), inputs["weights"]).bfloat16(),)
    assert "are not finite" in _faults((inputs, target.reference(**inputs)), got)[0]


def test_a_token_without_any_expert_here_is_its_shared_row() -> None:
    inputs = target.make_inputs({"T": 12, "S": 1}, "stressed", 3, "cpu")
    nobody = (inputs["weights"] == 0).all(dim=-1)
    assert nobody.any()
    assert torch.equal(target.reference(**inputs)[0][nobody], inputs["shared"][nobody])


def test_a_fault_in_a_later_part_names_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target, "TOKENS_AT_ONCE", 4)
    inputs = target.make_inputs({"T": 10, "S": 1}, "plain", 3, "cpu")
    expected = target.reference(**inputs)
    assert _faults((inputs, expected), expected) == []
    out = expected[0].clone()
    out[9, 5] += 1
    assert _faults((inputs, expected), (out,))[0].startswith("of the tokens from 8 on, out[1, 5] is ")


def test_unknown_kind_and_a_missing_tolerance_are_refused(case: Any) -> None:
    with pytest.raises(ConfigError, match="did you mean 'skewed'"):
        target.make_inputs({"T": 1, "S": 0}, "skewd", 1, "cpu")
    with pytest.raises(ConfigError, match="no entry 'out'"):
        target.compare(*case, case[1], {})


@pytest.mark.parametrize(
    ("tokens", "microseconds"),
    [(16, 0.5), (64, 1.9), (256, 7.7), (1024, 30.7), (4096, 123), (8192, 246), (16384, 492)],
)
def test_bytes_give_the_known_floors_of_combine(tokens: int, microseconds: float) -> None:
    # floors at 4.3 TB/s as tabulated for the region, to the table's rounding
    floor = target.bytes_moved({"T": tokens, "S": 0}) / 4.3e12 * 1e6
    assert floor == pytest.approx(microseconds, rel=0.005, abs=0.06)
    shared = target.bytes_moved({"T": tokens, "S": 1}) - target.bytes_moved({"T": tokens, "S": 0})
    assert shared == 2 * tokens * 7168


def test_costs_are_those_of_the_tensors_and_leave_out_unwritten_rows(case: Any) -> None:
    inputs, expected = case
    dims = {"T": 12, "S": len(inputs["shared"]) // 12}
    whole = sum(tensor.nbytes for tensor in (*inputs.values(), *expected))
    assert target.bytes_moved(dims) == whole
    assert target.bytes_of(inputs) == whole - 2 * 7168 * int((inputs["weights"] == 0).sum())
    assert target.flops(dims) == 12 * 7168 * (16 + dims["S"])
