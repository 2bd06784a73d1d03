"""Candidates for the policy's tests: a small target, and sources around a few lines that matter."""

# ruff: noqa: E501 - a snippet's lines are as long as a candidate's
from __future__ import annotations

import textwrap
from typing import Literal

from kernelgen.ladder.policy import examine
from kernelgen.ladder.results import Result
from kernelgen.ladder.subject import Goal, Subject

GOAL = Goal(
    name="scaled",
    module="scaled_target.py",
    folder=None,
    inputs=(
        ("x", "bfloat16", ["M", "K"]),
        ("w", "bfloat16", ["K", "N"]),
        ("seqlens", "int32", ["M"]),
    ),
    scalars={"eps": "float"},
    outputs=(("out", "bfloat16", ["M", "N"]), ("sums", "float32", ["M"])),
    smoke={"tiny": {"M": 4, "K": 16, "N": 32}},
    edge={},
    tune={"big": {"M": 4096, "K": 7168, "N": 512}},
    heldout={},
    kinds=("plain",),
    exact_kinds=(),
    tolerance={"out": (1e-2, 1e-2), "sums": (1e-3, 1e-3)},
    deterministic=True,
    instructions=(),
    arch="sm_90a",
    compute_capability=90,
    shared_bytes_per_block=232_448,
)
TRITON = """\
import torch
import triton
import triton.language as tl

BLOCK = 128


@triton.jit
def kernel(x_ptr, w_ptr, seqlens_ptr, out_ptr, sums_ptr, M, K, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for k in range(0, K, BLOCK):
        value = tl.load(x_ptr + row * K + k + cols, mask=k + cols < K, other=0.0).to(tl.float32)
        total += value * tl.load(w_ptr + (k + cols) * N, mask=k + cols < K, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * N + cols, total.to(tl.bfloat16), mask=cols < N)
    tl.store(sums_ptr + row, total.sum(axis=0) / (eps + tl.max(total, axis=0)))

"""
ALLOCATE = """\
    M, K = x.shape
    N = w.shape[1]
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    sums = torch.empty((M,), dtype=torch.float32, device=x.device)
"""
LAUNCH = "    kernel[(M,)](x, w, seqlens, out, sums, M, K, N, eps, BLOCK=BLOCK)\n"
HOST = f"def run(x, w, seqlens, eps):\n{ALLOCATE}{LAUNCH}    return out, sums\n"
CUDA_KERNEL = """\
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <cstdint>

__global__ void kernel(const __nv_bfloat16* x, const __nv_bfloat16* w, __nv_bfloat16* out, float* sums, int64_t M, int64_t K,
                       int64_t N, float eps) {
  int64_t row = blockIdx.x;
  float total = 0.f;
  for (int64_t k = threadIdx.x; k < K; k += blockDim.x) total += __bfloat162float(x[row * K + k]) * __bfloat162float(w[k * N]);
  out[row * N + threadIdx.x] = __float2bfloat16(total);
  if (threadIdx.x == 0) sums[row] = total / eps;
}
"""
CUDA_LAUNCHER = """\
extern "C" int run(const void* x, const void* w, const int* seqlens, double eps, int64_t M, int64_t K, int64_t N,
                   void* out, void* sums, void* stream) {
BEFORE
  kernel<<<M, 128, 0, static_cast<cudaStream_t>(stream)>>>(
      static_cast<const __nv_bfloat16*>(x), static_cast<const __nv_bfloat16*>(w), static_cast<__nv_bfloat16*>(out),
      static_cast<float*>(sums), M, K, N, static_cast<float>(eps));
AFTER
  return static_cast<int>(cudaGetLastError());
}
"""


def subject(
    source: str,
    *,
    language: Literal["python", "cuda"] = "python",
    entry_point: str = "run",
    goal: Goal = GOAL,
    preamble: str = "",
) -> Subject:
    """A candidate of that source."""
    dsl: Literal["triton", "cuda"] = "cuda" if language == "cuda" else "triton"
    return Subject("candidate", language, dsl, source, preamble, entry_point, goal)


def host(lines: str, *, launch: str = LAUNCH, result: str = "out, sums", top: str = "") -> str:
    """A Triton candidate with these lines in its host function, between allocation and launch."""
    body = textwrap.indent(textwrap.dedent(lines).strip("\n"), "    ")
    above = textwrap.dedent(top).strip("\n")
    start = f"{TRITON}\n{above}\n\n\ndef run(x, w, seqlens, eps):\n{ALLOCATE}"
    return f"{start}{body}\n{launch}    return {result}\n"


def cuda(before: str = "", *, after: str = "", top: str = "", kernel: str = CUDA_KERNEL) -> str:
    """A CUDA C++ candidate with these lines before and after its launch, and others above the launcher."""
    launcher = CUDA_LAUNCHER.replace("BEFORE", before).replace("AFTER", after)
    return f"{kernel}\n{top}\n{launcher}"


def judged(source: str, *, language: Literal["python", "cuda"] = "python", **options: object) -> Result:
    """What the policy says of a source."""
    return examine(subject(source, language=language), **options)  # type: ignore[arg-type]


def told(result: Result) -> str:
    """The faults in lines, for a failing test."""
    return "\n".join(f"{fault.check} {fault.reason}\n{fault.detail}" for fault in result.faults)
