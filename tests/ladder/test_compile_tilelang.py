"""L1 of TileLang: lowered and compiled for a card that is not here, and reported as it is launched."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("tilelang")

from compile_candidates import GOAL, HERE, compiling, only_fault

from kernelgen.catalog import Catalog, shipped_conf
from kernelgen.judging.subjects import goal
from kernelgen.ladder.compile import what_is_missing
from kernelgen.ladder.server import Server

pytestmark = pytest.mark.skipif(what_is_missing("tilelang") is not None, reason=str(what_is_missing("tilelang")))

PRODUCT = """\
import tilelang
import tilelang.language as T
import torch


@tilelang.jit(out_idx=[-1])
def product(N, BLOCK={block}, STAGES={stages}, DEPTH={depth}, dtype="bfloat16"):
    @T.prim_func
    def product_kernel(A: T.Tensor((N, N), dtype), B: T.Tensor((N, N), dtype), C: T.Tensor((N, N), dtype)):
        with T.Kernel(T.ceildiv(N, BLOCK), T.ceildiv(N, BLOCK), threads=128) as (bx, by):
            left = T.alloc_shared((BLOCK, DEPTH), dtype)
            right = T.alloc_shared((DEPTH, BLOCK), dtype)
            total = T.alloc_fragment((BLOCK, BLOCK), "float32")
            T.clear(total)
            for k in T.Pipelined(T.ceildiv(N, DEPTH), num_stages=STAGES):
                T.copy(A[by * BLOCK, k * DEPTH], left)
                T.copy(B[k * DEPTH, bx * BLOCK], right)
                T.gemm({operands}, total)
            T.copy(total, C[by * BLOCK, bx * BLOCK])

    return product_kernel


def add(x, y):
    a = torch.empty((1024, 1024), dtype=torch.bfloat16, device="cuda")
    out = product(1024)(a, a)
    assert out.shape == (1024, 1024) and out.is_cuda
    return (torch.empty_like(x),)
"""


def source(*, block: int = 128, stages: int = 2, depth: int = 64, operands: str = "left, right") -> str:
    return PRODUCT.format(block=block, stages=stages, depth=depth, operands=operands)


@pytest.fixture(scope="module")
def compiled() -> Iterator[Any]:
    with Server("tilelang") as server:
        yield compiling(server, dsl="tilelang")


def test_a_product_has_the_cards_instructions_and_its_shared_memory(compiled) -> None:
    result = compiled(source(), goal=replace(GOAL, instructions=("HGMMA",)))
    assert result.outcome == "passed", result.faults
    (build,) = result.details["builds"]
    assert build["kernel"] == "product_kernel"
    assert build["shared_bytes"] >= 2 * 2 * 128 * 64 * 2  # stages, operands, rows, columns, bytes
    assert build["instructions"]["HGMMA"] > 0
    assert build["instructions"]["UTMALDG"] > 0
    assert result.environment["compiler"] == "tilelang"
    assert result.environment["compiler_version"] == result.environment["tilelang"]


def test_more_shared_memory_than_a_block_has_is_refused_before_a_gpu_sees_it(compiled) -> None:
    fault = only_fault(compiled(source(stages=8)))
    assert fault.check == "compile.shared_memory"
    assert fault.facts["limit_bytes"] == 232_448
    assert (fault.facts["block.BLOCK"], fault.facts["block.STAGES"]) == (128, 8)
    assert int(fault.facts["shared_bytes"]) > 232_448
    assert fault.line is not None
    assert "product(1024)(a, a)" in source().splitlines()[fault.line - 1]


def test_a_tuner_tries_every_configuration_and_leaves_out_what_has_no_room(compiled) -> None:
    configs = "[{'BLOCK': 64}, {'BLOCK': 128}, {'BLOCK': 128, 'STAGES': 8}]"
    tuned = source().replace("@tilelang.jit", f"@tilelang.autotune(configs={configs})\n@tilelang.jit")
    result = compiled(tuned)
    assert result.outcome == "passed", result.faults
    assert [build["kwargs"]["BLOCK"] for build in result.details["builds"]] == [64, 128]
    assert len(result.notes) == 1
    assert "STAGES=8" in result.notes[0]


def test_tilelangs_assertion_and_its_line_reach_the_reader(compiled) -> None:
    fault = only_fault(compiled(source(operands="left, left")))
    assert fault.check == "compile.dot_shape"
    assert "T.gemm" in fault.detail
    assert "T.gemm" in source().splitlines()[(fault.line or 0) - 1]


def test_what_the_lowering_refuses_is_told_in_its_words(compiled) -> None:
    fault = only_fault(compiled(source(block=100)))
    assert fault.check.startswith("compile.")
    assert "100" in fault.detail


def test_our_own_candidate_for_moe_combine_passes(compiled) -> None:
    catalog = Catalog([shipped_conf()])
    target, _ = catalog.target("moe_combine")
    text = (HERE / "own_candidates" / "moe_combine_tilelang.py").read_text(encoding="utf-8")
    asked = goal(target, catalog.hardware("h200"), target.module, None)
    result = compiled(text, goal=asked, entry_point=target.entry_point)
    assert result.outcome == "passed", result.faults
    calls = {build["kernel"]: build["calls"] for build in result.details["builds"]}
    assert calls["combine_plain_kernel"] == ("t64", "t1024", "t4096")
    assert calls["combine_shared_kernel"] == ("t4096_shared",)
