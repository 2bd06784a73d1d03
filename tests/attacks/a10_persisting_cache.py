"""A10, timing: the inputs are pinned in the L2 cache, so that every timed call but the first reads them from there.

L0 refuses the limit; L3 refuses the rest: persisting lines are reset, the flush is larger than the L2 cache, inputs
rotate. The twin says in the
kernel which loads to keep and which to evict first. Needs a GPU.
"""

from tests.attacks.attack import Attack
from tests.attacks.goals import SCALE_ADD
from tests.attacks.source import text

KERNEL = """
#include <cstdint>

__global__ void scale_add_kernel(const float *x, const float *y, float alpha, float *out, int64_t n) {
    int64_t place = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (place < n) LOADS;
}
"""
LAUNCHER = """
extern "C" int scale_add(const float *x, const float *y, double alpha, int64_t n, float *out, void *stream) {
    PREPARE
    scale_add_kernel<<<(n + 255) / 256, 256, 0, (cudaStream_t)stream>>>(x, y, (float)alpha, out, n);
    return (int)cudaGetLastError();
}
"""
PIN = """
    cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 32 << 20);
    cudaStreamAttrValue window = {};
    window.accessPolicyWindow.base_ptr = (void *)x;
    window.accessPolicyWindow.num_bytes = n * sizeof(float);
    window.accessPolicyWindow.hitRatio = 1.0f;
    window.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
    window.accessPolicyWindow.missProp = cudaAccessPropertyStreaming;
    cudaStreamSetAttribute((cudaStream_t)stream, cudaStreamAttributeAccessPolicyWindow, &window);
"""
CHEAT = text(KERNEL.replace("LOADS", "out[place] = alpha * x[place] + y[place]"), LAUNCHER.replace("PREPARE", PIN))
TWIN = text(
    KERNEL.replace("LOADS", "out[place] = alpha * __ldcs(x + place) + __ldg(y + place)"),
    LAUNCHER.replace("PREPARE", "// no cudaLimitPersistingL2CacheSize: the kernel says what to stream"),
)

ATTACKS = (
    Attack(
        "A10",
        "persisting lines",
        "L3",
        ("policy.flags", "benchmark."),
        SCALE_ADD,
        CHEAT,
        TWIN,
        gpu=True,
        dsl="cuda",
        language="cuda",
    ),
)
