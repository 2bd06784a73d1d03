"""An unmodified host wrapper compiles for a card that is not here, and what it would have launched is recorded."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("triton")
pytest.importorskip("torch")

COMPILE = """
import json
from dataclasses import asdict
from kernelgen.errors import KernelgenError
from kernelgen.ladder import interpreter, offline
refused = []
for install in (lambda: offline.install(77), interpreter.install):
    try:
        install()
    except KernelgenError as error:
        refused.append(str(error))
log = offline.install(90, shared_bytes_per_block=200_000, instructions=True)
import torch, triton
import triton.language as tl

@triton.autotune([
    triton.Config({"BLOCK": 64}, num_warps=4, num_stages=2),
    triton.Config({"BLOCK": 128}, num_warps=8, num_stages=8),
], key=["n"], warmup=1, rep=1)
@triton.jit
def product_kernel(a, b, out, n, BLOCK: tl.constexpr, DEPTH: tl.constexpr = 64):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    depth = tl.arange(0, DEPTH)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(0, n, DEPTH):
        left = tl.load(a + rows[:, None] * n + k + depth[None, :])
        right = tl.load(b + (k + depth)[:, None] * n + columns[None, :])
        total = tl.dot(left, right, total)
    tl.store(out + rows[:, None] * n + columns[None, :], total)

@triton.jit
def fill_kernel(out, BLOCK: tl.constexpr):
    tl.store(out + tl.arange(0, BLOCK), 1.0)

a = torch.empty(512, 512, dtype=torch.bfloat16, device="meta")
product_kernel[lambda meta: (triton.cdiv(512, meta["BLOCK"]), 8)](a, a, a.float(), 512)
cpu = torch.zeros(64)
fill_kernel[(3,)](cpu, 64)
fill_kernel.warmup(cpu, BLOCK=32, grid=(1,))
errors = []
try:
    fill_kernel[(1,)](cpu, BLOCK=48)
except Exception as error:
    errors.append(type(error).__name__)
try:
    product_kernel.fn[(1, 1)](a, a, a.float(), 512, BLOCK=128, num_stages=8, num_warps=8)
except triton.OutOfResources as error:
    errors.append(str(error))
print(json.dumps({
    "launches": [asdict(launch) for launch in log.launches],
    "failures": [build.describe() + ": " + build.error for build in log.failures],
    "builds": [asdict(build) for build in log.builds()],
    "errors": errors,
    "refused": refused,
    "contents": cpu.sum().item(),
    "sms": torch.cuda.get_device_properties("cuda").multi_processor_count,
    "driver_sms": triton.runtime.driver.active.utils.get_device_properties(0)["multiprocessor_count"],
}))
"""


@pytest.fixture(scope="module")
def said(run_script) -> dict[str, Any]:
    return run_script(COMPILE)


def test_every_launch_is_recorded_with_grid_and_configuration(said) -> None:
    grids = [(launch["build"]["kernel"], launch["grid"]) for launch in said["launches"]]
    # autotuning tries a configuration, then launches the best
    assert grids == [
        ("product_kernel", [8, 8, 1]),
        ("product_kernel", [8, 8, 1]),
        ("fill_kernel", [3, 1, 1]),
        ("fill_kernel", None),
    ]
    product = said["builds"][0]
    assert product["kwargs"] == {"BLOCK": 64, "DEPTH": 64}
    assert (product["num_warps"], product["num_stages"]) == (4, 2)


def test_resources_and_instructions_are_the_cards(said) -> None:
    product = said["builds"][0]
    assert 32 <= product["registers"] <= 255
    assert product["spills"] == 0
    assert product["shared_bytes"] == 2 * 2 * 64 * 64 * 2  # stages, operands, rows, columns, bytes
    assert product["instructions"]["HGMMA"] > 0
    assert "LDL" not in product["instructions"]
    assert "HGMMA" not in said["builds"][1]["instructions"]


def test_more_shared_memory_than_the_limit_raises_as_on_the_card(said) -> None:
    assert "Hardware limit: 200000" in said["errors"][1]
    assert said["failures"][0].startswith("product_kernel[BLOCK=128, DEPTH=64, num_warps=8, num_stages=8]: OutOfRes")


def test_a_compilers_word_is_kept_with_place_and_reason(said) -> None:
    assert said["errors"][0] == "CompilationError"
    failure = said["failures"][1]
    assert "arange's range must be a power of 2" in failure
    assert "tl.arange(0, BLOCK)" in failure


def test_nothing_runs_and_host_code_learns_the_cards_properties(said) -> None:
    assert said["contents"] == 0.0
    assert said["sms"] == said["driver_sms"] == 132


def test_an_unknown_card_and_an_interpreter_beside_it_are_refused(said) -> None:
    assert said["refused"] == [
        "Compute capability 77 is not known; known: 80, 86, 89, 90, 100, 120.",
        "Set TRITON_INTERPRET=1 before triton is imported: its own functions are bound at import.",
    ]
