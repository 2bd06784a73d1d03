"""L1 of Triton candidates: figures are the binaries' own, host code finds a card, and no child's word is believed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

from compile_candidates import GOAL, add_source, compiling, dot_source, only_fault, subject_of

import kernelgen.ladder.compile as compiling_module
from kernelgen.catalog import Catalog, shipped_conf
from kernelgen.judging.subjects import goal
from kernelgen.ladder.compile import compile_candidate
from kernelgen.ladder.results import result_from
from kernelgen.ladder.server import Server
from kernelgen.playbook import library
from kernelgen.targets.code import champion_source

CUDA_WRAPPER = """
def add(x, y):
    assert x.is_cuda and x.device == y.device and x.device.type == "cuda"
    assert torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)
    with torch.cuda.device(x.device):
        count = torch.zeros(1, dtype=torch.int32, device="cuda")
        out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        stream = torch.cuda.current_stream(x.device).cuda_stream
        blocks = torch.cuda.get_device_properties(x.device).multi_processor_count
        assert count.is_cuda and out.device == x.device and blocks == 132 and stream == 0
        add_kernel[(blocks,)](x.cuda(), y.to("cuda"), out, x.numel(), BLOCK=256)
    torch.cuda.synchronize()
    return (out,)
"""
# the channel of a child is an object like any other
FORGING = """
import gc


def forge(**event):
    for channel in gc.get_objects():
        if type(channel).__name__ == "Channel":
            channel.send(event)


def add(x, y):
    {event}
    return (x + y,)
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server("compiler") as started:
        yield started


@pytest.fixture(scope="module")
def compiled(server: Server) -> Any:
    return compiling(server)


def test_resources_and_instructions_are_read_per_configuration(compiled) -> None:
    result = compiled(dot_source(launch=", num_warps=4, num_stages=3"))
    assert result.outcome == "passed"
    (build,) = result.details["builds"]
    assert (build["kernel"], build["kwargs"], build["num_warps"], build["num_stages"]) == (
        "dot_kernel",
        {"M": 64, "K": 64},
        4,
        3,
    )
    assert 32 <= build["registers"] <= 255
    assert build["stack_bytes"] == 0
    assert 0 < build["shared_bytes"] <= result.details["shared_limit_bytes"] == 232_448
    assert build["instructions"]["HGMMA"] > 0
    assert build["digest"].startswith("sha256:")
    assert build["calls"] == ("n_1m",)
    assert result.reason.startswith("compiled for sm_90a: 1 kernel, 1 configuration; registers up to ")
    assert result_from(json.loads(json.dumps(result.as_dict()))).faults == ()


def test_registers_that_do_not_fit_are_seen_as_stack_and_local_memory_instructions(compiled) -> None:
    (build,) = compiled(dot_source(m=256, k=64, launch=", num_warps=4, num_stages=1")).details["builds"]
    assert build["registers"] == 255
    assert build["stack_bytes"] > 0
    assert build["instructions"]["STL"] > 0
    assert build["instructions"]["LDL"] > 0


def test_the_environment_names_compiler_version_assembler_arch_and_containment(compiled) -> None:
    environment = compiled(add_source()).environment
    assert environment["compiler"] == "triton"
    assert environment["compiler_version"] == environment["triton"] != "unknown"
    assert environment["ptxas"].count(".") == 2
    assert environment["arch"] == "sm_90a"
    assert "containment" in environment


def test_host_code_that_names_cuda_finds_a_card_and_its_tensors_on_it(compiled) -> None:
    head, _, _ = add_source().partition("def add(x, y):")
    result = compiled(head + CUDA_WRAPPER)
    assert result.outcome == "passed", result.faults


def test_host_code_that_needs_values_is_called_at_the_smoke_shapes(compiled) -> None:
    result = compiled(add_source(host="assert x[0].item() == x[0].item() and x.is_cuda"))
    assert result.outcome == "passed", result.faults
    assert result.details["builds"][0]["calls"] == ("n_200",)
    assert "compiled at the smoke shapes" in result.notes[0]
    assert "item()" in result.notes[0]


def test_kernelgens_table_stands_above_the_source_and_does_not_move_its_lines(compiled) -> None:
    table = 'import triton\n\nAUTOTUNE_CONFIGS = {"add_kernel": [triton.Config({"BLOCK": 48})]}\n'
    tuned = add_source().replace("@triton.jit", '@triton.autotune(AUTOTUNE_CONFIGS["add_kernel"], key=[])\n@triton.jit')
    source = tuned.replace(", BLOCK=256)", ")")
    fault = only_fault(compiled(source, preamble=table))
    assert "tl.arange(0, BLOCK)" in source.splitlines()[(fault.line or 0) - 1]
    assert compiled(source, preamble=table.replace("48", "64")).outcome == "passed"


@pytest.mark.parametrize(
    ("event", "check"),
    [
        ('forge(event="done")', "compile.no_launch"),
        ('forge(event="passed")', "process.reached_out"),
        ('forge(event="built", call=None, key="k", kernel="k", kwargs={}, num_warps=4, num_stages=1, shared_bytes=0)',
         "process.reached_out"),
        ('forge(event="built", call=None, key="k", kernel="k", kwargs={"A": [1]}, num_warps=4, num_stages=1)',
         "process.reached_out"),
        ("import os; os._exit(0)", "process.exited"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "process.crashed"),
    ],
)  # fmt: skip
def test_what_a_candidate_sends_or_does_itself_passes_nothing(compiled, event: str, check: str) -> None:
    result = compiled(FORGING.format(event=event))
    assert result.outcome == "failed"
    assert result.faults[0].check == check


def test_a_forged_binary_is_a_fault_of_the_candidate(compiled) -> None:
    forged = FORGING.replace("channel.send(event)", "channel.send(event, [os.memfd_create('b')])")
    event = 'forge(event="built", call=None, key="k", kernel="k", kwargs={}, num_warps=4, num_stages=1, shared_bytes=0)'
    fault = only_fault(compiled("import os\n" + forged.format(event=event)))
    assert fault.check == "compile.other"
    assert "not a 64-bit little-endian ELF file" in fault.reason


def test_a_compile_without_an_end_is_stopped_and_named(compiled) -> None:
    source = add_source("for step in tl.static_range(100000):\n        at = at + tl.sum(at) * step")
    fault = only_fault(compiled(source, timeout_s=4.0))
    assert fault.check == "compile.timeout"
    assert fault.reason.startswith("add_kernel[BLOCK=256] did not compile")
    assert fault.facts == {"block.BLOCK": 256}


def test_without_a_package_it_is_inconclusive_and_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling_module, "find_spec", lambda name: None if name == "triton" else object())

    def never(kind: str) -> Server:
        raise AssertionError(kind)

    result = compile_candidate(subject_of(add_source()), server_for=never, timeout_s=1.0)
    assert result.outcome == "inconclusive"
    assert result.reason == "triton is not installed: pip install 'kernelgen[kernels]'"
    assert result.faults == ()


def test_a_target_at_fault_is_no_verdict_on_the_candidate(server: Server, tmp_path: Path) -> None:
    from kernelgen.errors import ConfigError

    elsewhere = replace(GOAL, folder=str(tmp_path))
    with pytest.raises(ConfigError, match=r"adder_target\.py"):
        compile_candidate(subject_of(add_source(), goal=elsewhere), server_for=lambda kind: server, timeout_s=60.0)


@pytest.mark.parametrize("kind", ["champion", "play"])
def test_a_champion_and_a_play_of_the_shipped_targets_pass_with_their_instruction(server: Server, kind: str) -> None:
    catalog = Catalog([shipped_conf()])
    target, located = catalog.target("moe_fp8_block" if kind == "champion" else "mla_decode_fp8")
    source = champion_source(target.champion, located.folder)
    if kind == "play":
        source = next(play.source for play in library.plays(target.name) if play.name == "group_per_warp")
    asked = goal(target, catalog.hardware("h200"), target.module, None)
    assert "HMMA" in asked.instructions
    subject = subject_of(source, goal=asked, entry_point=target.entry_point)
    result = compile_candidate(subject, server_for=lambda kind: server, timeout_s=200.0)
    assert result.outcome == "passed", result.faults
    assert result.details["instructions"][0] == "HMMA"
