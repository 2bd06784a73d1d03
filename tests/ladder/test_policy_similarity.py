"""A known kernel under other names is found again; different kernels of one author are not taken for one another."""

from __future__ import annotations

import ast
import random
import re
from pathlib import Path

import pytest
from policy_subjects import CUDA_KERNEL, HOST, TRITON, cuda, judged, subject, told

from kernelgen.ladder.policy import examine
from kernelgen.ladder.policy.similarity import closest
from kernelgen.ladder.results import Result

PACKAGE = Path(__file__).resolve().parents[2] / "kernelgen"
PLAYS = {path.stem: path for path in PACKAGE.glob("playbook/plays/*/[a-z]*.py")}
CHAMPIONS = {path.stem: path for path in PACKAGE.glob("targets/champions/[a-z]*.py")}
THRESHOLD = 0.9
KEPT = {"tl", "triton", "torch", "range", "int", "float", "min", "max"}


def renamed(source: str) -> str:
    """Every name of the source's own changed, layout and comments with it."""
    tree = ast.parse(source)
    own = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - KEPT
    own |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    own |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)} - {"run"}
    text = ast.unparse(tree)
    for name in sorted(own, key=len, reverse=True):
        text = re.sub(rf"(?<![\w.]){name}(?!\w)", f"q_{name[::-1]}", text)
    return "# all new\n" + text


def reordered(source: str, seed: int) -> str:
    """Functions shuffled, neighbours swapped, keywords shuffled."""
    tree = ast.parse(source)
    chance = random.Random(seed)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            for index in range(1, len(node.body) - 1, 4):
                node.body[index], node.body[index + 1] = node.body[index + 1], node.body[index]
        if isinstance(node, ast.Call):
            chance.shuffle(node.keywords)
    places = [index for index, node in enumerate(tree.body) if isinstance(node, ast.FunctionDef)]
    functions = [tree.body[index] for index in places]
    chance.shuffle(functions)
    for index, function in zip(places, functions, strict=True):
        tree.body[index] = function
    return ast.unparse(tree)


def share(source: str, known: str, language: str = "python") -> float:
    likeness = closest(source, language, {"known": known})
    assert likeness is not None
    return likeness.share


@pytest.mark.parametrize("name", PLAYS)
def test_a_play_in_disguise_is_known_again(name: str) -> None:
    source = PLAYS[name].read_text()
    assert share(source, source) == 1.0
    assert share(renamed(source), source) > 0.97
    assert share(reordered(source, 1), source) > THRESHOLD
    assert share(renamed(reordered(source, 2)), source) > THRESHOLD
    assert share(re.sub(r"\b16\b", "32", source), source) > 0.97


def test_plays_and_champions_of_one_target_stay_well_below() -> None:
    for one in PLAYS.values():
        rivals = [path for path in PLAYS.values() if path.parent == one.parent and path != one]
        for other in [*rivals, CHAMPIONS[one.parent.name]]:
            assert share(one.read_text(), other.read_text()) < THRESHOLD - 0.1, (one.stem, other)
            assert share(other.read_text(), one.read_text()) < THRESHOLD - 0.1, (other, one.stem)


def similar(result: Result) -> bool:
    return any(fault.check == "policy.similar" for fault in result.faults)


def test_the_champion_again_is_left_to_a_person_and_its_name_is_told() -> None:
    known = {"the champion naive": TRITON + HOST}
    result = judged(renamed(TRITON + HOST).replace("q_nur", "run"), known=known, allow=["policy.entry_point"])
    assert result.outcome == "suspect", told(result)
    assert "the champion naive" in result.faults[0].reason
    assert result.details["similarity"]["name"] == "the champion naive"


def test_dead_code_and_a_table_of_configurations_dilute_nothing() -> None:
    known = {"champion": TRITON + HOST}
    padding = "\n\n".join(f"def unused_{n}(a, b):\n    return [a * {n} + b, b / (a + {n}), a - b]" for n in range(60))
    table = "TABLE = {\n" + "".join(f'    "k{n}": [triton.Config({{}}, num_warps={n})],\n' for n in range(60)) + "}\n"
    assert similar(judged(f"{table}{TRITON}{padding}\n\n\n{HOST}", known=known))


def test_the_state_may_hand_it_in_or_port_it() -> None:
    known = {"champion": TRITON + HOST}
    same = judged(TRITON + HOST, known=known, same_kernel_allowed=True)
    assert same.outcome == "passed"
    assert "as its state hands it in" in same.notes[0]
    port = judged(TRITON + HOST, known=known, port_of="DeepGEMM (MIT)")
    assert port.outcome == "passed"
    assert "DeepGEMM (MIT)" in port.notes[0]
    assert judged(TRITON + HOST, known=known, allow=["policy.similar"]).outcome == "passed"
    assert judged(TRITON + HOST, known={}).outcome == "passed"


def test_the_threshold_is_the_projects() -> None:
    champion = CHAMPIONS["moe_dispatch_384expert"].read_text()
    play = PLAYS["one_launch"].read_text()
    subject_of_play = subject(play, entry_point="moe_dispatch_384expert")
    likeness = closest(play, "python", {"champion": champion})
    assert likeness is not None
    for threshold, expected in ((likeness.share - 0.05, True), (likeness.share + 0.05, False)):
        assert similar(examine(subject_of_play, known={"champion": champion}, similarity=threshold)) is expected


def test_cuda_is_known_again_too() -> None:
    source = cuda()
    disguised = re.sub(r"//[^\n]*|\n", " ", source.replace("#include", "\n#include").replace(">\n", ">\x00"))
    disguised = disguised.replace("\x00", "\n").replace("total", "acc").replace("row", "r0").replace("kernel", "quick")
    assert share(disguised, source, "cuda") > THRESHOLD
    other = CUDA_KERNEL.replace(
        "float total = 0.f;", "extern __shared__ float tile[]; tile[threadIdx.x] = 0; __syncthreads();"
    )
    other = re.sub(
        r"for \(.*", "while (row < M) { tile[row % 32] = fmaxf(tile[row], float(x[row])); row += gridDim.x; }", other
    )
    assert share(other, source, "cuda") < THRESHOLD


def test_a_source_of_another_kind_is_like_nothing() -> None:
    assert closest("x = 1\n", "python", {"champion": TRITON}) is None
    assert closest(TRITON, "python", {}) is None
