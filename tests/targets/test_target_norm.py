"""The norm target accepts fp32 arithmetic, refuses coarser or partial work, and judges codes on a GPU alone."""

from typing import Any

import pytest
import torch

from kernelgen.errors import ConfigError
from kernelgen.targets import add_rmsnorm_fp8_g128 as target
from kernelgen.targets.fp8_groups import group_faults, quantise_groups

KINDS = ("plain", "skewed", "ragged", "stressed")
TOLERANCE = {
    "residual_out": (2.0**-7, 0.0),
    "y": (4e-2, 8e-2),
    "y_codes": (1e-3, 1.0),
    "y_interpreted": (0.3, 0.3),
    "scales": (1e-5, 0.0),
}
E4M3 = torch.float8_e4m3fn


@pytest.fixture(scope="module", params=KINDS)
def case(request: pytest.FixtureRequest) -> tuple[dict[str, Any], Any]:
    inputs = target.make_inputs({"T": 9}, request.param, 3, "cpu")
    return inputs, target.reference(**inputs)


def _norm(inputs: dict[str, Any], cast: Any = None, **changes: Any) -> tuple[torch.Tensor, ...]:
    """The region in fp32; `changes` replace inputs, `cast` the rounding to e4m3."""
    given = inputs | changes
    total = given["x"].float() + given["residual"].float()
    normal = total * torch.rsqrt(total.square().mean(dim=-1, keepdim=True) + given["eps"]) * given["weight"].float()
    groups = normal.unflatten(-1, (-1, 128))
    scales = groups.abs().amax(dim=-1).clamp(min=1e-10) / 448.0
    codes = (cast or (lambda quotient: quotient.to(E4M3)))((groups / scales[..., None]).clamp(-448, 448))
    return total.bfloat16(), codes.flatten(-2), scales


def _faults(case: Any, got: Any, *, interpreted: bool) -> list[str]:
    """As compare on a GPU, or under the interpreter."""
    return group_faults(case[1][1:], got[1:], TOLERANCE, interpreted=interpreted)


def _without_carry(quotient: torch.Tensor) -> torch.Tensor:
    """As the interpreter casts: half of what it should be where rounding carries into the exponent."""
    rounded = quotient.to(E4M3).float()
    carried = (torch.frexp(rounded).exponent > torch.frexp(quotient).exponent) & (quotient.abs() >= 2.0**-6)
    return torch.where(carried, rounded / 2, rounded).to(E4M3)


def test_fp32_arithmetic_is_accepted_on_both(case: Any) -> None:
    got = _norm(case[0])
    assert target.compare(*case, got, TOLERANCE) == []
    assert _faults(case, got, interpreted=False) == []


def test_the_interpreters_casts_are_inconclusive_there_and_wrong_on_a_gpu(case: Any) -> None:
    got = _norm(case[0], _without_carry)
    assert target.compare(*case, got, TOLERANCE) == []
    assert _faults(case, got, interpreted=False)[0].startswith("y[")


@pytest.mark.parametrize("coarse", [lambda q: q.to(torch.float8_e5m2).to(E4M3), lambda q: (q * 0.95).to(E4M3)])
def test_coarser_codes_are_refused_on_a_gpu(case: Any, coarse: Any) -> None:
    assert _faults(case, _norm(case[0], coarse), interpreted=False)[0].startswith("y[")


def test_codes_that_are_far_off_are_counted() -> None:
    inputs = target.make_inputs({"T": 4}, "plain", 3, "cpu")
    want = target.reference(**inputs)[1:]
    codes = want[0].view(torch.uint8).clone()
    # small values move by steps that no norm feels
    small = (codes & 0x7F) < 56
    codes[small] ^= 2
    got = (codes.view(E4M3), want[1])
    faults = group_faults(want, got, TOLERANCE, interpreted=False)
    assert len(faults) == 1
    assert "codes lie more than 1 away, allowed 0.001 of them" in faults[0]
    assert group_faults(want, got, TOLERANCE, interpreted=True) == []


def _no_weight(inputs: dict[str, Any]) -> Any:
    return _norm(inputs, weight=torch.ones_like(inputs["weight"]))


def _residual_ignored(inputs: dict[str, Any]) -> Any:
    return _norm(inputs, residual=torch.zeros_like(inputs["residual"]))


def _first_row_only(inputs: dict[str, Any]) -> Any:
    residual, codes, scales = _norm(inputs)
    codes.view(torch.uint8)[1:] = 0
    return residual, codes, scales


def _scale_of_the_row(inputs: dict[str, Any]) -> Any:
    residual, codes, scales = _norm(inputs)
    row = scales.amax(dim=-1, keepdim=True).expand_as(scales).contiguous()
    values = codes.float().unflatten(-1, (-1, 128)) * (scales / row)[..., None]
    return residual, values.to(E4M3).flatten(-2), row


@pytest.mark.parametrize("wrong", [_no_weight, _residual_ignored, _first_row_only, _scale_of_the_row])
def test_another_computation_is_refused_for_every_kind(case: Any, wrong: Any) -> None:
    assert target.compare(*case, wrong(case[0]), TOLERANCE) != []


def test_a_norm_of_the_rounded_sum_is_refused_by_its_scales() -> None:
    inputs = target.make_inputs({"T": 9}, "plain", 3, "cpu")
    total = (inputs["x"].float() + inputs["residual"].float()).bfloat16()
    got = _norm(inputs, x=total, residual=torch.zeros_like(total))
    assert target.compare(inputs, target.reference(**inputs), got, TOLERANCE)[0].startswith("scales[")


def test_eps_counts_and_groups_of_zeros_have_the_declared_scale() -> None:
    inputs = target.make_inputs({"T": 5}, "stressed", 3, "cpu")
    assert target.compare(inputs, target.reference(**inputs), _norm(inputs, eps=0.0), TOLERANCE) != []
    ragged = target.make_inputs({"T": 5}, "ragged", 3, "cpu")
    _, codes, scales = target.reference(**ragged)
    assert scales[-1].tolist() == pytest.approx([1e-10 / 448] * 56)
    assert not codes[-1].float().any()


def test_quantising_is_within_half_a_step_and_saturates() -> None:
    values = torch.randn(20, 256, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    codes, scales = quantise_groups(values)
    back = codes.double().unflatten(-1, (-1, 128)) * scales.double()[..., None]
    largest = values.unflatten(-1, (-1, 128)).abs().amax(dim=-1, keepdim=True)
    error = (back - values.unflatten(-1, (-1, 128))).abs()
    assert (error <= values.unflatten(-1, (-1, 128)).abs() / 16 * (1 + 1e-6) + largest * 2.0**-10 / 448).all()
    assert codes.float().abs().amax() == 448


def test_a_missing_tolerance_is_named() -> None:
    inputs = target.make_inputs({"T": 2}, "plain", 3, "cpu")
    expected = target.reference(**inputs)
    for name in TOLERANCE:
        table = {other: bound for other, bound in TOLERANCE.items() if other != name}
        with pytest.raises(ConfigError, match=f"no entry '{name}'"):
            target.compare(inputs, expected, expected, table)
    with pytest.raises(ConfigError, match="did you mean 'plain'"):
        target.make_inputs({"T": 2}, "plane", 1, "cpu")


@pytest.mark.parametrize(("tokens", "microseconds"), [(1024, 12.0), (8192, 96), (65536, 768)])
def test_costs_give_the_known_floors(tokens: int, microseconds: float) -> None:
    # at 4.3 TB/s, as tabulated for the region
    assert target.bytes_moved({"T": tokens}) / 4.3e12 * 1e6 == pytest.approx(microseconds, rel=0.005)


def test_bytes_are_those_of_the_tensors() -> None:
    inputs = target.make_inputs({"T": 3}, "plain", 1, "cpu")
    tensors = [inputs["x"], inputs["residual"], inputs["weight"], *target.reference(**inputs)]
    assert target.bytes_moved({"T": 3}) == sum(tensor.nbytes for tensor in tensors)
