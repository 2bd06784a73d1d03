"""Every fault that a compiler finds is named by a stable id, with facts that a rule can be made of and the line it is
at; and for each there is an honest twin that passes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

from compile_candidates import DESCRIPTOR, GOAL, add_source, compiling, dot_source, only_fault, tuned_source

from kernelgen.constraints import rules
from kernelgen.ladder.server import Server


class Case(NamedTuple):
    """A candidate with one fault."""

    check: str
    source: str
    twin: str
    """The same without the fault."""
    marked: str
    """What stands in the line that the fault is at."""
    facts: dict[str, Any]
    """Some of its facts."""
    said: str
    """Some of the compiler's words."""


ADD, DOT = add_source(), dot_source()
LOOP = "total = 0{}\n    for step in range(n):\n        total = total + 1.5"
HOST_DESCRIPTOR = """\
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def sum_kernel(source, out, ROWS: tl.constexpr):
    tl.store(out + tl.arange(0, ROWS), tl.sum(source.load([0, 0]), 0))


def add(x, y):
    out = torch.empty_like(x)
    sum_kernel[(1,)](TensorDescriptor(x, [1024, 1000], [{stride}, 1], [16, 16]), out, 16)
    return (out,)
"""
CASES = {
    "shared memory": Case(
        "compile.shared_memory",
        dot_source(m=128, k=128, launch=", num_warps=8, num_stages=5"),
        DOT,
        "dot_kernel[(1,)]",
        {"limit_bytes": 232_448, "num_warps": 8, "num_stages": 5, "block.M": 128, "block.K": 128},
        "Hardware limit: 232448",
    ),
    "warps no power of two": Case(
        "compile.num_warps",
        add_source(launch=", num_warps=3"),
        add_source(launch=", num_warps=2"),
        "num_warps=3",
        {"num_warps": 3},
        "num_warps must be a power of 2",
    ),
    "too many threads": Case(
        "compile.threads",
        add_source(launch=", num_warps=64"),
        add_source(launch=", num_warps=32"),
        "num_warps=64",
        {"threads": 2048, "num_warps": 64},
        "Hardware limit: 1024",
    ),
    "block no power of two": Case(
        "compile.block_shape",
        add_source(block=48),
        add_source(block=64),
        "tl.arange(0, BLOCK)",
        {"block.BLOCK": 48, "excerpt": "tl.arange(0, BLOCK)"},
        "arange's range must be a power of 2",
    ),
    "extent written out": Case(
        "compile.block_shape",
        add_source("other = tl.zeros((BLOCK, 384), tl.float32)"),
        add_source("other = tl.zeros((BLOCK, 512), tl.float32)"),
        "384",
        {"extent": 384},
        "Shape element 1 must be a power of 2",
    ),
    "too many elements": Case(
        "compile.block_shape",
        add_source("other = tl.zeros((BLOCK, 8192), tl.float32)"),
        ADD,
        "8192",
        {"elements": 2_097_152, "block.BLOCK": 256},
        "exceeds triton maximum tensor numel",
    ),
    "operands of two types": Case(
        "compile.dot_dtype",
        dot_source("total = tl.dot(a.to(tl.float16), b.to(tl.bfloat16), total)"),
        dot_source("total = tl.dot(a.to(tl.float16), b.to(tl.float16), total)"),
        "b.to(tl.bfloat16)",
        {"lhs_dtype": "fp16", "rhs_dtype": "bf16"},
        "Both operands must be same dtype",
    ),
    "an operand no product takes": Case(
        "compile.dot_dtype",
        dot_source("total += tl.dot(a.to(tl.int32), b.to(tl.int32))"),
        dot_source("total += tl.dot(a.to(tl.int8), b.to(tl.int8)).to(tl.float32)"),
        "tl.int32",
        {"lhs_dtype": "int32"},
        "Unsupported lhs dtype int32",
    ),
    "accumulator of another type": Case(
        "compile.dot_dtype",
        dot_source("total = tl.dot(a, b, total.to(tl.float16))"),
        DOT,
        "total.to(tl.float16)",
        {"excerpt": "tl.dot(a, b, total.to(tl.float16))"},
        "assert acc.type",
    ),
    "inner extent too small": Case(
        "compile.dot_shape",
        dot_source(k=8),
        dot_source(k=16),
        "tl.dot",
        {"least_k": 16, "block.K": 8},
        "K >= 16",
    ),
    "descriptor's rows too short": Case(
        "compile.alignment",
        DESCRIPTOR.format(columns=2),
        DESCRIPTOR.format(columns=16),
        "source = tl.make_tensor_descriptor",
        {"bytes_needed": 16, "block.COLUMNS": 2},
        "at least 16 bytes in the last dimension",
    ),
    "descriptor's stride, on the host": Case(
        "compile.alignment",
        HOST_DESCRIPTOR.format(stride=1001),
        HOST_DESCRIPTOR.format(stride=1000),
        "TensorDescriptor(x",
        {"bytes_needed": 16},
        "strides must be 16-byte aligned",
    ),
    "a name that is not there": Case(
        "compile.unknown_name",
        add_source("other = tl.fancy_new_operation(at)"),
        add_source("other = tl.exp2(at.to(tl.float32))"),
        "fancy_new_operation",
        {"name": "fancy_new_operation"},
        "has no attribute 'fancy_new_operation'",
    ),
    "a variable whose type changes": Case(
        "compile.loop_type",
        add_source(LOOP.format("")),
        add_source(LOOP.format(".0")),
        "for step in range(n)",
        {"name": "total", "before": "int32"},
        "Loop-carried variable total",
    ),
    "syntax that Triton lacks": Case(
        "compile.syntax_in_kernel",
        add_source("other = lambda value: value"),
        ADD,
        "lambda value",
        {"construct": "Lambda"},
        "unsupported AST node type: Lambda",
    ),
    "an argument left out": Case(
        "compile.host",
        ADD.replace("x, y, out, x.numel(), BLOCK", "x, y, out, BLOCK"),
        ADD,
        "add_kernel[lambda",
        {},
        "missing 1 required positional argument: 'n'",
    ),
    "host code that raises": Case(
        "compile.host",
        add_source(host="x = x.reshape(-1, 3)"),
        add_source(host="x = x.reshape(-1)"),
        "reshape(-1, 3)",
        {},
        "x = x.reshape(-1, 3)",
    ),
    "no Python": Case("compile.host", f"{ADD}\ndef broken(:\n", ADD, "def broken(:", {}, "SyntaxError"),
    "words nobody knows": Case(
        "compile.other",
        add_source("tl.static_assert(BLOCK > 1000, 'too small')"),
        add_source("tl.static_assert(BLOCK > 100, 'too small')"),
        "static_assert",
        {},
        "too small",
    ),
}


@pytest.fixture(scope="module")
def compiled() -> Iterator[Any]:
    with Server("compiler") as server:
        yield compiling(server)


@pytest.mark.parametrize("name", CASES)
def test_a_fault_has_its_check_its_line_and_its_facts(compiled, name: str) -> None:
    case = CASES[name]
    fault = only_fault(compiled(case.source))
    assert fault.check == case.check
    assert case.said in fault.detail
    assert fault.line is not None
    assert case.marked in case.source.splitlines()[fault.line - 1]
    assert {key: fault.facts.get(key) for key in case.facts} == case.facts
    known = {"excerpt", "extent", "elements", "least_k", "limit_bytes", "bytes_needed", "construct", "name", "before"}
    known |= {"lhs_dtype", "rhs_dtype", "owner", *rules.FACTS}
    assert {key for key in fault.facts if not key.startswith("block.")} <= known


def test_every_honest_twin_passes(compiled) -> None:
    twins = {case.twin for case in CASES.values()}
    refused = {twin: result.reason for twin in twins if (result := compiled(twin)).outcome != "passed"}
    assert refused == {}


def test_the_compilers_place_source_and_caret_reach_the_reader(compiled) -> None:
    fault = only_fault(compiled(add_source(block=48)))
    assert fault.detail.splitlines() == [
        "CompilationError: at 2:36:",
        "def add_kernel(x, y, out, n, BLOCK: tl.constexpr):",
        "    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)",
        "                                    ^",
        "arange's range must be a power of 2",
    ]


def test_a_fault_in_a_helper_is_told_at_the_helper(compiled) -> None:
    helper = "@triton.jit\ndef widened(at):\n    return at + tl.fancy(at)\n\n\n"
    source = add_source("other = widened(at)").replace(
        "@triton.jit\ndef add_kernel", f"{helper}@triton.jit\ndef add_kernel"
    )
    fault = only_fault(compiled(source))
    assert fault.check == "compile.unknown_name"
    assert "tl.fancy" in source.splitlines()[(fault.line or 0) - 1]
    assert "other = widened(at)" in fault.detail


def test_a_configuration_without_room_is_pruned_and_the_others_pass(compiled) -> None:
    large = '{"M": 128, "K": 128}, num_warps=8, num_stages=5'
    result = compiled(tuned_source('{"M": 64, "K": 64}', large))
    assert result.outcome == "passed"
    assert [build["kwargs"] for build in result.details["builds"]] == [{"M": 64, "K": 64}]
    assert len(result.notes) == 1
    assert "dot_kernel[M=128, K=128, num_warps=8, num_stages=5]" in result.notes[0]
    assert "Hardware limit: 232448" in result.notes[0]
    nothing_left = compiled(tuned_source(large))
    assert only_fault(nothing_left).check == "compile.shared_memory"


def test_a_configuration_that_would_raise_on_the_card_fails_and_the_others_are_tried(compiled) -> None:
    result = compiled(tuned_source('{"M": 64, "K": 8}', '{"M": 64, "K": 64}'))
    fault = only_fault(result)
    assert (fault.check, fault.facts["block.K"]) == ("compile.dot_shape", 8)
    assert [build["kwargs"]["K"] for build in result.details["builds"]] == [64]


def test_an_entry_point_without_a_kernel_fails(compiled) -> None:
    assert only_fault(compiled("def add(x, y):\n    return (x + y,)\n")).check == "compile.no_launch"


def test_a_kernel_that_fails_behind_a_fallback_fails(compiled) -> None:
    source = add_source(block=48).replace("    add_kernel[", "    try:\n        add_kernel[")
    source = source.replace("    return (out,)", "    except Exception:\n        out = x + y\n    return (out,)")
    assert only_fault(compiled(source)).check == "compile.block_shape"


def test_a_kernel_without_the_targets_instruction_is_left_to_a_person(compiled) -> None:
    wanted = replace(GOAL, instructions=("HGMMA", "HMMA"))
    upcast = dot_source('total = tl.dot(a, b, total, input_precision="ieee")')
    doubtful = compiled(upcast, goal=wanted)
    assert doubtful.outcome == "suspect"
    (fault,) = doubtful.faults
    assert fault.check == "compile.instruction"
    assert "HGMMA or HMMA" in fault.reason
    result = compiled(dot_source(), goal=wanted)
    assert result.outcome == "passed"
    assert result.details["instructions"] == ["HGMMA"]
