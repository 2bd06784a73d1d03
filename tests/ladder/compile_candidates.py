"""Candidates for the adder target that L1 judges, and the goal they claim."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from kernelgen.ladder.compile import compile_candidate
from kernelgen.ladder.results import Fault, Result
from kernelgen.ladder.server import Server
from kernelgen.ladder.subject import Goal, Subject

HERE = Path(__file__).resolve().parent
SHARED_LIMIT = 232_448
GOAL = Goal(
    name="adder",
    module="adder_target.py",
    folder=str(HERE),
    inputs=(("x", "float32", ["N"]), ("y", "float32", ["N"])),
    scalars={},
    outputs=(("out", "float32", ["N"]),),
    smoke={"n_200": {"N": 200}},
    edge={},
    tune={"n_1m": {"N": 1 << 20}},
    heldout={},
    kinds=("plain", "large"),
    exact_kinds=(),
    tolerance={"out": (1e-6, 0.0)},
    deterministic=True,
    instructions=(),
    arch="sm_90a",
    compute_capability=90,
    shared_bytes_per_block=SHARED_LIMIT,
)
# `line` is one more statement of the kernel, `host` one of the wrapper, `launch` further launch arguments
ADD = """\
import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    {line}
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


def add(x, y):
    {host}
    out = torch.empty_like(x)
    add_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, out, x.numel(), BLOCK={block}{launch})
    return (out,)
"""
DOT = """\
import torch
import triton
import triton.language as tl

{decorator}
@triton.jit
def dot_kernel(x, out, M: tl.constexpr, K: tl.constexpr):
    rows, depth = tl.arange(0, M), tl.arange(0, K)
    total = tl.zeros((M, M), tl.float32)
    for k in range(0, 4096, K):
        a = tl.load(x + rows[:, None] * 4096 + k + depth[None, :])
        b = tl.load(x + (k + depth[:, None]) * 4096 + rows[None, :])
        {line}
    tl.store(out + rows[:, None] * M + rows[None, :], total)


def add(x, y):
    out = torch.empty_like(x)
    dot_kernel[(1,)](x, out{launch})
    return (out,)
"""
DESCRIPTOR = """\
import torch
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x, out, COLUMNS: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [1024, 1024], [1024, 1], [16, COLUMNS])
    sink = tl.make_tensor_descriptor(out, [1024, 1024], [1024, 1], [16, COLUMNS])
    sink.store([0, 0], source.load([0, 0]))


def add(x, y):
    out = torch.empty_like(x)
    copy_kernel[(1,)](x, out, {columns})
    return (out,)
"""
PRODUCT = "total = tl.dot(a.to(tl.bfloat16), b.to(tl.bfloat16), total)"


def add_source(line: str = "pass", *, block: object = 256, launch: str = "", host: str = "pass") -> str:
    """A sum, with something more in kernel, launch or wrapper."""
    return ADD.format(line=line, block=block, launch=launch, host=host)


def dot_source(line: str = PRODUCT, *, m: int = 64, k: int = 64, launch: str = "") -> str:
    """A product of one block, with another product statement, tile or launch."""
    return DOT.format(line=line, decorator="", launch=f", M={m}, K={k}{launch}")


def tuned_source(*configs: str, line: str = PRODUCT) -> str:
    """The same product, autotuned over configurations such as `{"M": 64, "K": 64}, num_stages=3`."""
    listed = ", ".join(f"triton.Config({config})" for config in configs)
    return DOT.format(line=line, decorator=f'\n@triton.autotune([{listed}], key=["x"])', launch="")


def subject_of(source: str, *, dsl: Any = "triton", goal: Goal = GOAL, **further: Any) -> Subject:
    """The candidate that a source is."""
    language: Any = "cuda" if dsl == "cuda" else "python"
    made = Subject("g1", language, dsl, source, preamble="", entry_point="add", goal=goal)
    return replace(made, **further)


def compiling(server: Server, **defaults: Any) -> Callable[..., Result]:
    """L1 of a source, by one server."""

    def compiled(source: str, *, timeout_s: float = 120.0, **further: Any) -> Result:
        subject = subject_of(source, **{**defaults, **further})
        return compile_candidate(subject, server_for=lambda kind: server, timeout_s=timeout_s)

    return compiled


def only_fault(result: Result) -> Fault:
    """The one thing that is wrong."""
    assert result.outcome == "failed", result
    assert len(result.faults) == 1, result.faults
    assert result.reason == result.faults[0].reason
    return result.faults[0]
