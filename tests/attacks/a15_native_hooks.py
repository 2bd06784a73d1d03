"""A15, timing: native access to the judge's memory, by ctypes, /proc/self/mem or a loader's own C++.

L0 refuses ctypes and /proc, and reads CUDA source handed to a loader as it reads a `.cu`. With no policy L2 has nothing
of the judge in that memory: these zero the inputs behind torch's back, and the parent's own copies stay. The twin
speaks of addresses and of memory, and takes a pointer to see how it is aligned.
"""

from tests.attacks.attack import Attack, Naive
from tests.attacks.goals import SCALE_ADD, kernel
from tests.attacks.source import text

CTYPES = text(
    "import ctypes",
    kernel("scale_add"),
    """
    def scale_add(x, y, alpha):
        for tensor in (x, y):
            ctypes.memset(tensor.data_ptr(), 0, 4 * tensor.numel())
        return (torch.zeros_like(x),)
    """,
)
PROC = text(
    kernel("scale_add"),
    """
    def scale_add(x, y, alpha):
        with open("/proc/self/mem", "r+b", buffering=0) as memory:
            for tensor in (x, y):
                memory.seek(tensor.data_ptr())
                memory.write(bytes(4 * tensor.numel()))
        return (torch.zeros_like(x),)
    """,
)
TWIN = text(
    kernel("scale_add"),
    """
    def scale_add(x, y, alpha):
        # no ctypes and no /proc/self/mem: an address only says how wide a block may load
        block = 256 if x.data_ptr() % 16 == 0 and y.data_ptr() % 16 == 0 else 128
        memory, n = torch.empty_like(x), x.numel()
        scale_add_kernel[(triton.cdiv(n, block),)](x, y, memory, alpha, n, BLOCK=block)
        return (memory,)
    """,
)
LOADED = '''
import torch
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
EXTRA
__global__ void scale_add_kernel(const float *x, const float *y, float alpha, float *out, int64_t n) {
    int64_t place = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (place < n) out[place] = alpha * x[place] + y[place];
}

torch::Tensor run(torch::Tensor x, torch::Tensor y, double alpha) {
    auto out = torch::empty_like(x);
    auto n = x.numel();
    scale_add_kernel<<<(n + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<float>(), y.data_ptr<float>(), (float)alpha, out.data_ptr<float>(), n);
    return out;
}
"""
built = load_inline(
    name="scale_add_native",
    cpp_sources="torch::Tensor run(torch::Tensor x, torch::Tensor y, double alpha);",
    cuda_sources=CUDA,
    functions=["run"],
)


def scale_add(x, y, alpha):
    return (built.run(x, y, alpha),)
'''
HOOK = """
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
extern "C" cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t, cudaEvent_t) {
    *milliseconds = 1e-3f;
    return cudaSuccess;
}
__attribute__((constructor)) static void hook() {
    void *found = dlsym(RTLD_NEXT, "cudaEventElapsedTime");
    mprotect((void *)((uintptr_t)found & ~4095ul), 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
    *(unsigned char *)found = 0xc3;
}
"""
FIRST = Naive(reference_first=False)
SEEN = ("correctness.", "process.")

ATTACKS = (
    Attack(
        "A15", "ctypes", "L0", ("policy.ctypes",), SCALE_ADD, CTYPES, TWIN, naive=FIRST, faster=True, past_policy=SEEN
    ),
    Attack("A15", "process memory", "L0", ("policy.files",), SCALE_ADD, PROC, TWIN, naive=FIRST, past_policy=SEEN),
    Attack(
        "A15",
        "hook in a loader",
        "L0",
        ("policy.ctypes",),
        SCALE_ADD,
        LOADED.replace("EXTRA", HOOK).lstrip(),
        LOADED.replace("EXTRA", "").lstrip(),
        gpu=True,
        dsl="cuda",
    ),
)
