"""The bf16 MLA target refuses every answer that is not the attention, takes bf16 probabilities, counts known costs."""

import math
from typing import Any

import pytest
import torch

from kernelgen.errors import ConfigError
from kernelgen.targets import mla_decode_bf16 as target

KINDS = ("plain", "skewed", "ragged", "stressed")
TOLERANCE = {"out": (8e-3, 4e-2), "lse": (0.0, 1e-3)}
DIMS = {"B": 4, "S": 331, "h": 4}
Outputs = tuple[torch.Tensor, torch.Tensor]


@pytest.fixture(scope="module", params=KINDS)
def case(request: pytest.FixtureRequest) -> tuple[dict[str, Any], Any]:
    inputs = target.make_inputs(DIMS, request.param, 3, "cpu")
    return inputs, target.reference(**inputs)


def _attend(inputs: dict[str, Any], rounding: torch.dtype = torch.float32, **changes: Any) -> Outputs:
    """Attention in fp32, probabilities rounded as told; `changes` replace inputs."""
    given = inputs | changes
    out, lse = [], []
    for sequence, length in enumerate(given["seqlens"].tolist()):
        pages = given["block_table"][sequence, : math.ceil(length / 64)].long()
        tokens = given["kv_pages"][pages].flatten(0, 1)[:length].float()
        scores = given["sm_scale"] * (given["q"][sequence].float() @ tokens.T)
        top = scores.amax(dim=-1, keepdim=True)
        weight = (scores - top).exp()
        total = weight.sum(dim=-1, keepdim=True)
        out.append((weight.to(rounding).float() @ tokens[:, :512] / total).bfloat16())
        lse.append((top + total.log())[:, 0])
    return torch.stack(out), torch.stack(lse)


@pytest.mark.parametrize("rounding", [torch.float32, torch.bfloat16])
def test_an_attention_in_fp32_or_with_bf16_probabilities_is_accepted(case: Any, rounding: torch.dtype) -> None:
    assert target.compare(*case, _attend(case[0], rounding), TOLERANCE) == []


def test_probabilities_or_queries_in_fp8_are_refused(case: Any) -> None:
    coarse = case[0]["q"].to(torch.float8_e4m3fn).bfloat16()
    assert target.compare(*case, _attend(case[0], q=coarse), TOLERANCE) != []
    assert target.compare(*case, _attend(case[0], torch.float8_e4m3fn), TOLERANCE) != []


def _half_history(inputs: dict[str, Any]) -> Outputs:
    return _attend(inputs, seqlens=(inputs["seqlens"] + 1) // 2)


def _full_pages_only(inputs: dict[str, Any]) -> Outputs:
    return _attend(inputs, seqlens=(inputs["seqlens"] // 64 * 64).clamp(min=1))


def _lengths_ignored(inputs: dict[str, Any]) -> Outputs:
    return _attend(inputs, seqlens=torch.full_like(inputs["seqlens"], 64 * inputs["block_table"].shape[1]))


def _pages_in_order(inputs: dict[str, Any]) -> Outputs:
    table = torch.arange(inputs["block_table"].numel(), dtype=torch.int32).reshape(inputs["block_table"].shape)
    return _attend(inputs, block_table=table)


def _mean_of_the_cache(inputs: dict[str, Any]) -> Outputs:
    return _attend(inputs, q=torch.zeros_like(inputs["q"]))


def _fixed_scale(inputs: dict[str, Any]) -> Outputs:
    return _attend(inputs, sm_scale=192**-0.5)


def _no_rope(inputs: dict[str, Any]) -> Outputs:
    query = inputs["q"].clone()
    query[:, :, 512:] = 0
    return _attend(inputs, q=query)


@pytest.mark.parametrize(
    "wrong",
    [_half_history, _full_pages_only, _lengths_ignored, _pages_in_order, _mean_of_the_cache, _fixed_scale, _no_rope],
)
def test_attention_over_other_tokens_is_refused_for_every_kind(case: Any, wrong: Any) -> None:
    faults = target.compare(*case, wrong(case[0]), TOLERANCE)
    assert faults
    assert all(fault.startswith(("out[", "lse[")) for fault in faults)


def test_stale_slots_are_finite_and_larger_than_tokens() -> None:
    inputs = target.make_inputs({"B": 1, "S": 70, "h": 2}, "plain", 3, "cpu")
    own = inputs["kv_pages"][inputs["block_table"][0].long()].flatten(0, 1).float()
    assert inputs["kv_pages"].isfinite().all()
    assert own[70:].std() > 4 * own[:70].std()


def test_the_kinds_of_the_fp8_target_are_its_kinds() -> None:
    with pytest.raises(ConfigError, match="mla_decode_bf16 has no input kind 'raged'; did you mean 'ragged'"):
        target.make_inputs(DIMS, "raged", 1, "cpu")


@pytest.mark.parametrize(
    ("dims", "microseconds"),
    [
        ({"B": 1, "S": 8192, "h": 16}, 2.2),
        ({"B": 1, "S": 131072, "h": 64}, 35.1),
        ({"B": 16, "S": 8192, "h": 8}, 35.2),
        ({"B": 16, "S": 8192, "h": 64}, 35.6),
        ({"B": 64, "S": 4096, "h": 8}, 70.5),
        ({"B": 64, "S": 4096, "h": 64}, 72.3),
        ({"B": 64, "S": 16384, "h": 64}, 283),
        ({"B": 128, "S": 4096, "h": 64}, 145),
        ({"B": 256, "S": 2048, "h": 64}, 149),
    ],
)
def test_costs_give_the_known_floors(dims: dict[str, int], microseconds: float) -> None:
    # floors at 4.3 TB/s and 790 TFLOP/s as tabulated for the region, to the table's rounding
    floor = max(target.bytes_moved(dims) / 4.3e12, target.flops(dims) / 790e12) * 1e6
    assert floor == pytest.approx(microseconds, rel=0.015, abs=0.06)


def test_bytes_are_those_of_the_tensors_at_full_length() -> None:
    dims = {"B": 2, "S": 128, "h": 3}
    inputs = target.make_inputs(dims, "plain", 1, "cpu")
    tensors = [inputs["q"], inputs["block_table"], inputs["seqlens"], *target.reference(**inputs)]
    assert target.bytes_moved(dims) == sum(tensor.nbytes for tensor in tensors) + 2 * 128 * 1152
