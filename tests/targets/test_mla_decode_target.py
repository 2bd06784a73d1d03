"""The MLA target refuses every answer that is not the attention, accepts honest bf16, and counts the known costs."""

import math
from typing import Any

import pytest
import torch

from kernelgen.errors import ConfigError
from kernelgen.targets import mla_decode_fp8 as target

KINDS = tuple(target.YARN_FACTORS)
TOLERANCE = {"out": (3e-2, 1e-1), "lse": (1e-3, 3e-2)}
DIMS = {"B": 4, "S": 331, "h": 4}
Outputs = tuple[torch.Tensor, torch.Tensor]


@pytest.fixture(scope="module", params=KINDS)
def case(request: pytest.FixtureRequest) -> tuple[dict[str, Any], Any]:
    inputs = target.make_inputs(DIMS, request.param, 3, "cpu")
    return inputs, target.reference(**inputs)


def _attend(inputs: dict[str, Any], rounding: torch.dtype = torch.float32, **changes: Any) -> Outputs:
    """Attention in fp32, keys and probabilities rounded as told; `changes` replace inputs."""
    given = inputs | changes
    out, lse = [], []
    for sequence, length in enumerate(given["seqlens"].tolist()):
        pages = given["block_table"][sequence, : math.ceil(length / 64)].long()
        latent, rope = target.dequantise(given["kv_pages"][pages].reshape(-1, 656)[:length])
        latent = latent.to(rounding).float()
        query = given["q"][sequence].float()
        scores = given["sm_scale"] * (query[:, :512] @ latent.T + query[:, 512:] @ rope.float().T)
        top = scores.amax(dim=-1, keepdim=True)
        weight = (scores - top).exp()
        total = weight.sum(dim=-1, keepdim=True)
        out.append((weight.to(rounding).float() @ latent / total).bfloat16())
        lse.append((top + total.log())[:, 0])
    return torch.stack(out), torch.stack(lse)


def _faults(case: tuple[dict[str, Any], Any], got: Any) -> list[str]:
    return target.compare(case[0], case[1], got, TOLERANCE)


def test_reference_is_accepted_and_deterministic(case: Any) -> None:
    assert _faults(case, case[1]) == []
    assert all(torch.equal(one, other) for one, other in zip(case[1], target.reference(**case[0]), strict=True))


@pytest.mark.parametrize("rounding", [torch.float32, torch.bfloat16])
def test_honest_arithmetic_is_accepted(case: Any, rounding: torch.dtype) -> None:
    assert _faults(case, _attend(case[0], rounding)) == []


def test_products_in_fp8_are_refused(case: Any) -> None:
    coarse = case[0]["q"].to(torch.float8_e4m3fn).bfloat16()
    assert _faults(case, _attend(case[0], q=coarse)) != []


def _zeros(inputs: dict[str, Any], want: Outputs) -> Outputs:
    return torch.zeros_like(want[0]), torch.zeros_like(want[1])


def _constant(inputs: dict[str, Any], want: Outputs) -> Outputs:
    return torch.full_like(want[0], 0.1), want[1]


def _mean_of_the_cache(inputs: dict[str, Any], want: Outputs) -> Outputs:
    return _attend(inputs, q=torch.zeros_like(inputs["q"]))


def _first_sequence_only(inputs: dict[str, Any], want: Outputs) -> Outputs:
    out = want[0].clone()
    out[1:] = 0
    return out, want[1]


def _half_history(inputs: dict[str, Any], want: Outputs) -> Outputs:
    return _attend(inputs, seqlens=(inputs["seqlens"] + 1) // 2)


def _full_pages_only(inputs: dict[str, Any], want: Outputs) -> Outputs:
    return _attend(inputs, seqlens=(inputs["seqlens"] // 64 * 64).clamp(min=1))


def _lengths_ignored(inputs: dict[str, Any], want: Outputs) -> Outputs:
    return _attend(inputs, seqlens=torch.full_like(inputs["seqlens"], 64 * inputs["block_table"].shape[1]))


def _pages_in_order(inputs: dict[str, Any], want: Outputs) -> Outputs:
    table = torch.arange(inputs["block_table"].numel(), dtype=torch.int32).reshape(inputs["block_table"].shape)
    return _attend(inputs, block_table=table)


def _fixed_scale(inputs: dict[str, Any], want: Outputs) -> Outputs:
    return _attend(inputs, sm_scale=192**-0.5)


def _no_rope(inputs: dict[str, Any], want: Outputs) -> Outputs:
    query = inputs["q"].clone()
    query[:, :, 512:] = 0
    return _attend(inputs, q=query)


def _binary_logarithm(inputs: dict[str, Any], want: Outputs) -> Outputs:
    return want[0], want[1] / math.log(2)


def _heads_swapped(inputs: dict[str, Any], want: Outputs) -> Outputs:
    return want[0].roll(1, dims=1).contiguous(), want[1]


def _scales_ignored(inputs: dict[str, Any], want: Outputs) -> Outputs:
    pages = inputs["kv_pages"].clone()
    pages.view(torch.float32)[:, :, 128:132] = 3.0 / 448
    return _attend(inputs, kv_pages=pages)


WRONG = [
    _zeros, _constant, _mean_of_the_cache, _first_sequence_only, _half_history, _full_pages_only, _lengths_ignored,
    _pages_in_order, _fixed_scale, _no_rope, _binary_logarithm, _heads_swapped, _scales_ignored,
]  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_answers_are_refused_for_every_kind(case: Any, wrong: Any) -> None:
    faults = _faults(case, wrong(*case))
    assert faults
    assert all(fault.startswith(("out[", "lse[")) for fault in faults)


@pytest.mark.parametrize("dropped", ["first", "last"])
def test_one_dropped_token_of_a_stressed_sequence_is_found(dropped: str) -> None:
    inputs = target.make_inputs({"B": 1, "S": 2048, "h": 4}, "stressed", 9, "cpu")
    expected = target.reference(**inputs)
    if dropped == "last":
        got = _attend(inputs, seqlens=inputs["seqlens"] - 1)
    else:
        pages = inputs["kv_pages"].clone()
        pages[inputs["block_table"][0, 0], 0] = 0
        got = _attend(inputs, kv_pages=pages)
    assert target.compare(inputs, expected, got, TOLERANCE) != []


def test_lengths_of_the_kinds() -> None:
    lengths = {kind: target.make_inputs(DIMS, kind, 3, "cpu")["seqlens"].tolist() for kind in KINDS}
    assert lengths["plain"] == [331] * 4
    assert sorted(lengths["skewed"]) == [331 // 4, 331 // 3, 331 // 2, 331]
    assert 1 in lengths["ragged"]
    assert all(1 <= length <= 331 for of_kind in lengths.values() for length in of_kind)
    assert target.make_inputs({"B": 2, "S": 1, "h": 1}, "stressed", 3, "cpu")["seqlens"].tolist() == [1, 1]


def test_pages_are_shuffled_unshared_and_never_a_sequences_own_past_its_end(case: Any) -> None:
    table, lengths = case[0]["block_table"], case[0]["seqlens"].tolist()
    used = [table[b, : math.ceil(length / 64)].tolist() for b, length in enumerate(lengths)]
    every = [page for pages in used for page in pages]
    assert len(every) == len(set(every))
    assert every != sorted(every)
    for sequence, pages in enumerate(used):
        assert not set(pages) & set(table[sequence, len(pages) :].tolist())
    assert 0 <= int(table.min()) <= int(table.max()) < len(case[0]["kv_pages"])


def test_every_slot_of_the_pool_is_finite(case: Any) -> None:
    latent, rope = target.dequantise(case[0]["kv_pages"].reshape(-1, 656))
    assert latent.isfinite().all()
    assert rope.isfinite().all()


def test_quantising_loses_no_more_than_e4m3_does() -> None:
    generator = torch.Generator().manual_seed(1)
    latent = torch.randn(50, 512, generator=generator)
    latent[3] = 0.0
    rope = torch.randn(50, 64, generator=generator).bfloat16()
    slots = target.quantise(latent, rope)
    assert slots.shape == (50, 656)
    back, back_rope = target.dequantise(slots)
    largest = latent.reshape(50, 4, 128).abs().amax(dim=-1).repeat_interleave(128, dim=1)
    # half a step: 2^-4 of the value, or 2^-10 * amax / 448 below the smallest normal
    assert ((back - latent).abs() <= latent.abs() / 16 + largest * 2.0**-10 / 448 + 1e-12).all()
    assert torch.equal(back_rope, rope.double())


def test_a_single_token_is_copied() -> None:
    inputs = target.make_inputs({"B": 1, "S": 1, "h": 2}, "plain", 4, "cpu")
    latent, rope = target.dequantise(inputs["kv_pages"][inputs["block_table"][0].long()].reshape(-1, 656)[:1])
    out, lse = target.reference(**inputs)
    assert torch.equal(out, latent.bfloat16().expand(1, 2, 512))
    score = inputs["q"][0].double() @ torch.cat([latent, rope], dim=1)[0] * inputs["sm_scale"]
    torch.testing.assert_close(lse[0].double(), score, rtol=1e-6, atol=1e-6)


def test_softmax_scales_of_the_model_family() -> None:
    assert target.softmax_scale(64) == pytest.approx(0.1447, abs=1e-4)
    assert target.softmax_scale(32) == pytest.approx(0.1309, abs=1e-4)


def test_unknown_kind_is_refused() -> None:
    with pytest.raises(ConfigError, match="did you mean 'ragged'"):
        target.make_inputs(DIMS, "raged", 1, "cpu")


@pytest.mark.parametrize(
    ("dims", "microseconds"),
    [
        ({"B": 1, "S": 8192, "h": 16}, 1.3),
        ({"B": 1, "S": 131072, "h": 64}, 23.1),
        ({"B": 16, "S": 8192, "h": 16}, 20.1),
        ({"B": 64, "S": 4096, "h": 16}, 40.3),
        ({"B": 64, "S": 4096, "h": 64}, 46.2),
        ({"B": 64, "S": 16384, "h": 64}, 185),
        ({"B": 128, "S": 4096, "h": 16}, 80.5),
        ({"B": 256, "S": 2048, "h": 64}, 92.4),
    ],
)
def test_costs_give_the_known_floors(dims: dict[str, int], microseconds: float) -> None:
    # floors at 4.3 TB/s and 790 TFLOP/s as tabulated for the region, to the table's rounding
    floor = max(target.bytes_moved(dims) / 4.3e12, target.flops(dims) / 790e12) * 1e6
    assert floor == pytest.approx(microseconds, rel=0.02, abs=0.06)


def test_bytes_are_those_of_the_tensors_at_full_length() -> None:
    dims = {"B": 2, "S": 128, "h": 3}
    inputs = target.make_inputs(dims, "plain", 1, "cpu")
    tensors = [inputs["q"], inputs["block_table"], inputs["seqlens"], *target.reference(**inputs)]
    assert target.bytes_moved(dims) == sum(tensor.nbytes for tensor in tensors) + 2 * 128 * 656
