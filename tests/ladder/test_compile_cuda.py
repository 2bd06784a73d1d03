"""L1 of CUDA C++: nvcc in containment, kernels read from the device code, the launcher from the library's symbols."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from compile_candidates import HERE, compiling, only_fault

from kernelgen.catalog import Catalog, shipped_conf
from kernelgen.judging.subjects import goal
from kernelgen.ladder.compile import what_is_missing
from kernelgen.ladder.compile.cuda import own_words, plain_name
from kernelgen.ladder.server import Server

pytestmark = pytest.mark.skipif(what_is_missing("cuda") is not None, reason=str(what_is_missing("cuda")))

SOURCE = """\
#include <cstdint>
#include <cuda_runtime.h>

__global__ void add_kernel(const float* x, const float* y, float* out, int64_t n) {
  __shared__ float tile[256];
  int64_t at = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  tile[threadIdx.x] = at < n ? x[at] : 0.0f;
  __syncthreads();
  if (at < n) out[at] = tile[255 - threadIdx.x] + y[at];
}

extern "C" int add(const float* x, const float* y, int64_t N, float* out, void* stream) {
  add_kernel<<<(N + 255) / 256, 256, 0, (cudaStream_t)stream>>>(x, y, out, N);
  return cudaGetLastError();
}
"""


@pytest.fixture(scope="module")
def compiled() -> Iterator[Any]:
    with Server("plain") as server:
        yield compiling(server, dsl="cuda")


def test_kernels_and_their_resources_are_read_from_the_device_code(compiled) -> None:
    result = compiled(SOURCE)
    assert result.outcome == "passed", result.faults
    (build,) = result.details["builds"]
    assert build["kernel"] == "add_kernel"
    assert build["shared_bytes"] == 1024
    assert build["stack_bytes"] == 0
    assert 8 <= build["registers"] <= 64
    assert result.environment["compiler"] == "nvcc"
    assert result.environment["nvcc"].count(".") == 2


@pytest.mark.parametrize(
    ("change", "check", "said", "line"),
    [
        (("out[at] =", "outt[at] ="), "compile.unknown_name", 'identifier "outt" is undefined', 9),
        (("tile[256]", "tile[65536]"), "compile.shared_memory", "uses too much shared data", None),
        (('extern "C" int add', "int add"), "compile.launcher", 'without extern "C"', None),
        (("int add(", "int added("), "compile.launcher", 'define extern "C" int add(', None),
        (("return cudaGetLastError();", "return cudaGetLastError()"), "compile.other", 'expected a ";"', 15),
    ],
)
def test_a_fault_has_its_check_and_nvccs_own_words(compiled, change, check: str, said: str, line: int | None) -> None:
    fault = only_fault(compiled(SOURCE.replace(*change)))
    assert (fault.check, fault.line) == (check, line)
    assert said in fault.reason + fault.detail
    if check == "compile.shared_memory":
        assert fault.facts["shared_bytes"] == 4 * 65536
        assert fault.facts["limit_bytes"] == 232_448
    if line is not None:
        assert SOURCE.replace(*change).splitlines()[line - 1] in fault.detail or "^" in fault.detail


def test_a_source_without_a_kernel_launches_nothing(compiled) -> None:
    fault = only_fault(compiled('extern "C" int add(void* stream) { return 0; }\n'))
    assert fault.check == "compile.no_launch"


@pytest.mark.parametrize("include", ["/etc/passwd", "/proc/self/environ", f"{HERE}/adder_target.py"])
def test_an_include_of_someone_elses_file_brings_nothing_to_light(compiled, include: str) -> None:
    told = json.dumps(compiled(f'#include "{include}"\n{SOURCE}').as_dict())
    for secret in ("root:", "PATH=", "KIND_SCALES", "A target for the tests"):
        assert secret not in told


def test_words_about_foreign_files_are_left_out_and_the_candidates_are_whole() -> None:
    said = (
        'candidate.cu(3): error: identifier "a" is undefined\n    a = 1;\n    ^\n\n'
        "/home/someone/secret.txt(1): error: this declaration has no storage class\n  hunter2\n  ^\n\n"
        "/usr/include/stdio.h(9): note: declared here\n  int puts;\n"
        "ptxas fatal   : stopped\n"
    )
    kept = own_words(said, Path("/opt/toolkit/bin/nvcc"))
    assert "hunter2" not in kept
    assert "/home/someone/secret.txt: (lines of a file" in kept
    assert all(line in kept for line in ("    a = 1;", "    ^", "  int puts;", "ptxas fatal   : stopped"))


def test_kernels_are_named_without_mangling() -> None:
    assert plain_name("_Z10add_kernelPKfS0_") == "add_kernel"
    assert plain_name("_ZN5inner10add_kernelEPf") == "inner::add_kernel"
    assert plain_name("_Z1bILi64EEvPfi") == "b"
    assert plain_name("add_kernel") == "add_kernel"


def test_our_own_candidate_for_moe_combine_passes(compiled) -> None:
    catalog = Catalog([shipped_conf()])
    target, _ = catalog.target("moe_combine")
    source = (HERE / "own_candidates" / "moe_combine_cuda.cu").read_text(encoding="utf-8")
    asked = goal(target, catalog.hardware("h200"), target.module, None)
    result = compiled(source, goal=asked, entry_point=target.entry_point)
    assert result.outcome == "passed", result.faults
    assert [(build["kernel"], build["stack_bytes"]) for build in result.details["builds"]] == [("combine_kernel", 0)]
