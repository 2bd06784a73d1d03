"""What every play promises. A new play is told here whether it is right; nothing has to be registered."""

from __future__ import annotations

import ast
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kernelgen.playbook.library import Play, plays, with_constants
from tests.playbook.prompts import ROOT, TARGETS

ALL = [play for target in TARGETS for play in plays(target)]
RUNNER = Path(__file__).with_name("play_runner.py")
PLAYS = ROOT / "kernelgen" / "playbook" / "plays"
# small enough for the interpreter; the later shapes take the other path of a play that has two
INTERPRETED: dict[str, list[dict[str, int]]] = {
    "moe_dispatch_384expert": [{"T": 2}, {"T": 33}],
    "mla_decode_fp8": [{"B": 2, "S": 70, "h": 4}, {"B": 1, "S": 70, "h": 20}],
}
COMPILED = {**INTERPRETED, "mla_decode_fp8": [{"B": 1, "S": 70, "h": 16}, {"B": 1, "S": 70, "h": 64}]}
HOPPER_SHARED_BYTES = 232448
each_play = pytest.mark.parametrize("play", ALL, ids=lambda play: f"{play.target}-{play.name}")


def start(mode: str, shapes: dict[str, list[dict[str, int]]], cache: Path) -> subprocess.Popen[str]:
    cases = [(str(PLAYS / play.target / f"{play.name}.py"), play.target, shapes[play.target]) for play in ALL]
    environment = {**os.environ, "TRITON_CACHE_DIR": str(cache), "PYTHONPATH": str(ROOT)}
    environment.pop("TRITON_INTERPRET", None)
    command = [sys.executable, str(RUNNER), mode, json.dumps(cases)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What the interpreter and the compiler said of each play, both at work at the same time."""
    cache = tmp_path_factory.mktemp("triton")
    running = {mode: start(mode, shapes, cache) for mode, shapes in (("interpret", INTERPRETED), ("compile", COMPILED))}
    found = {}
    for mode, process in running.items():
        out, err = process.communicate(timeout=300)
        assert process.returncode == 0, err[-2000:]
        said = json.loads(out.splitlines()[-1])
        found[mode] = {f"{play.target}-{play.name}": answer for play, answer in zip(ALL, said, strict=True)}
    return found


class Normalise(ast.NodeTransformer):
    """Names become numbers in the order they appear, constants their type's name, docstrings nothing."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}

    def name(self, name: str) -> str:
        return self.names.setdefault(name, f"n{len(self.names)}")

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Name(self.name(node.id), node.ctx)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return ast.arg(self.name(node.arg))

    def visit_keyword(self, node: ast.keyword) -> ast.AST:
        self.generic_visit(node)
        return ast.keyword(self.name(node.arg or ""), node.value)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return ast.Constant(type(node.value).__name__)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.name = self.name(node.name)
        node.decorator_list = []
        if ast.get_docstring(node) is not None:
            node.body = node.body[1:]
        self.generic_visit(node)
        return node


def normalised_functions(source: str) -> list[str]:
    """Each function of a source without its names and constants, the longest first."""
    functions = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    return sorted((ast.dump(Normalise().visit(node)) for node in functions), key=len, reverse=True)


@pytest.mark.parametrize("target", TARGETS)
def test_each_named_target_has_at_least_two_plays(target: str) -> None:
    assert len(plays(target)) >= 2


@pytest.mark.parametrize("target", TARGETS)
def test_plays_and_champion_differ_after_names_and_constants_are_normalised(target: str) -> None:
    sources = [play.source for play in plays(target)]
    sources.append((ROOT / "kernelgen" / "targets" / "champions" / f"{target}.py").read_text("utf-8"))
    for left, right in itertools.combinations(map(normalised_functions, sources), 2):
        # helpers and a merge may be shared; the kernel that does most of the work may not
        assert left[0] not in right
        assert right[0] not in left


def test_normalising_sees_through_new_names_and_constants() -> None:
    renamed = ALL[0].source.replace("counts", "totals").replace("2.827", "1.5").replace("gate_kernel", "choose")
    assert normalised_functions(renamed) == normalised_functions(ALL[0].source)


@each_play
def test_a_play_says_what_it_does_and_its_kernels_are_its_own(play: Play) -> None:
    assert len(play.description.hypothesis.split()) >= 50
    assert play.configs
    others = [set(other.configs) for other in plays(play.target) if other.name != play.name]
    assert not any(set(play.configs) & other for other in others)


@each_play
def test_a_play_has_a_configuration_for_every_autotuned_kernel_and_only_constants_it_defines_are_varied(
    play: Play,
) -> None:
    tree = ast.parse(play.source)
    tuned = {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and "autotune" in ast.dump(node)}
    assert set(play.configs) == {name for name in tuned if name != play.target}
    for constants in play.variants():
        ast.parse(with_constants(play, constants))


@each_play
def test_a_play_computes_the_reference_under_the_interpreter(play: Play, outcomes: dict[str, dict[str, Any]]) -> None:
    assert outcomes["interpret"][f"{play.target}-{play.name}"] == []


@each_play
def test_a_play_compiles_for_hopper_within_its_shared_memory(play: Play, outcomes: dict[str, dict[str, Any]]) -> None:
    built = outcomes["compile"][f"{play.target}-{play.name}"]
    assert isinstance(built, dict), built
    assert set(built) == set(play.configs)
    assert all(shared <= HOPPER_SHARED_BYTES for _, shared in built.values())
