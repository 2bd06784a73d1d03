"""The two expert targets refuse cheaper formats and half-done layers, accept honest bf16, and count the known costs."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from kernelgen.errors import ConfigError
from kernelgen.targets import moe_fp8_block, moe_w4a16_g32
from kernelgen.targets.code import FUNCTIONS, load_code
from kernelgen.targets.experts import experts_hit, tokens_hit
from kernelgen.targets.fp8_groups import quantise_groups

TARGETS = {"w4a16": moe_w4a16_g32, "fp8": moe_fp8_block}
TOLERANCES = {"w4a16": {"out": (1.4e-2, 1.5e-1)}, "fp8": {"out": (4e-2, 3e-1)}}
DIMS = {"T": 10, "E": 8, "n": 128, "EP": 2, "H": 256}
KINDS = moe_w4a16_g32.KINDS
Rounding = Callable[[torch.Tensor], torch.Tensor]
Outputs = tuple[torch.Tensor]
TP8 = {"E": 384, "n": 256, "EP": 1, "H": 7168}
EP8 = {"E": 48, "n": 2048, "EP": 8, "H": 7168}


class Case:
    """One target's inputs and answer, and the layer computed otherwise."""

    def __init__(self, name: str, kind: str) -> None:
        self.target: ModuleType = TARGETS[name]
        self.name = name
        self.inputs = self.target.make_inputs(DIMS, kind, 3, "cpu")
        self.expected = self.target.reference(**self.inputs)

    def faults(self, got: Any) -> list[str]:
        return self.target.compare(self.inputs, self.expected, got, TOLERANCES[self.name])

    def rows(self) -> torch.Tensor:
        """The dequantised token rows, float64."""
        x = self.inputs["x"].double()
        if self.name == "w4a16":
            return x
        return (x.unflatten(-1, (-1, 128)) * self.inputs["x_scales"].double()[:, :, None]).flatten(-2)

    def matrix(self, name: str, expert: int) -> torch.Tensor:
        return self.target.dequantise(self.inputs[name][expert], self.inputs[f"{name}_scales"][expert])

    def layer(
        self,
        *,
        rows: torch.Tensor | None = None,
        ids: torch.Tensor | None = None,
        weights: torch.Tensor | None = None,
        gate_up: Rounding = lambda matrix: matrix,
        hidden: Rounding = lambda values: values.bfloat16().double(),
        up_first: bool = False,
    ) -> Outputs:
        """Pair by pair; arguments replace inputs, weights' rows, the rounding of silu(g) * u, the order of g and u."""
        rows = self.rows() if rows is None else rows
        ids = self.inputs["ids"] if ids is None else ids
        weights = self.inputs["weights"] if weights is None else weights
        out = torch.zeros(rows.shape, dtype=torch.float64)
        for token, place in (ids >= 0).nonzero().tolist():
            expert = int(ids[token, place])
            gate, up = (gate_up(self.matrix("w13", expert)) @ rows[token]).chunk(2)
            gate, up = (up, gate) if up_first else (gate, up)
            inner = hidden(gate.sigmoid() * gate * up)
            y = (self.matrix("w2", expert) @ inner).bfloat16().double()
            out[token] += weights[token, place].double() * y
        return (out.bfloat16(),)


@pytest.fixture(scope="module", params=[(name, kind) for name in TARGETS for kind in KINDS], ids="-".join)
def case(request: pytest.FixtureRequest) -> Case:
    return Case(*request.param)


def _int8(values: torch.Tensor) -> torch.Tensor:
    step = values.abs().amax(dim=-1, keepdim=True) / 127
    return (values / step).round() * step


def _e4m3(values: torch.Tensor) -> torch.Tensor:
    codes, scales = quantise_groups(values.reshape(-1, values.shape[-1]))
    return (codes.double().unflatten(-1, (-1, 128)) * scales.double()[:, :, None]).reshape(values.shape)


def test_reference_is_accepted_and_deterministic(case: Case) -> None:
    assert case.faults(case.expected) == []
    assert torch.equal(case.expected[0], case.target.reference(**case.inputs)[0])
    assert case.expected[0].isfinite().all()


def test_honest_bf16_pair_by_pair_is_accepted(case: Case) -> None:
    assert case.faults(case.layer()) == []


def test_fp8_between_the_projections_is_accepted_of_the_fp8_layer_alone(case: Case) -> None:
    assert (case.faults(case.layer(hidden=_e4m3)) == []) is (case.name == "fp8")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("coarse", [_int8, _e4m3])
def test_cheaper_activations_of_the_int4_layer_are_refused(kind: str, coarse: Rounding) -> None:
    case = Case("w4a16", kind)
    assert case.faults(case.layer(rows=coarse(case.rows()), hidden=coarse)) != []


@pytest.mark.parametrize("kind", KINDS)
def test_e5m2_and_int4_in_the_fp8_layer_are_refused(kind: str) -> None:
    case = Case("fp8", kind)
    assert case.faults(case.layer(hidden=lambda values: values.float().to(torch.float8_e5m2).double())) != []
    assert case.faults(case.layer(gate_up=lambda matrix: (matrix / (s := matrix.abs().max() / 7)).round() * s)) != []


def _zeros(case: Case) -> Outputs:
    return (torch.zeros_like(case.expected[0]),)


def _input_rows(case: Case) -> Outputs:
    return (case.rows().bfloat16(),)


def _mean(case: Case) -> Outputs:
    return (case.expected[0].double().mean(dim=0).bfloat16().expand_as(case.expected[0]).contiguous(),)


def _first_tokens_only(case: Case) -> Outputs:
    out = case.expected[0].clone()
    out[len(out) // 2 :] = 0
    return (out,)


def _one_pair_dropped(case: Case) -> Outputs:
    ids = case.inputs["ids"].clone()
    ids[tuple((ids >= 0).nonzero()[-1].tolist())] = -1
    return case.layer(ids=ids)


def _equal_weights(case: Case) -> Outputs:
    return case.layer(weights=torch.full_like(case.inputs["weights"], 2.827 / 8))


def _unweighted(case: Case) -> Outputs:
    return case.layer(weights=torch.ones_like(case.inputs["weights"]))


def _gate_and_up_swapped(case: Case) -> Outputs:
    return case.layer(up_first=True)


def _without_silu(case: Case) -> Outputs:
    """Products of gate and up alone: what is left when silu is taken for the identity."""
    name = "w13"
    out = torch.zeros(case.rows().shape, dtype=torch.float64)
    for token, place in (case.inputs["ids"] >= 0).nonzero().tolist():
        expert = int(case.inputs["ids"][token, place])
        gate, up = (case.matrix(name, expert) @ case.rows()[token]).chunk(2)
        out[token] += case.inputs["weights"][token, place].double() * (case.matrix("w2", expert) @ (gate * up))
    return (out.bfloat16(),)


def _next_expert(case: Case) -> Outputs:
    ids = case.inputs["ids"]
    return case.layer(ids=torch.where(ids >= 0, (ids + 1) % DIMS["E"], ids))


def _lost_pairs_computed(case: Case) -> Outputs:
    return case.layer(ids=case.inputs["ids"].clamp(min=0))


def _last_input_ignored(case: Case) -> Outputs:
    """A dropped tail of one group of 32 in K."""
    rows = case.rows().clone()
    rows[:, -32:] = 0
    return case.layer(rows=rows)


def _last_element(case: Case) -> Outputs:
    out = case.expected[0].clone()
    token = int((out != 0).any(dim=-1).nonzero()[-1])
    out[token, -1] += out[token].double().square().mean().sqrt().bfloat16()
    return (out,)


WRONG = [
    _zeros, _input_rows, _mean, _first_tokens_only, _one_pair_dropped, _equal_weights, _unweighted,
    _gate_and_up_swapped, _without_silu, _next_expert, _lost_pairs_computed, _last_input_ignored, _last_element,
]  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_answers_are_refused_for_every_kind(case: Case, wrong: Callable[[Case], Outputs]) -> None:
    faults = case.faults(wrong(case))
    assert faults
    assert all(fault.startswith("out[") for fault in faults)


def test_int4_packs_the_first_input_in_the_lowest_bits() -> None:
    # inputs 0 to 7 are -8, -7, 0, 1, 7, -1, 2, -3: nibbles 0, 1, 8, 9, F, 7, A, 5 from the lowest bits up
    words = torch.tensor([[0x5A7F9810, -1, 0, 0]], dtype=torch.int64).to(torch.int32)
    scales = torch.tensor([[0.5]], dtype=torch.bfloat16)
    values = (moe_w4a16_g32.dequantise(words, scales)[0] / 0.5).tolist()
    assert values == [-8, -7, 0, 1, 7, -1, 2, -3] + [7] * 8 + [-8] * 16


def test_every_int4_occurs_and_scales_belong_to_groups_of_32() -> None:
    inputs = moe_w4a16_g32.make_inputs(DIMS, "plain", 3, "cpu")
    words, scales = inputs["w2"][0], inputs["w2_scales"][0]
    ones = moe_w4a16_g32.dequantise(words, torch.ones_like(scales))
    assert ones.unique().tolist() == list(range(-8, 8))
    spread = scales.double().repeat_interleave(32, dim=1)
    assert torch.equal(moe_w4a16_g32.dequantise(words, scales), ones * spread)


def test_fp8_codes_are_finite_and_scales_belong_to_blocks_of_128() -> None:
    inputs = moe_fp8_block.make_inputs(DIMS, "stressed", 3, "cpu")
    codes, scales = inputs["w13"][0], inputs["w13_scales"][0]
    magnitudes = codes.double().abs().unique()
    assert (len(magnitudes), magnitudes.min().item(), magnitudes.max().item()) == (32, 0.5, 7.5)
    spread = scales.double().repeat_interleave(128, dim=0).repeat_interleave(128, dim=1)
    assert torch.equal(moe_fp8_block.dequantise(codes, scales), codes.double() * spread)


@pytest.mark.parametrize("name", TARGETS)
def test_answers_of_plain_inputs_are_of_about_unit_size(name: str) -> None:
    sizes = Case(name, "plain").expected[0].double().square().mean(dim=-1).sqrt()
    assert 0.1 < sizes[sizes > 0].median().item() < 10


def test_unknown_kind_is_refused(case: Case) -> None:
    with pytest.raises(ConfigError, match="did you mean 'ragged'"):
        case.target.make_inputs(DIMS, "raged", 1, "cpu")


def _unfused_bytes(name: str, dims: dict[str, int]) -> float:
    """As the table has them: without output, ids and weights, but with all that passes between unfused kernels."""
    tokens, inner, ranks, width = dims["T"], dims["n"], dims["EP"], dims["H"]
    row, between = (2 * width, 64) if name == "w4a16" else (width * (1 + 4 / 128), 48)
    rows = tokens_hit(tokens, dims["E"], ranks) * row
    weights = TARGETS[name].bytes_moved(dims) - rows - tokens * (2 * width + 64)
    return weights + tokens * row + tokens * (16 * width + between * inner) / ranks


@pytest.mark.parametrize(
    ("tokens", "int4_tp8", "fp8_tp8", "int4_ep8", "fp8_ep8"),
    [
        (1, 5.8, 10.3, 5.8, 10.3),
        (8, 43.1, 76.5, 42.9, 76.3),
        (16, 79.6, 141.1, 79.3, 140.8),
        (32, 136.6, 242.0, 135.9, 241.3),
        (64, 206.8, 365.9, 205.3, 364.4),
        (128, 262.2, 462.5, 259.2, 459.5),
        (256, 283.9, 497.5, 278.0, 491.5),
        (1024, 311.2, 523.7, 287.3, 499.8),
        (4096, 456.7, 619.7, 456.7, 524.1),
        (8192, 913.4, 747.7, 913.4, 556.5),
    ],
)
def test_costs_give_the_known_floors(
    tokens: int, int4_tp8: float, fp8_tp8: float, int4_ep8: float, fp8_ep8: float
) -> None:
    # floors at 4.3 TB/s, 790 TFLOP/s in bf16 and 1.5 PFLOP/s in fp8 as tabulated for the region
    table = [("w4a16", TP8, int4_tp8), ("fp8", TP8, fp8_tp8), ("w4a16", EP8, int4_ep8), ("fp8", EP8, fp8_ep8)]
    for name, layout, microseconds in table:
        dims = {"T": tokens} | layout
        peak = 790e12 if name == "w4a16" else 1.5e15
        floor = max(_unfused_bytes(name, dims) / 4.3e12, TARGETS[name].flops(dims) / peak) * 1e6
        assert floor == pytest.approx(microseconds, rel=1e-3, abs=0.06), (name, layout)


@pytest.mark.parametrize(
    ("tokens", "hit", "microseconds"),
    [(1, 8, 5.8), (16, 111, 80.8), (64, 277, 201.8), (256, 381, 278.7), (1024, 384, 286.0)],
)
def test_bytes_of_a_run_give_the_floors_that_peers_were_measured_against(
    tokens: int, hit: int, microseconds: float
) -> None:
    # whole layers at TP8 on an H200, floors at 4.26 TB/s, with the experts that those runs hit
    ids = (torch.arange(8 * tokens, dtype=torch.int32) % hit).reshape(tokens, 8)
    inputs = {"x": torch.empty(tokens, 7168), "w2": torch.empty(384, 7168, 32, device="meta"), "ids": ids}
    assert moe_w4a16_g32.bytes_of(inputs) / 4.26e12 * 1e6 == pytest.approx(microseconds, rel=2e-3, abs=0.06)


def test_distinct_experts_of_uniform_routing_are_the_known_ones() -> None:
    known = {1: 8.0, 4: 31.0, 8: 59.5, 16: 109.8, 32: 188.2, 64: 284.2, 128: 358, 256: 382, 512: 384}
    for tokens, distinct in known.items():
        assert experts_hit(tokens, 384, 1) == pytest.approx(distinct, abs=0.6 if distinct > 300 else 0.06)
        assert experts_hit(tokens, 48, 8) == pytest.approx(experts_hit(tokens, 384, 1) / 8)


@pytest.mark.parametrize("name", TARGETS)
def test_expected_bytes_are_the_mean_of_counted_ones(name: str) -> None:
    target = TARGETS[name]
    dims = {"T": 3, "E": 12, "n": 128, "EP": 4, "H": 128}
    inputs = target.make_inputs(dims, "plain", 1, "cpu")
    draws = [target.make_ids(3, 12, 4, "plain", torch.Generator().manual_seed(seed)) for seed in range(400)]
    counted = sum(target.bytes_of(inputs | {"ids": ids}) for ids in draws) / len(draws)
    assert counted == pytest.approx(target.bytes_moved(dims), rel=0.03)


def test_counting_bytes_of_inputs_is_optional_and_checked(tmp_path: Path) -> None:
    assert load_code("kernelgen.targets.moe_w4a16_g32").bytes_of is moe_w4a16_g32.bytes_of
    assert load_code("kernelgen.targets.moe_gate_k26").bytes_of is None
    source = "".join(f"def {name}({', '.join(given)}): ...\n" for name, given in FUNCTIONS.items())
    (tmp_path / "mine.py").write_text(source + "def bytes_of(): ...\n")
    with pytest.raises(ConfigError, match=r"bytes_of must be callable as bytes_of\(inputs\)"):
        load_code("mine.py", tmp_path)


@pytest.mark.parametrize("name", TARGETS)
def test_bytes_are_those_of_the_tensors_where_every_expert_is_hit(name: str) -> None:
    target = TARGETS[name]
    inputs = target.make_inputs({"T": 4, "E": 8, "n": 128, "EP": 1, "H": 128}, "plain", 1, "cpu")
    whole = sum(tensor.nbytes for tensor in (*inputs.values(), *target.reference(**inputs)))
    assert target.bytes_of(inputs) == whole
