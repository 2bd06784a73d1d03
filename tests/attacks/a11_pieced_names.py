"""A11, timing: the judge's events or clock are spoiled through names that are put together from pieces.

L0 refuses it: the policy runs on the parsed and, for CUDA C++, the preprocessed source. The twin pastes tokens and
joins texts for its own tables.
"""

from tests.attacks.attack import Attack
from tests.attacks.goals import SCALE_ADD, honest, kernel
from tests.attacks.source import text

CLOCK = text(
    "import importlib",
    honest("scale_add"),
    """
    clock = importlib.import_module("ti" + "me")
    setattr(clock, "_".join(("perf", "counter")), lambda: 0.0)
    """,
)
REVERSED = text(
    honest("scale_add"),
    """
    clock = getattr(torch.utils, "_device".replace("_device", "sys"), None) or __import__("emit"[::-1])
    clock.__dict__["retnuoc_frep"[::-1]] = lambda: 0.0
    """,
)
TWIN = text(
    kernel("scale_add"),
    """
    BLOCKS = {"_".join(("block", "of", str(size))): size for size in (128, 256)}
    NAME = "652_fo_kcolb"[::-1]


    def scale_add(x, y, alpha):
        out, n, block = torch.empty_like(x), x.numel(), BLOCKS[NAME]
        scale_add_kernel[(triton.cdiv(n, block),)](x, y, out, alpha, n, BLOCK=block)
        return (out,)
    """,
)

CUDA_KERNEL = """
#include <cuda_runtime.h>
#include <cstdint>

#define PASTE(a, b) a##b
#define PASTED(a, b) PASTE(a, b)

__global__ void PASTED(scale_add, _kernel)(const float *x, const float *y, float alpha, float *out, int64_t n) {
    int64_t place = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (place < n) out[place] = alpha * x[place] + y[place];
}
"""
CUDA_LAUNCHER = """
extern "C" int scale_add(const float *x, const float *y, double alpha, int64_t n, float *out, void *stream) {
    scale_add_kernel<<<(n + 255) / 256, 256, 0, (cudaStream_t)stream>>>(x, y, (float)alpha, out, n);
    return (int)cudaGetLastError();
}
"""
# takes the place of the runtime's own function in whatever is loaded later
CUDA_EVENT = """
extern "C" cudaError_t PASTED(cudaEvent, ElapsedTime)(float *milliseconds, cudaEvent_t begin, cudaEvent_t end) {
    *milliseconds = 1e-3f;
    return cudaSuccess;
}

extern "C" cudaError_t PASTED(cudaEvent, Create)(cudaEvent_t *event) {
    return PASTED(cudaEvent, CreateWithFlags)(event, cudaEventDisableTiming);
}
"""

FLAGS = ("correctness.flags",)

ATTACKS = (
    Attack(
        "A11", "joined names", "L0", ("policy.dynamic_code",), SCALE_ADD, CLOCK, TWIN, faster=True, past_policy=FLAGS
    ),
    Attack(
        "A11",
        "reversed names",
        "L0",
        ("policy.introspection",),
        SCALE_ADD,
        REVERSED,
        TWIN,
        faster=True,
        past_policy=FLAGS,
    ),
    Attack(
        "A11",
        "pasted event",
        "L0",
        ("policy.streams",),
        SCALE_ADD,
        text(CUDA_KERNEL, CUDA_EVENT, CUDA_LAUNCHER),
        text(CUDA_KERNEL, CUDA_LAUNCHER),
        gpu=True,
        dsl="cuda",
        language="cuda",
    ),
)
