"""How a benchmark is made: contents that never repeat, roles and recipes by digest, verdicts told apart, the record."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

import torch
from rows_candidates import GOAL, HONEST, LAUNCH, changed, subject

from kernelgen.errors import BadInput
from kernelgen.ladder.benchmark import Ceilings, Recipe, Terms3, confirm, measure
from kernelgen.ladder.benchmark.contents import Maker
from kernelgen.ladder.benchmark.outcome import CPU_NOTE
from kernelgen.ladder.benchmark.surroundings import build_digests
from kernelgen.ladder.benchmark.terms import CPU_RECIPE, recipe_id
from kernelgen.ladder.correctness.calls import Shared
from kernelgen.ladder.correctness.tensors import Memory, place
from kernelgen.ladder.cuda import find_nvcc
from kernelgen.ladder.results import Result, result_from
from kernelgen.ladder.server import Server
from kernelgen.ladder.subject import Subject
from kernelgen.targets.code import TargetCode, load_code
from tests.attacks.goals import HISTOGRAM, honest

SMALL = replace(GOAL, tune={"t4_n128": {"T": 4, "N": 128}}, heldout={"t3_n96": {"T": 3, "N": 96}})
DECIDING = replace(CPU_RECIPE, decides=True, disturbed=100.0)
TERMS = Terms3(pairs=6, shape_s=30.0)
# six times the work, which is plain on any clock
SLOW = changed(LAUNCH, LAUNCH * 6)
TUNED = HONEST.replace(
    "@triton.jit\n",
    '@triton.autotune(configs=[triton.Config({"BLOCK": 32}), triton.Config({"BLOCK": 64})], key=["N"])\n@triton.jit\n',
).replace(", BLOCK=64", "")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server("interpreter") as running:
        yield running


def _judged(candidate: str, champion: str, server: Server, **changes: Any) -> Result:
    options = {"policy": TERMS, "seed": 5, **changes}
    sides = [subject(source, goal=SMALL) for source in (candidate, champion)]
    return measure(*sides, server_for=lambda _: server, device="cpu", **options)


def _rows() -> TargetCode:
    assert GOAL.folder is not None
    return load_code(GOAL.module, Path(GOAL.folder))


def test_contents_differ_at_every_call_and_are_the_sets_at_the_one_that_is_checked() -> None:
    maker = Maker(_rows(), ["y", "total"], "s", {"T": 4, "N": 128}, "plain", "cpu")
    maker.fresh(1)
    maker.choose_steps(5, random.Random(1))
    expected = maker.fresh(2)
    assert maker.changes
    assert {step.input for step in maker.steps} == {"x", "w"}
    tensors = {name: value for name, value in expected.inputs.items() if isinstance(value, torch.Tensor)}
    placed, size = place((name, "float32", tuple(value.shape)) for name, value in tensors.items())
    shared = Shared("inputs", Memory.create(size), placed)
    rounds, checked = 3, 2
    maker.write(shared, expected, rounds=rounds, call=checked, delta=1)
    seen = []
    for number in range(rounds * 5):
        step = maker.steps[number % 5]
        at = next(one for one in placed if one.name == step.input)
        shared.memory.raw(at).view(torch.int32)[step.position] += 1
        seen.append(bytes(shared.memory.bytes.numpy()))
        values = shared.memory.tensor(at)
        assert bool(values.isfinite().all())
        if number == (rounds - 1) * 5 + checked:
            assert shared.differing(expected.inputs) == []
    assert len(set(seen)) == len(seen)
    shared.memory.close()


def test_sets_keep_numbers_beside_the_tensors_and_change_the_rest() -> None:
    maker = Maker(_rows(), ["y", "total"], "s", {"T": 4, "N": 128}, "plain", "cpu")
    one = maker.fresh(1)
    maker.choose_steps(2, random.Random(1))
    other = maker.fresh(2)
    assert one.inputs["factor"] == other.inputs["factor"]
    assert not torch.equal(one.inputs["x"], other.inputs["x"])
    for step in maker.steps:
        assert one.inputs[step.input].view(-1)[step.position] == other.inputs[step.input].view(-1)[step.position]


def test_a_cpu_decides_nothing_by_itself(server: Server) -> None:
    result = _judged(SLOW, HONEST, server)
    assert (result.outcome, result.faults) == ("inconclusive", ())
    assert CPU_NOTE in result.notes


def test_slower_faster_and_no_difference_are_told_apart(server: Server) -> None:
    terms = replace(TERMS, recipe=DECIDING)
    slower, faster = (_judged(*sides, server, policy=terms) for sides in ((SLOW, HONEST), (HONEST, SLOW)))
    assert slower.outcome == "failed"
    assert [fault.check for fault in slower.faults] == ["benchmark.slower"]
    assert "t4_n128" in slower.faults[0].detail
    assert (faster.outcome, faster.faults) == ("passed", ())
    # the roles are part of the record, and exchanging them exchanges the ratio
    assert slower.details["roles"]["candidate"] == faster.details["roles"]["champion"]
    assert slower.details["geometric_mean"]["high"] < 1 < faster.details["geometric_mean"]["low"]
    assert slower.details["recipe"]["id"] == faster.details["recipe"]["id"]
    same = _judged(HONEST, HONEST, server, policy=replace(terms, minimum_effect=0.9))
    assert [fault.check for fault in same.faults] == ["benchmark.no_difference"]
    assert "no regression" in same.reason


def test_a_far_slower_candidate_costs_few_pairs(server: Server) -> None:
    terms = replace(TERMS, pairs=12, recipe=DECIDING)
    result = _judged(changed(LAUNCH, LAUNCH * 20), HONEST, server, policy=terms)
    assert result.faults[0].check == "benchmark.slower"
    assert result.details["shapes"]["t4_n128"]["pairs"] == DECIDING.far_pairs


def test_less_time_than_the_vendors_rates_take_is_impossible(server: Server) -> None:
    snail = Ceilings(bytes_per_s=10.0, flops_per_s=1e3, peak_bytes_per_s=20.0, peak_flops_per_s=1e3)
    result = _judged(HONEST, HONEST, server, ceilings=snail)
    assert result.outcome == "suspect"
    assert [fault.check for fault in result.faults] == ["benchmark.impossible"]
    assert result.details["shapes"]["t4_n128"]["candidate"]["of_floor"] > 1
    # measured rates may be passed
    beaten = replace(snail, peak_bytes_per_s=1e15, peak_flops_per_s=1e15)
    assert _judged(HONEST, HONEST, server, ceilings=beaten).faults == ()


def test_the_champions_failure_is_not_the_candidates(server: Server) -> None:
    broken = changed(LAUNCH, LAUNCH.replace("factor,", "2 * factor,"))
    result = _judged(HONEST, broken, server)
    assert result.outcome == "inconclusive"
    assert [fault.check for fault in result.faults] == ["benchmark.champion"]
    assert result.reason.startswith("the champion cannot be measured")


def test_a_target_without_floating_point_inputs_is_renewed_block_by_block(server: Server) -> None:
    one = Subject("h", "python", "triton", honest("histogram"), "", "histogram", HISTOGRAM)
    result = measure(one, one, server_for=lambda _: server, device="cpu", policy=TERMS, seed=5)
    assert (result.outcome, result.faults) == ("inconclusive", ())
    figures = next(iter(result.details["shapes"].values()))
    assert figures["calls"] == 1
    assert figures["input_sets"] >= TERMS.pairs


def test_held_out_shapes_are_measured_for_promotion_and_no_speed_fails_it(server: Server) -> None:
    sides = [subject(source, goal=SMALL) for source in (SLOW, HONEST)]
    terms = replace(TERMS, recipe=DECIDING)
    result = confirm(*sides, server_for=lambda _: server, device="cpu", policy=terms, seed=6)
    assert (result.level, result.outcome, result.faults) == ("L4", "passed", ())
    assert list(result.details["shapes"]) == ["t3_n96"]
    assert result.details["shapes"]["t3_n96"]["high"] < 1
    bare = replace(SMALL, heldout={})
    sides = [subject(HONEST, goal=bare)] * 2
    none = confirm(*sides, server_for=lambda _: server, device="cpu", policy=terms, seed=6)
    assert none.outcome == "inconclusive"


def test_the_chosen_configuration_is_in_the_record(server: Server) -> None:
    result = _judged(TUNED, HONEST, server)
    assert result.faults == (), result.reason
    assert "BLOCK: 32" in result.details["shapes"]["t4_n128"]["candidate"]["chosen"]


def test_the_record_is_json_and_comes_back(server: Server) -> None:
    result = _judged(HONEST, HONEST, server, ceilings=Ceilings(1e12, 1e12, 1e15, 1e15))
    assert result_from(json.loads(json.dumps(result.as_dict()))).as_dict() == result.as_dict()
    figures = result.details["shapes"]["t4_n128"]
    assert {"ratio", "low", "high", "launch_floor_us", "floor_us", "candidate", "champion"} <= set(figures)
    assert result.details["seed"] == 5
    assert result.environment["containment"]


def test_a_recipe_id_covers_every_parameter() -> None:
    terms, recipe = Terms3(), Recipe()
    known = recipe_id(recipe, terms, device="cuda", mode="graph")
    assert known == recipe_id(Recipe(), Terms3(), device="cuda", mode="graph")
    others = {
        recipe_id(replace(recipe, flush_bytes=0), terms, device="cuda", mode="graph"),
        recipe_id(recipe, replace(terms, pairs=31), device="cuda", mode="graph"),
        recipe_id(recipe, terms, device="cuda", mode="calls"),
        known,
    }
    assert len(others) == 4


@pytest.mark.parametrize("changes", [{"pairs": 2}, {"confidence": 1.0}, {"minimum_effect": -0.1}])
def test_terms_that_make_no_sense_are_bad_input(changes: dict[str, Any], server: Server) -> None:
    with pytest.raises(BadInput):
        _judged(HONEST, HONEST, server, policy=replace(TERMS, **changes))


def test_a_build_is_known_by_its_code_and_not_by_the_folder_it_was_made_in(tmp_path: Path) -> None:
    source = "__global__ void f(float* x) { *x += 1; }\n"
    nvcc = find_nvcc()
    if nvcc is None:
        pytest.skip("needs nvcc")
    digests = []
    for name, text in (("a", source), ("b", source), ("c", source.replace("1", "2"))):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "k.cu").write_text(text)
        command = [nvcc, "-cubin", "-arch=sm_90a", "-lineinfo", "-o", folder / "k.cubin", folder / "k.cu"]
        subprocess.run(command, check=True, capture_output=True)
        digests.append(build_digests(folder))
    assert digests[0] == digests[1] != []
    assert digests[0] != digests[2]
