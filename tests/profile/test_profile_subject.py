"""What was profiled: the champion where its kernels ran, what ran instead where they did not."""

from __future__ import annotations

from pathlib import Path

import pytest
from profile_samples import load, metrics, raw_csv

from kernelgen.ids import digest_text
from kernelgen.profile.subject import kernel_names
from kernelgen.profile.table import short_name
from tests.factories import CHAMPION_SOURCE, champion

TRITON = """
import triton
from triton import jit

@triton.autotune(configs=[], key=["T"])
@triton.jit
def one(x): ...

@jit
def two(x): ...

@triton.jit(do_not_specialize=["x"])
def three(x): ...

def host(x): ...
"""
CUDA = """
template <int N>
__global__ void __launch_bounds__(256, 2) first(const float* x) {}
static __global__ void second (int n);
__device__ float helper(float x) { return x; }
extern "C" int entry(void* stream) { return 0; }
"""
TILELANG = """
@tilelang.jit
def build(n):
    @T.prim_func
    def main(x): ...
    return main
"""


@pytest.mark.parametrize(
    ("name", "short"),
    [("void native::vectorized_gather_kernel<16, long>(char *, T2 *)", "vectorized_gather_kernel"),
     ("native::<unnamed>::fill_reverse_indices_kernel(long *, int)", "fill_reverse_indices_kernel"),
     ("void (anonymous namespace)::softmax<float>(float *)", "softmax"), ("gather_kernel", "gather_kernel"),
     ("nvjet_sm90_tst_512x64", "nvjet_sm90_tst_512x64"), ("", "")],
)  # fmt: skip
def test_a_signature_has_a_bare_name(name: str, short: str) -> None:
    assert short_name(name) == short


@pytest.mark.parametrize(
    ("language", "source", "names"),
    [("python", TRITON, {"one", "two", "three"}), ("cuda", CUDA, {"first", "second"}), ("python", "def broken(", set()),
     ("python", TILELANG, {"build", "main", "main_kernel"}), ("python", "x = '\0'", set())],
)  # fmt: skip
def test_a_source_tells_its_kernels_names(language: str, source: str, names: set[str]) -> None:
    assert kernel_names(champion(language=language, source=source)) == names


def profile_subject(tmp_path: Path, *launches: tuple[str, str], **changes: object) -> tuple[str, str | None]:
    path = tmp_path / "p.csv"
    path.write_text(raw_csv(*((name, metrics(time)) for name, time in launches)), encoding="utf-8")
    profile, _ = load(path, **changes)
    return profile.subject, profile.subject_source_digest


def test_the_champions_kernels_make_it_the_subject(tmp_path: Path) -> None:
    found = profile_subject(tmp_path, ("gather_kernel", "80,000.0"), ("gather_kernel", "70,000.0"))
    assert found == ("champion naive: gather_kernel", digest_text(CHAMPION_SOURCE))


def test_launches_beside_the_champions_are_counted(tmp_path: Path) -> None:
    launches = (("gather_kernel", "80,000.0"), ("void at::FillFunctor<int>(int *)", "3,000.0"))
    phrase, digest = profile_subject(tmp_path, *launches, subject="with  cold\nL2")
    assert phrase == "champion naive: gather_kernel and 1 launch of other kernels; with cold L2"
    assert digest == digest_text(CHAMPION_SOURCE)


def test_a_champion_that_takes_the_lesser_part_is_not_the_subject(tmp_path: Path) -> None:
    launches = (("gather_kernel", "8,000.0"), ("void at::native::sort<int>(int *)", "80,000.0"))
    assert profile_subject(tmp_path, *launches) == ("eager PyTorch: 2 launches, the longest sort", None)
    narrowed = profile_subject(tmp_path, *launches, kernels="^gather")
    assert narrowed == ("champion naive: gather_kernel", digest_text(CHAMPION_SOURCE))


@pytest.mark.parametrize(
    ("name", "who"),
    [("void native::topk<float>(float *)", "eager PyTorch"), ("triton_poi_fused_add_0", "compiled PyTorch (Inductor)"),
     ("nvjet_sm90_tst_64x8", "cuBLAS"), ("sm90_xmma_gemm_bf16", "cuBLAS"),
     ("void cub::DeviceScanKernel<int>(int)", "CUB"), ("cudnn_generated_fort_native_sdpa", "cuDNN"),
     ("gather_kernel_v2", "other kernels")],
)  # fmt: skip
def test_what_ran_instead_is_recognised_by_its_names(tmp_path: Path, name: str, who: str) -> None:
    phrase, digest = profile_subject(tmp_path, (name, "80,000.0"))
    assert phrase == f"{who}: 1 launch, the longest {short_name(name)}"
    assert digest is None


def test_names_given_by_the_caller_replace_those_of_the_source(tmp_path: Path) -> None:
    phrase, _ = profile_subject(tmp_path, ("main_kernel", "80,000.0"), champion_kernels={"main_kernel"})
    assert phrase == "champion naive: main_kernel"
