"""What the policy's results are: every play and champion passes, a fault shows its place, projects allow and deny."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from policy_subjects import ALLOCATE, HOST, LAUNCH, TRITON, cuda, host, judged, subject, told

from kernelgen.catalog import Catalog, shipped_conf
from kernelgen.ladder.policy import CHECKS, examine
from kernelgen.ladder.results import result_from
from kernelgen.ladder.subject import Goal

ROOT = Path(__file__).resolve().parents[2]
PLAYS = sorted((ROOT / "kernelgen/playbook/plays").glob("*/[a-z]*.py"))
CHAMPIONS = sorted((ROOT / "kernelgen/targets/champions").glob("[a-z]*.py"))
OWN = sorted((ROOT / "tests/ladder/own_candidates").glob("moe_combine_*"))
FUTURE = "from __future__ import annotations\n"
CPU_LIMIT_S = 0.05


def goal(name: str) -> Goal:
    """A shipped target as the ladder takes it."""
    target, _ = Catalog([shipped_conf()]).target(name)
    return Goal(
        name=target.name,
        module=target.module,
        folder=None,
        inputs=tuple((t.name, t.dtype, list(t.shape)) for t in target.inputs),
        scalars={scalar.name: scalar.type for scalar in target.scalars},
        outputs=tuple((t.name, t.dtype, list(t.shape)) for t in target.outputs),
        smoke=target.shapes.smoke,
        edge=target.shapes.edge,
        tune=target.shapes.tune,
        heldout=target.shapes.heldout,
        kinds=target.input_kinds,
        exact_kinds=target.exact_kinds,
        tolerance={},
        deterministic=target.deterministic,
        instructions=target.instructions,
        arch="sm_90a",
        compute_capability=90,
        shared_bytes_per_block=232_448,
    )


@pytest.mark.parametrize("path", [*PLAYS, *CHAMPIONS], ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_play_and_champion_passes(path: Path) -> None:
    name = path.parent.name if path in PLAYS else path.stem
    known = {other.stem: other.read_text() for other in [*PLAYS, *CHAMPIONS] if other != path}
    judged_play = subject(path.read_text(), entry_point=name, goal=goal(name))
    result = examine(judged_play, known=known)
    assert result.outcome == "passed", told(result)


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.suffix)
def test_other_languages_for_a_shipped_target_pass(path: Path) -> None:
    language = "cuda" if path.suffix == ".cu" else "python"
    result = examine(subject(path.read_text(), language=language, entry_point="moe_combine", goal=goal("moe_combine")))
    assert result.outcome == "passed", told(result)


def test_the_largest_play_takes_less_than_its_time() -> None:
    largest = max(PLAYS, key=lambda path: path.stat().st_size)
    name = largest.parent.name
    known = {path.stem: path.read_text() for path in PLAYS if path != largest}
    target = goal(name)
    times = []
    for number in range(5):
        # another source each time, so that nothing of it is kept
        play = subject(f"# {number}\n{largest.read_text()}", entry_point=name, goal=target)
        began = time.process_time()
        assert examine(play, known=known).outcome == "passed"
        times.append(time.process_time() - began)
    assert min(times) < CPU_LIMIT_S


def test_a_fault_shows_its_line_with_a_caret_and_its_reason_names_no_place() -> None:
    source = host("scale = 1.0\nout = torch.matmul(x, w)\nother = torch.matmul(w, x)")
    result = judged(source)
    fault = result.faults[0]
    line = source.splitlines().index("    out = torch.matmul(x, w)") + 1
    assert (fault.check, fault.line) == ("policy.library_work", line)
    assert fault.detail.splitlines()[:3] == [f"line {line}", "    out = torch.matmul(x, w)", "          ^"]
    assert fault.detail.splitlines()[3] == f"also on line {line + 1}"
    assert "line" not in fault.reason
    assert fault.reason.startswith("torch.matmul")
    assert result.reason == fault.reason
    assert result_from(result.as_dict()) == result


def test_what_does_not_parse_shows_where() -> None:
    result = judged(TRITON + "def run(x, w, seqlens, eps:\n    return x\n")
    fault = result.faults[0]
    assert (result.outcome, fault.check) == ("failed", "policy.syntax")
    assert "def run(x, w, seqlens, eps:" in fault.detail
    assert "^" in fault.detail
    broken = cuda().replace("float total = 0.f;", "float total = (0.f;")
    result = judged(broken, language="cuda")
    assert (result.outcome, result.faults[0].check) == ("failed", "policy.syntax")


def test_what_only_the_compiler_sees_is_found() -> None:
    assert judged("return 1\n" + TRITON + HOST).faults[0].check == "policy.syntax"
    late = TRITON + FUTURE + HOST
    assert judged(late).faults[0].check == "policy.syntax"
    assert examine(subject(FUTURE + TRITON + HOST)).outcome == "passed"
    below = examine(subject(FUTURE + TRITON + HOST, preamble="AUTOTUNE_CONFIGS = {}\n"))
    assert below.faults[0].check == "policy.syntax"


def test_decisive_faults_stand_before_those_in_doubt() -> None:
    result = judged(host("CACHE[M] = out\nscaled = out * 2\nout = torch.mm(x, w)", top="CACHE = {}"))
    assert result.outcome == "failed"
    assert "torch.mm" in result.faults[0].reason
    assert {fault.check for fault in result.faults} >= {"policy.cache", "policy.library_work"}


def test_a_project_may_leave_a_check_out_or_allow_a_name() -> None:
    source = host("noise = torch.randn(4)\nout = torch.nn.functional.softmax(x, -1)")
    assert {fault.check for fault in judged(source).faults} == {"policy.library_work", "policy.random"}
    result = judged(source, allow=["policy.library_work"])
    assert {fault.check for fault in result.faults} == {"policy.random"}
    assert "not checked: policy.library_work" in result.notes
    result = judged(source, allow=["torch.nn", "torch.randn"])
    assert result.outcome == "passed", told(result)
    assert judged("def run(", allow=list(CHECKS)).outcome == "failed"


def test_a_project_may_deny_more() -> None:
    source = host("counts = torch.zeros((M,), device=x.device)\nbig = math.ceil(2.5)", top="import math")
    assert judged(source).outcome == "passed"
    for name in ("torch.zeros", "math"):
        result = judged(source, deny=[name])
        assert (result.outcome, result.faults[0].check) == ("failed", "policy.denied"), name
    assert judged(source, deny=["torch.zero", "mat"]).outcome == "passed"
    assert judged("import mylib\n" + host(""), deny=["mylib"]).faults[0].check == "policy.denied"
    reduced = cuda(top="#include <cub/block/block_reduce.cuh>\nusing R = cub::BlockReduce<float, 128>;")
    assert judged(reduced, language="cuda").outcome == "passed"
    for name in ("cub.BlockReduce", "cub"):
        assert judged(reduced, language="cuda", deny=[name]).faults[0].check == "policy.denied", name


def test_every_check_found_is_one_that_the_table_explains() -> None:
    sources = [
        host("noise = torch.randn(4)\nos.system('x')\nout = x @ w\nexec('x')", top="import os"),
        TRITON + f"def run(x, w):\n{ALLOCATE}{LAUNCH}    return out\n",
        "def run(",
    ]
    found = {fault.check for source in sources for fault in judged(source, deny=["math"]).faults}
    assert found
    assert found <= set(CHECKS)
    assert all(sentence.endswith(".") and name.startswith("policy.") for name, sentence in CHECKS.items())
