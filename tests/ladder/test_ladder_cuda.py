"""A `.cu` builds for the card it names, its launcher is found and called, and nvcc's words reach the reader."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from kernelgen.errors import BadInput  # noqa: E402
from kernelgen.ladder import cuda, selftest  # noqa: E402

needs_nvcc = pytest.mark.skipif(cuda.find_nvcc() is None, reason="no nvcc on this machine")

# the launcher sums on the host, so that its calling convention can be tried without a GPU
SOURCE = """
#include <cstdint>
#include <cuda_runtime.h>

__global__ void add_kernel(const float* x, const float* y, float* out, int64_t n) {
  __shared__ float tile[256];
  int64_t at = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  tile[threadIdx.x] = at < n ? x[at] : 0.0f;
  __syncthreads();
  if (at < n) out[at] = tile[threadIdx.x] + y[at];
}

extern "C" int add(const float* x, const float* y, double scale, int64_t n, float* out, void* stream) {
  if (stream != nullptr || n < 0) return 11;
  for (int64_t i = 0; i < n; i++) out[i] = scale * (x[i] + y[i]);
  return 0;
}
"""


@pytest.fixture(scope="module")
def launcher(tmp_path_factory: pytest.TempPathFactory):
    path = tmp_path_factory.mktemp("cuda") / "g1.cu"
    path.write_text(SOURCE, encoding="utf-8")
    return cuda.load(path, "add", arch="sm_90a")


@needs_nvcc
def test_a_launcher_takes_tensors_floats_and_ints_and_the_stream(launcher) -> None:
    x, y, out = torch.arange(5.0), torch.ones(5), torch.zeros(5)
    launcher(x, y, 0.5, 5, out)
    assert out.tolist() == [0.5, 1.0, 1.5, 2.0, 2.5]


@needs_nvcc
def test_an_error_code_and_a_wrong_argument_raise(launcher) -> None:
    x = torch.arange(10.0)
    with pytest.raises(RuntimeError, match="add returned CUDA error code 11"):
        launcher(x, x, 1.0, -1, x)
    with pytest.raises(BadInput, match="argument 1 is not contiguous"):
        launcher(x, x[::2], 1.0, 5, x)
    with pytest.raises(TypeError, match="argument 2 is a str"):
        launcher(x, x, "1.0", 5, x)


@needs_nvcc
def test_a_cuda_candidate_is_compiled_and_its_launcher_found(candidate) -> None:
    test_file = candidate("def add(x, y):\n    raise AssertionError\n", name="g1_test", dsl="cuda")
    source = test_file.with_name("g1.cu")

    def compiled(text: str) -> selftest.Check:
        source.write_text(text, encoding="utf-8")
        return next(check for check in selftest.checks(source) if check.name == "compile")

    good = compiled(SOURCE)
    assert good.status == "passed", good
    assert good.note.startswith("compiled for sm_90a: 1 kernel; registers up to ")
    assert good.note.endswith("spills 0 B, static shared up to 1024 B")
    unnamed = compiled(SOURCE.replace('extern "C" int add', "int add"))
    assert (unnamed.status, unnamed.note) == (
        "failed",
        'g1.cu has no launcher extern "C" int add(…, void* stream)',
    )
    broken = compiled(SOURCE.replace("out[at] =", "outt[at] ="))
    assert broken.status == "failed"
    assert 'g1.cu(10): error: identifier "outt" is undefined' in broken.note


def test_without_nvcc_the_compile_check_says_how_to_get_it(candidate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "find_nvcc", lambda: None)
    test_file = candidate("add = None\n", name="g1_test", dsl="cuda")
    compiled = next(check for check in selftest.checks(test_file, timeout_s=30) if check.name == "compile")
    assert compiled.status == "not here"
    assert "nvidia-cuda-nvcc" in compiled.note
    with pytest.raises(BadInput, match="needs nvcc"):
        cuda.build(test_file, test_file.with_suffix(".so"), "sm_90a")


def test_nvcc_is_found_by_cuda_home_before_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ("home/bin", "path"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "nvcc").write_text("#!/bin/sh\n")
        (tmp_path / place / "nvcc").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.delenv("CUDA_PATH", raising=False)
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "home"))
    assert cuda.find_nvcc() == tmp_path / "home" / "bin" / "nvcc"
    monkeypatch.delenv("CUDA_HOME")
    assert cuda.find_nvcc() == tmp_path / "path" / "nvcc"


@pytest.mark.gpu
@needs_nvcc
def test_a_kernel_runs_on_the_gpu(tmp_path: Path) -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA GPU")
    text = SOURCE.replace("if (stream != nullptr || n < 0) return 11;", "").replace(
        "for (int64_t i = 0; i < n; i++) out[i] = scale * (x[i] + y[i]);\n  return 0;",
        "add_kernel<<<(n + 255) / 256, 256, 0, (cudaStream_t)stream>>>(x, y, out, n);\n  return cudaGetLastError();",
    )
    (tmp_path / "g1.cu").write_text(text, encoding="utf-8")
    launch = cuda.load(tmp_path / "g1.cu", "add")
    x, y = torch.randn(1000, device="cuda"), torch.randn(1000, device="cuda")
    out = torch.empty_like(x)
    launch(x, y, 1.0, 1000, out)
    assert torch.equal(out, x + y)


def test_an_int_is_64_bits_and_a_float_a_double() -> None:
    assert isinstance(cuda._c_value("add", 0, 3), ctypes.c_int64)
    assert isinstance(cuda._c_value("add", 0, 3.0), ctypes.c_double)
