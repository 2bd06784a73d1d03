"""Times of L1: one Triton configuration in a warm server, and a space of 96 configurations of a GEMM on all cores.

The product is of two 4096-cubed bf16 matrices, compiled for sm_90a in contained children; nothing is compiled twice. A
verdict takes from the call of `compile_candidate` to its result; the server is started, and one passed, before.
"""

from __future__ import annotations

import itertools
import json
import os
import statistics
import time
from pathlib import Path

from kernelgen.ladder.compile import compile_candidate
from kernelgen.ladder.compile.space import prune
from kernelgen.ladder.compile.tried import Config
from kernelgen.ladder.server import Server
from kernelgen.ladder.subject import Goal, Subject

REPEATS = 5
SPACE = {
    "BM": (64, 128, 256),
    "BN": (64, 128),
    "BK": (32, 64),
    "num_warps": (4, 8),
    "num_stages": (2, 3, 4, 5),
}
SOURCE = """\
import torch
import triton
import triton.language as tl


@triton.autotune([triton.Config({{"BM": 128, "BN": 128, "BK": {depth}}}, num_warps=8, num_stages=3)], key=["size"])
@triton.jit
def product_kernel(a_ptr, b_ptr, out_ptr, size, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    inside = (rows[:, None] < size) & (columns[None, :] < size)
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, size, BK):
        left_mask = (rows[:, None] < size) & (k + depth[None, :] < size)
        right_mask = (k + depth[:, None] < size) & (columns[None, :] < size)
        left = tl.load(a_ptr + rows[:, None] * size + k + depth[None, :], mask=left_mask, other=0.0)
        right = tl.load(b_ptr + (k + depth[:, None]) * size + columns[None, :], mask=right_mask, other=0.0)
        total = tl.dot(left, right, total)
    tl.store(out_ptr + rows[:, None] * size + columns[None, :], total.to(tl.bfloat16), mask=inside)


def add(x, y):
    a = torch.empty(4096, 4096, dtype=torch.bfloat16, device=x.device)
    product_kernel[lambda meta: (4096 // meta["BM"], 4096 // meta["BN"])](a, a, torch.empty_like(a), 4096)
    return (torch.empty_like(x),)
"""
GOAL = Goal(
    name="adder",
    module="adder_target.py",
    folder=str(Path(__file__).resolve().parent.parent / "tests" / "ladder"),
    inputs=(("x", "float32", ["N"]), ("y", "float32", ["N"])),
    scalars={},
    outputs=(("out", "float32", ["N"]),),
    smoke={"n_200": {"N": 200}},
    edge={},
    tune={"n_1m": {"N": 1 << 20}},
    heldout={},
    kinds=("plain",),
    exact_kinds=(),
    tolerance={"out": (1e-6, 0.0)},
    deterministic=True,
    instructions=("HGMMA",),
    arch="sm_90a",
    compute_capability=90,
    shared_bytes_per_block=227 * 1024,
)


def subject(depth: int) -> Subject:
    """The product with one configuration of this depth."""
    source = SOURCE.format(depth=depth)
    return Subject("product", "python", "triton", source, preamble="", entry_point="add", goal=GOAL)


def verdict_s(server: Server, depth: int) -> float:
    """Seconds of one L1 of one configuration. Raises RuntimeError where it does not pass."""
    started = time.perf_counter()
    result = compile_candidate(subject(depth), server_for=lambda kind: server, timeout_s=600.0)
    if result.outcome != "passed":
        raise RuntimeError(result.reason)
    return time.perf_counter() - started


def space() -> list[Config]:
    """The 96 configurations."""
    chosen = [dict(zip(SPACE, values, strict=True)) for values in itertools.product(*SPACE.values())]
    return [
        Config("product_kernel", {name: one[name] for name in ("BM", "BN", "BK")}, one["num_warps"], one["num_stages"])
        for one in chosen
    ]


def run() -> dict[str, object]:
    """Measure everything; about a minute."""
    configs = space()
    with Server("compiler") as server:
        started = time.perf_counter()
        verdict_s(server, 32)
        first_s = time.perf_counter() - started
        verdicts = [verdict_s(server, 64) for _ in range(REPEATS)]
        cores = len(os.sched_getaffinity(0))
        started = time.perf_counter()
        tried = list(prune(subject(32), configs, server=server, workers=cores))
        space_s = time.perf_counter() - started
    return {
        "one_config_s": statistics.median(verdicts),
        "one_config_worst_s": max(verdicts),
        "first_verdict_with_start_of_server_s": first_s,
        "configs": len(configs),
        "configs_that_can_run": sum(one.runs for one in tried),
        "configs_s": space_s,
        "cores": cores,
    }


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
