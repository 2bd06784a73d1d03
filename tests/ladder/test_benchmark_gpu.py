"""The benchmark on a GPU: graphs and shared memory are used, verdicts are told apart, cheats of timing are refused.

Needs Python, torch, Triton and pytest, nothing else of kernelgen's dependencies.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

import torch
from rows_candidates import ALLOCATE, GOAL, HONEST, LAUNCH, RETURN, changed, subject
from test_correctness_gpu import CUDA_ROWS

from kernelgen.ladder.benchmark import Ceilings, Terms3, confirm, measure
from kernelgen.ladder.results import Result
from kernelgen.ladder.server import Server

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU"),
]
TERMS = Terms3(pairs=8)
H200 = Ceilings(bytes_per_s=4.26e12, flops_per_s=677e12, peak_bytes_per_s=4.8e12, peak_flops_per_s=1979e12)
WIDE = replace(GOAL, tune={"t4096_n4096": {"T": 4096, "N": 4096}}, heldout={"t512_n4096": {"T": 512, "N": 4096}})
FAST = HONEST.replace("BLOCK=64", "BLOCK=2048")
LAUNCH_FAST = LAUNCH.replace("BLOCK=64", "BLOCK=2048")
BESIDE = LAUNCH_FAST.replace("    rows_kernel", "        rows_kernel")
ON_SIDE = "    with torch.cuda.stream(SIDE):\n" + BESIDE

CHEATS = {
    # nobody waits for the side stream
    "side stream": "import torch\n\nSIDE = torch.cuda.Stream()\n" + changed(LAUNCH_FAST, ON_SIDE, FAST),
    # forked, and never joined
    "side stream forked": "import torch\n\nSIDE = torch.cuda.Stream()\n"
    + changed(LAUNCH_FAST, "    SIDE.wait_stream(torch.cuda.current_stream())\n" + ON_SIDE, FAST),
    # the kernel depends on the end of the call before, not on what comes between
    "beside the flush": "import torch\n\nSIDE = torch.cuda.Stream()\nLAST = []\n"
    + changed(
        LAUNCH_FAST,
        "    here = torch.cuda.current_stream()\n    if not LAST or not torch.cuda.is_current_stream_capturing():\n"
        "        LAST[:] = [here.record_event()]\n    SIDE.wait_event(LAST[0])\n"
        + ON_SIDE
        + "    here.wait_stream(SIDE)\n"
        "    if torch.cuda.is_current_stream_capturing():\n        LAST[:] = [here.record_event()]\n"
        "    else:\n        LAST.clear()\n",
        FAST,
    ),
    # a graph of its own that computes nothing
    "stale graph": "import torch\n\nGRAPHS = {}\n"
    + changed(
        ALLOCATE,
        "    if x.shape in GRAPHS:\n        GRAPHS[x.shape][0].replay()\n        return GRAPHS[x.shape][1]\n"
        + ALLOCATE,
        FAST,
    ).replace(
        RETURN,
        "    graph = torch.cuda.CUDAGraph()\n    torch.cuda.synchronize()\n    with torch.cuda.graph(graph):\n"
        "        torch.zeros(1, device=x.device)\n    GRAPHS[x.shape] = graph, (y, total)\n" + RETURN,
    ),
    # computes when it is captured, not when it is replayed
    "work at capture": "import torch\n\nSEEN = {}\n"
    + changed(
        ALLOCATE,
        "    if torch.cuda.is_current_stream_capturing():\n        return SEEN[x.shape]\n" + ALLOCATE,
        FAST,
    ).replace(RETURN, "    SEEN[x.shape] = y, total\n" + RETURN),
    # every call of a captured round but the last does nothing
    "only the last call": "import torch\n\nCALLS = []\n"
    + changed(
        LAUNCH_FAST,
        "    CALLS.append(1)\n    if not torch.cuda.is_current_stream_capturing() or len(CALLS) % 8 == 0:\n" + BESIDE,
        FAST,
    ),
}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server("gpu") as running:
        yield running


def _judged(candidate: str, champion: str, server: Server) -> Result:
    sides = [subject(source, goal=WIDE) for source in (candidate, champion)]
    return measure(*sides, server_for=lambda _: server, device="cuda", policy=TERMS, seed=5, ceilings=H200)


def test_a_kernel_against_itself_is_no_difference_by_graphs_on_shared_memory(server: Server) -> None:
    result = _judged(FAST, FAST, server)
    assert [fault.check for fault in result.faults] == ["benchmark.no_difference"], result.reason
    assert result.details["recipe"]["mode"] == "graph"
    assert result.details["recipe"]["memory"] == "device", result.notes
    assert result.details["builds"]["candidate"] == result.details["builds"]["champion"] != []
    figures = result.details["shapes"]["t4096_n4096"]
    assert figures["candidate"]["us"] > 0.9 * figures["floor_us"]
    assert 0.3 < figures["launch_floor_us"] < 5.0
    assert figures["calls"] > 1


def test_more_work_is_slower_and_less_is_faster(server: Server) -> None:
    slow = changed(LAUNCH_FAST, LAUNCH_FAST * 2, FAST)
    assert _judged(slow, FAST, server).faults[0].check == "benchmark.slower"
    assert _judged(FAST, slow, server).outcome == "passed"


def test_what_cannot_be_captured_is_timed_by_calls_on_both_sides(server: Server) -> None:
    asking = changed(LAUNCH_FAST, "    assert w[0].item() == w[0].item()\n" + LAUNCH_FAST, FAST)
    result = _judged(asking, FAST, server)
    assert result.details["recipe"]["mode"] == "calls"
    assert any("without a CUDA graph" in note for note in result.notes)
    assert result.faults[0].check in ("benchmark.slower", "benchmark.no_difference")


@pytest.mark.parametrize("name", CHEATS)
def test_a_cheat_of_timing_does_not_pass(name: str, server: Server) -> None:
    result = _judged(CHEATS[name], FAST, server)
    assert result.outcome in ("failed", "suspect"), result.as_dict()
    assert result.faults


def test_cuda_is_measured_too_and_autotuning_is_reported(server: Server) -> None:
    library = subject(CUDA_ROWS, goal=WIDE, language="cuda", dsl="cuda")
    tuned = FAST.replace(
        "@triton.jit\n",
        '@triton.autotune([triton.Config({"BLOCK": 1024}), triton.Config({"BLOCK": 2048})], key=["N"])\n@triton.jit\n',
    ).replace(", BLOCK=2048", "")
    result = confirm(
        library,
        subject(tuned, goal=WIDE),
        server_for=lambda _: server,
        device="cuda",
        policy=TERMS,
        seed=6,
        ceilings=H200,
    )
    assert result.outcome == "passed", result.reason
    assert "BLOCK" in result.details["shapes"]["t512_n4096"]["champion"]["chosen"]
