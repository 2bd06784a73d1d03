"""The SiLU target accepts fp32 arithmetic, refuses coarser or other work, and counts the known costs."""

from typing import Any

import pytest
import torch

from kernelgen.errors import ConfigError
from kernelgen.targets import silu_mul_fp8_g128 as target
from kernelgen.targets.fp8_groups import group_faults

KINDS = ("plain", "skewed", "ragged", "stressed")
TOLERANCE = {"y": (6.3e-2, 8e-2), "y_codes": (1e-3, 1.0), "y_interpreted": (0.3, 0.3), "scales": (1e-5, 0.0)}
E4M3 = torch.float8_e4m3fn


@pytest.fixture(scope="module", params=KINDS)
def case(request: pytest.FixtureRequest) -> tuple[dict[str, Any], Any]:
    inputs = target.make_inputs({"R": 9, "n": 256}, request.param, 3, "cpu")
    return inputs, target.reference(**inputs)


def _quantised(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    groups = values.unflatten(-1, (-1, 128))
    scales = groups.abs().amax(dim=-1).clamp(min=1e-10) / 448.0
    return (groups / scales[..., None]).clamp(-448, 448).to(E4M3).flatten(-2), scales


def _halves(inputs: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
    gate, up = inputs["gate_up"].float().chunk(2, dim=-1)
    return gate, up


def test_fp32_arithmetic_is_accepted_on_both(case: Any) -> None:
    gate, up = _halves(case[0])
    for sigmoid in (torch.sigmoid(gate), 1.0 / (1.0 + torch.exp2(-1.4426950408889634 * gate))):
        got = _quantised(gate * sigmoid * up)
        assert target.compare(*case, got, TOLERANCE) == []
        assert group_faults(case[1], got, TOLERANCE, interpreted=False) == []


def _silu_in_bf16(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.silu(gate).bfloat16().float() * up


def _halves_swapped(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.silu(up) * gate


def _no_sigmoid(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    return gate.relu() * up


def _gelu(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.gelu(gate) * up


@pytest.mark.parametrize("wrong", [_silu_in_bf16, _halves_swapped, _no_sigmoid, _gelu])
def test_another_activation_is_refused_for_every_kind(case: Any, wrong: Any) -> None:
    assert target.compare(*case, _quantised(wrong(*_halves(case[0]))), TOLERANCE) != []


def test_an_overflow_on_the_way_is_refused() -> None:
    inputs = target.make_inputs({"R": 9, "n": 256}, "stressed", 3, "cpu")
    gate, up = _halves(inputs)
    # exp(g) / (1 + exp(g)) is inf / inf for large gates
    got = _quantised(gate * gate.exp() / (1 + gate.exp()) * up)
    assert "not finite" in target.compare(inputs, target.reference(**inputs), got, TOLERANCE)[0]


def test_ragged_batches_have_padding_rows_and_stressed_ones_saturated_and_negative_gates() -> None:
    dims = {"R": 40, "n": 256}
    ragged = target.make_inputs(dims, "ragged", 3, "cpu")["gate_up"]
    empty = ~ragged.any(dim=-1)
    assert 0 < int(empty.sum()) < 40
    gate, _ = _halves(target.make_inputs(dims, "stressed", 3, "cpu"))
    assert gate.amax() > 9e3
    assert gate.amin() < -9e3
    assert (gate.unflatten(-1, (-1, 128)) <= 0).all(dim=-1).any()


def test_unknown_kind_is_refused() -> None:
    with pytest.raises(ConfigError, match="did you mean 'ragged'"):
        target.make_inputs({"R": 1, "n": 128}, "raged", 1, "cpu")


@pytest.mark.parametrize(
    ("rows", "columns", "microseconds"), [(8192, 256, 2.45), (65536, 256, 19.6), (65536, 2048, 157)]
)
def test_costs_give_the_known_floors(rows: int, columns: int, microseconds: float) -> None:
    # at 4.3 TB/s, as tabulated for the region
    moved = target.bytes_moved({"R": rows, "n": columns})
    assert moved / 4.3e12 * 1e6 == pytest.approx(microseconds, rel=0.005)


def test_bytes_are_those_of_the_tensors() -> None:
    dims = {"R": 3, "n": 384}
    inputs = target.make_inputs(dims, "plain", 1, "cpu")
    tensors = [*inputs.values(), *target.reference(**inputs)]
    assert target.bytes_moved(dims) == sum(tensor.nbytes for tensor in tensors)
