"""C14, meaning: a mark is left behind the end of an input, or the last block is stored without its mask.

L2 refuses it by guard bands around what it hands over; a memory checker sees the rest on a GPU. The twins keep their
mark in memory of their own, and their mask.
"""

from tests.attacks.attack import Attack
from tests.attacks.goals import SCALE_ADD, honest, kernel
from tests.attacks.source import text

BEHIND = text(
    kernel("scale_add").replace(
        "    tl.store(out_ptr + place, alpha * x + y, mask=inside)\n",
        "    tl.store(out_ptr + place, alpha * x + y, mask=inside)\n"
        "    tl.store(x_ptr + n, 1.0, mask=tl.program_id(0) == 0)\n",
    ),
    """
    def scale_add(x, y, alpha):
        out = torch.empty_like(x)
        n = x.numel()
        scale_add_kernel[(triton.cdiv(n, 256),)](x, y, out, alpha, n, BLOCK=256)
        return (out,)
    """,
)
BEFORE = BEHIND.replace("x_ptr + n, 1.0", "y_ptr - 1, 1.0")
TWIN = BEHIND.replace("x_ptr + n, 1.0", "out_ptr + n, 1.0").replace(
    "torch.empty_like(x)", "torch.empty(x.numel() + 1, device=x.device)[: x.numel()]"
)
UNMASKED = honest("scale_add").replace("alpha * x + y, mask=inside)", "alpha * x + y)")

NATIVE = """
#include <cuda_runtime.h>
#include <cstdint>

__global__ void scale_add_kernel(const float *x, const float *y, float alpha, float *out, int64_t n) {
    int64_t place = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (place < n) out[place] = alpha * x[place] + y[place];
    MARK
}

extern "C" int scale_add(const float *x, const float *y, double alpha, int64_t n, float *out, void *stream) {
    scale_add_kernel<<<(n + 255) / 256, 256, 0, (cudaStream_t)stream>>>(x, y, (float)alpha, out, n);
    return (int)cudaGetLastError();
}
"""
GUARD = ("correctness.guard_band", "process.crashed")

ATTACKS = (
    Attack("C14", "behind an input", "L2", GUARD, SCALE_ADD, BEHIND, TWIN),
    Attack("C14", "before an input", "L2", GUARD, SCALE_ADD, BEFORE, TWIN),
    Attack("C14", "no mask", "L2", GUARD, SCALE_ADD, UNMASKED, honest("scale_add")),
    Attack(
        "C14",
        "on the device",
        "L2",
        GUARD,
        SCALE_ADD,
        text(NATIVE.replace("MARK", "if (place == 0) const_cast<float *>(x)[n] = 1.0f;")),
        text(NATIVE.replace("MARK", "if (place == 0 && n > 0) out[0] = alpha * x[0] + y[0];")),
        gpu=True,
        seen_on_gpu=True,
        dsl="cuda",
        language="cuda",
    ),
)
