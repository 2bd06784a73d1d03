"""What L2 says of candidates that end, hang or reach out, and of what it cannot judge; what a verdict tells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

from rows_candidates import ALLOCATE, GOAL, HONEST, LAUNCH, RETURN, changed, judge, subject

from kernelgen.errors import BadInput, HarnessError
from kernelgen.ladder.correctness import check_correctness
from kernelgen.ladder.server import Server


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server("interpreter") as running:
        yield running


def _at_call(line: str) -> str:
    return changed(ALLOCATE, f"    {line}\n{ALLOCATE}")


ENDS = {
    "process.hung": "while True: pass",
    "process.crashed": "import ctypes; ctypes.string_at(0)",
    "process.exited": "import os; os._exit(0)",
    "process.flooded": "print('x' * (1 << 22))",
    "correctness.raised": "raise SystemExit(0)",
}


@pytest.mark.parametrize("check", ENDS)
def test_a_candidate_that_ends_its_process_fails_with_the_cause(check: str, server: Server) -> None:
    result = judge(_at_call(ENDS[check]), server, timeout_s=2.0)
    assert result.outcome == "failed"
    assert result.faults[0].check == check
    assert "shape t4_n128 (T=4, N=128), plain inputs" in result.reason


def test_ending_at_import_is_told_from_ending_in_a_call(server: Server) -> None:
    result = judge("import os\nos._exit(0)\n" + HONEST, server)
    assert [fault.check for fault in result.faults] == ["process.exited"]
    assert result.reason.startswith("at its import: ")


def test_what_is_written_on_the_channel_is_not_taken_for_an_answer(server: Server) -> None:
    forging = """
import gc
for thing in gc.get_objects():
    if type(thing).__name__ == "Channel":
        thing.send({"failure": None, "counted": True})
"""
    result = judge(forging + HONEST, server)
    assert result.outcome == "failed"
    assert "process.reached_out" in [fault.check for fault in result.faults]


def test_the_reference_may_be_slower_than_the_candidate_may_be(server: Server) -> None:
    goal = replace(GOAL, module="slow_rows_target.py")
    result = judge(HONEST, server, timeout_s=2.0, goal=goal)
    assert result.seconds > 2.0
    assert result.outcome == "passed", result.faults


def test_a_verdict_repeats_from_the_seed_it_tells(server: Server) -> None:
    wrong = changed(LAUNCH, LAUNCH.replace("factor,", "factor + 0.001,"))
    first = judge(wrong, server, seed=None)
    again = judge(wrong, server, seed=first.details["seed"])
    other = judge(wrong, server, seed=None)
    assert first.reason == again.reason != other.reason


def test_the_preamble_stands_above_the_source_and_lines_are_the_sources(server: Server) -> None:
    source = changed(LAUNCH, LAUNCH.replace("BLOCK=64", "BLOCK=TABLE['block']"))
    assert judge(source, server, preamble="TABLE = {\n    'block': 32,\n}").outcome == "passed"
    result = judge(source, server, preamble="TABLE = {\n    'lock': 32,\n}")
    line = source[: source.index("TABLE[")].count("\n") + 1
    assert (result.faults[0].check, result.faults[0].line) == ("correctness.raised", line)


CONFIGS = (
    '@triton.autotune([triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 16, "LOST": 1})], key=[])\n@triton.jit'
)


def test_every_configuration_of_an_autotuned_kernel_is_called_and_the_wrong_one_named(server: Server) -> None:
    tuned = changed("@triton.jit", CONFIGS).replace(", BLOCK=64", "")
    honest = tuned.replace("BLOCK: tl.constexpr", "BLOCK: tl.constexpr, LOST: tl.constexpr = 0")
    result = judge(honest, server)
    assert result.outcome == "passed", result.faults
    assert result.details["configurations"] == "2 of 2"
    result = judge(changed("range(0, N, BLOCK)", "range(0, N - LOST, BLOCK + 64 * LOST)", honest), server)
    assert result.outcome == "failed"
    assert "LOST: 1" in result.reason


def test_the_candidate_sees_neither_target_nor_who_calls(server: Server) -> None:
    told = changed(
        ALLOCATE,
        "    import os, sys\n"
        "    loaded = [name for name in sys.modules if name.startswith(('kernelgen.targets', 'rows_target'))]\n"
        "    own = sorted(os.listdir('.'))\n"
        f"    raise ValueError(repr((loaded, sys.argv, __file__.rpartition('/')[2], __name__, own)))\n{ALLOCATE}",
    )
    result = judge(told, server)
    assert "ValueError: ([], [''], 'kernel.py', 'kernel', ['kernel.py'])" in result.reason


def test_an_index_computed_by_torch_is_a_doubt_and_a_cast_to_bf16_is_none(server: Server) -> None:
    indexing = changed(ALLOCATE, ALLOCATE + "    torch.arange(4) + 1\n")
    result = judge(indexing, server)
    assert (result.outcome, result.faults[0].check) == ("suspect", "correctness.library_work")
    assert "aten::add" in result.reason
    assert judge(changed(RETURN, "    w.to(torch.bfloat16)\n" + RETURN), server).outcome == "passed"
    assert judge(changed(RETURN, "    w.to(torch.float8_e4m3fn)\n" + RETURN), server).outcome == "failed"


@pytest.mark.parametrize(("dsl", "name"), [("tilelang", "TileLang"), ("cuda", "CUDA C++")])
def test_what_runs_on_a_gpu_alone_is_inconclusive_on_a_cpu(dsl: str, name: str, server: Server) -> None:
    result = judge(HONEST, server, dsl=dsl)
    assert (result.outcome, result.faults) == ("inconclusive", ())
    assert result.reason.startswith(f"{name} kernels run on a GPU alone")


def test_no_gpu_is_inconclusive_and_no_server_an_error(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    result = check_correctness(subject(HONEST), server=server, device="cuda", timeout_s=1.0)
    assert (result.outcome, result.reason) == ("inconclusive", "there is no CUDA GPU here that torch can use")
    with pytest.raises(HarnessError, match="needs a server"):
        check_correctness(subject(HONEST), device="cpu", timeout_s=1.0)
    asked: list[str] = []
    taken = check_correctness(subject(HONEST), server_for=lambda kind: (asked.append(kind), server)[1], timeout_s=30.0)
    assert (taken.outcome, asked) == ("passed", ["interpreter"])


def test_a_target_that_cannot_be_computed_is_bad_input(server: Server) -> None:
    with pytest.raises(BadInput, match="could not be computed at shape t4_n128"):
        judge(HONEST, server, goal=replace(GOAL, kinds=("plain",), smoke={"t4_n128": {"T": 4}}))


def test_details_hold_the_candidates_own_frames_alone(server: Server) -> None:
    crashed = judge(_at_call(ENDS["process.crashed"]), server, timeout_s=5.0, preamble="one = 1\ntwo = 2")
    assert "the process was killed by SIGSEGV" in crashed.reason
    raised = judge(_at_call("raise ValueError('no')"), server, preamble="one = 1\ntwo = 2")
    line = raised.faults[0].line
    for detail in (crashed.faults[0].detail, raised.faults[0].detail):
        assert [text for text in detail.splitlines() if "File" in text] == [
            f'  File "kernel.py", line {line} in rows'
        ] or (f'File "kernel.py", line {line}, in rows' in detail and detail.count("File ") == 1)
        assert "/" not in detail


def test_a_slow_candidate_is_undecided_and_skips_no_edge_shape(server: Server) -> None:
    slow = changed(ALLOCATE, f"    import time\n    time.sleep(0.2)\n{ALLOCATE}")
    result = judge(slow, server, timeout_s=1.0)
    assert (result.outcome, result.faults) == ("inconclusive", ())
    assert "longer than the 1 s they have" in result.reason
    wrong_at_edge = slow.replace("x.shape[1], BLOCK", "x.shape[1] - x.shape[1] % 2, BLOCK")
    assert judge(wrong_at_edge, server, timeout_s=30.0).outcome == "failed"


def test_a_slow_candidate_whose_kernels_do_nothing_does_not_pass_for_want_of_time(server: Server) -> None:
    lazy = changed(ALLOCATE, f"    import time\n    time.sleep(0.1)\n{ALLOCATE}")
    calls = judge(lazy, server).details["calls"]
    result = judge(lazy, server, timeout_s=calls * 0.1 + 0.3)
    assert result.outcome == "inconclusive", result.reason


def test_timed_shapes_that_a_cpu_does_not_check_are_named_and_a_small_one_is_checked(server: Server) -> None:
    result = judge(HONEST, server)
    assert "timed shapes not checked on a CPU: t4096_n4096" in result.notes
    goal = replace(GOAL, tune={"t4096_n4096": {"T": 4096, "N": 4096}, "t9_n130": {"T": 9, "N": 130}})
    assert "timed shapes not checked on a CPU: t4096_n4096" in judge(HONEST, server, goal=goal).notes
    wrong = changed(LAUNCH, LAUNCH.replace("factor,", "factor if x.shape[0] < 9 else 0.0,"))
    result = judge(wrong, server, goal=goal)
    assert [fault.check for fault in result.faults] == ["correctness.shapes"]
    assert judge(wrong, server).outcome == "passed"
