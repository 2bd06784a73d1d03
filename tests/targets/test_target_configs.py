"""The target and hardware configs are valid, agree with their Python, and give a source for every figure."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from omegaconf import OmegaConf

from kernelgen.config import AutoTarget, Figure, Hardware, Target
from kernelgen.constraints.rules import parse
from kernelgen.targets.code import champion_source, load_code
from kernelgen.targets.extents import extent
from kernelgen.targets.trivial import same

CONF = Path(__file__).parents[2] / "conf"
TARGETS = (
    "add_rmsnorm_fp8_g128", "mla_decode_bf16", "mla_decode_fp8", "moe_align_384", "moe_combine",
    "moe_dispatch_384expert", "moe_fp8_block", "moe_gate_k26", "moe_w4a16_g32", "silu_mul_fp8_g128",
)  # fmt: skip
# rules of comparing that are no output's: how codes are judged, and values under the interpreter
RULES_OF_COMPARING = {"y_codes", "y_interpreted"}
HARDWARE = ("a100", "b200", "h100", "h200")


def _plain(path: Path) -> dict[str, Any]:
    return OmegaConf.to_container(OmegaConf.load(path))


def _target(name: str) -> Target:
    return Target(**_plain(CONF / "target" / f"{name}.yaml"))


def _hardware(name: str) -> Hardware:
    return Hardware(**_plain(CONF / "hardware" / f"{name}.yaml"))


def _extents(shape: tuple[str | int, ...], dims: dict[str, int]) -> tuple[int, ...]:
    return tuple(extent(written, dims) for written in shape)


def test_every_config_of_the_two_groups_is_known_here() -> None:
    assert sorted(path.stem for path in (CONF / "target").glob("*.yaml")) == sorted(["auto", *TARGETS])
    assert sorted(path.stem for path in (CONF / "hardware").glob("*.yaml")) == list(HARDWARE)
    assert AutoTarget(**_plain(CONF / "target" / "auto.yaml")).name == "auto"


@pytest.mark.parametrize("name", TARGETS)
def test_target_is_whole_and_consistent(name: str) -> None:
    target = _target(name)
    assert target.name == name == target.entry_point
    assert target.profile_shape in target.shapes.tune
    names = target.shapes.names()
    assert len(names) == len(set(names))
    assert set(target.tolerance) - RULES_OF_COMPARING == {output.name for output in target.outputs}
    assert target.input_kinds == ("plain", "skewed", "ragged", "stressed", *target.exact_kinds)
    assert 2 <= len(target.shapes.edge) <= 4
    assert f"def {target.entry_point}(" in champion_source(target.champion, CONF / "target")


def test_no_two_targets_have_the_same_other_name() -> None:
    names = [name for target in map(_target, TARGETS) for name in (target.name, *target.aliases)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("kind", ["plain", "skewed", "ragged", "stressed"])
def test_inputs_and_reference_have_the_declared_form_and_repeat(name: str, kind: str) -> None:
    target = _target(name)
    code = load_code(target.module, CONF / "target")
    for dims in target.shapes.smoke.values():
        inputs = code.make_inputs(dims, kind, 5, "cpu")
        assert list(inputs) == [spec.name for spec in (*target.inputs, *target.scalars)]
        for spec in target.inputs:
            tensor = inputs[spec.name]
            assert tensor.dtype == getattr(torch, spec.dtype), spec.name
            assert tuple(tensor.shape) == _extents(spec.shape, dims), spec.name
            assert tensor.is_contiguous(), spec.name
        assert all(type(inputs[scalar.name]).__name__ == scalar.type for scalar in target.scalars)
        expected = code.reference(**inputs)
        for spec, tensor in zip(target.outputs, expected, strict=True):
            assert tensor.dtype == getattr(torch, spec.dtype), spec.name
            assert tuple(tensor.shape) == _extents(spec.shape, dims), spec.name
        again = code.make_inputs(dims, kind, 5, "cpu")
        assert all(same(one, other) for one, other in zip(expected, code.reference(**again), strict=True))
        other_seed = code.make_inputs(dims, kind, 6, "cpu")
        assert not torch.equal(next(iter(inputs.values())), next(iter(other_seed.values())))


@pytest.mark.parametrize("name", HARDWARE)
def test_every_hardware_figure_has_a_source_and_no_ceiling_exceeds_the_vendors_peak(name: str) -> None:
    hardware = _hardware(name)
    assert hardware.name == name
    assert int(re.fullmatch(r"sm_(\d+)a?", hardware.arch)[1]) == hardware.compute_capability
    figures = [value for _, value in hardware if isinstance(value, Figure)]
    assert len(figures) >= 16
    assert all(len(figure.source) > 10 and figure.value > 0 for figure in figures)
    assert hardware.dram_bytes_per_s.value <= hardware.dram_peak_bytes_per_s.value
    assert hardware.bf16_flops_per_s.value <= hardware.bf16_peak_flops_per_s.value
    assert (hardware.fp8_flops_per_s is None) == (hardware.fp8_peak_flops_per_s is None)
    if hardware.fp8_flops_per_s is not None:
        assert hardware.fp8_flops_per_s.value <= hardware.fp8_peak_flops_per_s.value


def test_h200_ceilings_are_the_measured_ones_and_a100_has_no_fp8() -> None:
    h200 = _hardware("h200")
    assert (h200.dram_bytes_per_s.value, h200.bf16_flops_per_s.value) == (4.26e12, 677e12)
    assert all("measured" in f.source for f in (h200.dram_bytes_per_s, h200.bf16_flops_per_s, h200.launch_floor_us))
    assert _hardware("a100").fp8_flops_per_s is None


@pytest.mark.parametrize("name", HARDWARE)
def test_architecture_facts_are_unique_sourced_and_hold_of_the_champions(name: str) -> None:
    facts = _hardware(name).facts
    assert len({fact.id for fact in facts}) == len(facts) >= 4
    assert all(fact.source for fact in facts)
    sources = [champion_source(_target(target).champion, CONF / "target") for target in TARGETS]
    for fact in facts:
        for source in sources if fact.rule else ():
            assert parse(fact.rule).check({"source": source, "dsl": "triton", "num_warps": 8}) is True, fact.id


@pytest.mark.parametrize(
    ("name", "fact", "broken"),
    [
        ("h200", "triton_num_warps_power_of_two", {"num_warps": 6}),
        ("h200", "triton_block_power_of_two", {"dsl": "triton", "source": "e = tl.arange(0, 384)"}),
        ("a100", "no_fp8_conversion", {"dsl": "triton", "source": "x = y.to(tl.float8e4nv)"}),
    ],
)
def test_rules_of_facts_catch_what_breaks_them(name: str, fact: str, broken: dict[str, Any]) -> None:
    rules = {entry.id: entry.rule for entry in _hardware(name).facts}
    assert parse(rules[fact]).check(broken) is False
