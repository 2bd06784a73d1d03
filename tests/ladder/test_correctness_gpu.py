"""L2 on a GPU: the naive champions pass on smoke, edge and timed shapes; cheats are refused; CUDA C++ is judged too.

Needs Python, torch, Triton, PyYAML and pytest, nothing else of kernelgen's dependencies.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

pytest.importorskip("torch")
pytest.importorskip("triton")

import torch
from rows_candidates import CHEATS, HONEST, changed, judge

from kernelgen.ladder.correctness import check_correctness
from kernelgen.ladder.server import Server
from kernelgen.ladder.subject import Goal, Subject

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU"),
]
CONF = Path(__file__).parents[2] / "conf" / "target"
CHAMPIONS = Path(__file__).parents[2] / "kernelgen" / "targets" / "champions"
TARGETS = sorted(path.stem for path in CONF.glob("*.yaml") if path.stem != "auto")
# numpy does its work, which reads no GPU memory
CPU_ONLY = {"correctness.ignored_kernel"}

CUDA_ROWS = """\
#include <cuda_runtime.h>
#include <stdint.h>

__global__ void rows_kernel(const float* x, const float* w, double factor, int64_t n, float* y, float* total) {
  __shared__ float partial[128];
  int64_t row = blockIdx.x;
  float sum = 0.0f;
  for (int64_t column = threadIdx.x; column < n; column += blockDim.x) {
    float value = x[row * n + column] * w[column] * (float)factor;
    y[row * n + column] = value;
    sum += value;
  }
  partial[threadIdx.x] = sum;
  __syncthreads();
  for (int half = 64; half > 0; half /= 2) {
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) total[row] = partial[0];
}

extern "C" int rows(const float* x, const float* w, double factor, int64_t t, int64_t n, float* y, float* total,
                    void* stream) {
  rows_kernel<<<(unsigned)t, 128, 0, (cudaStream_t)stream>>>(x, w, factor, n, y, total);
  return (int)cudaGetLastError();
}
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server("gpu") as running:
        yield running


def _champion(name: str) -> Subject:
    target: dict[str, Any] = yaml.safe_load((CONF / f"{name}.yaml").read_text(encoding="utf-8"))
    shapes = target["shapes"]
    specs = [
        tuple((spec["name"], spec["dtype"], spec["shape"]) for spec in target[side]) for side in ("inputs", "outputs")
    ]
    goal = Goal(
        name=name,
        module=target["module"],
        folder=None,
        inputs=specs[0],
        scalars={scalar["name"]: scalar["type"] for scalar in target.get("scalars", ())},
        outputs=specs[1],
        smoke=shapes["smoke"],
        edge=shapes["edge"],
        tune=shapes["tune"],
        heldout=shapes["heldout"],
        kinds=tuple(target["input_kinds"]),
        exact_kinds=tuple(target.get("exact_kinds", ())),
        tolerance={output: (float(t["rtol"]), float(t["atol"])) for output, t in target["tolerance"].items()},
        deterministic=target.get("deterministic", True),
        instructions=(),
        arch="sm_90a",
        compute_capability=90,
        shared_bytes_per_block=232448,
    )
    source = (CHAMPIONS / f"{name}.py").read_text(encoding="utf-8")
    return Subject(name, "python", "triton", source, "", target["entry_point"], goal)


@pytest.mark.parametrize("name", TARGETS)
def test_the_champion_passes_on_smoke_edge_and_timed_shapes(name: str, server: Server) -> None:
    result = check_correctness(_champion(name), server=server, device="cuda", seed=11, timeout_s=300.0)
    assert result.outcome == "passed", [fault.reason for fault in result.faults]
    assert result.environment["gpu"] in result.reason


def test_an_honest_kernel_passes(server: Server) -> None:
    result = judge(HONEST, server, device="cuda")
    assert result.outcome == "passed", result.faults


@pytest.mark.parametrize("name", [name for name in CHEATS if name not in CPU_ONLY])
def test_a_cheat_is_refused(name: str, server: Server) -> None:
    result = judge(CHEATS[name], server, device="cuda")
    assert result.outcome == "failed"
    assert name.partition(" ")[0] in {fault.check for fault in result.faults}, result.faults


def test_cuda_cpp_is_built_called_and_held_to_its_memory(server: Server) -> None:
    cuda = {"language": "cuda", "dsl": "cuda", "device": "cuda"}
    honest = judge(CUDA_ROWS, server, **cuda)
    assert honest.outcome == "passed", honest.faults
    beside = judge(
        changed("total[row] = partial[0];", "total[row] = partial[0], y[-1] = 0.0f;", CUDA_ROWS), server, **cuda
    )
    assert "correctness.guard_band" in {fault.check for fault in beside.faults}
    wrong = judge(changed("column < n;", "column < n - 1;", CUDA_ROWS), server, **cuda)
    assert wrong.faults[0].check == "correctness.uninitialised"
    broken = judge(changed("float sum = 0.0f;", "float sum = 0.0f", CUDA_ROWS), server, **cuda)
    assert broken.outcome == "failed"
    assert "error" in broken.reason
