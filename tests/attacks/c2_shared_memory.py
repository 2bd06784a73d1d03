"""C2, meaning: more shared memory than a block has, or shared memory that is read before it is written.

L1 refuses the first by the compiler's figure, which the interpreter does not know; the second needs a GPU: repeats are
compared, and a memory checker looks. The twins stay under the limit, and write before they read.
"""

from tests.attacks.attack import Attack
from tests.attacks.goals import LARGE_SCALE_ADD, MATMUL, kernel
from tests.attacks.source import text

OVER = text(
    kernel("matmul"),
    """
    def matmul(a, b):
        (M, K), N = a.shape, b.shape[1]
        out = torch.empty((M, N), dtype=torch.float32, device=a.device)
        grid = (triton.cdiv(M, 256), triton.cdiv(N, 128))
        matmul_kernel[grid](a, b, out, M, N, K, BM=256, BN=128, BK=128, num_warps=8, num_stages=4)
        return (out,)
    """,
)
UNDER = OVER.replace("num_stages=4", "num_stages=2")

SHARED = """
#include <cuda_runtime.h>
#include <cstdint>

__global__ void scale_add_kernel(const float *x, const float *y, float alpha, float *out, int64_t n) {
    __shared__ float kept[256];
    int64_t place = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    WRITE
    __syncthreads();
    if (place < n) out[place] = alpha * x[place] + y[place] + (kept[threadIdx.x] == 0.5f ? 1.0f : 0.0f);
}

extern "C" int scale_add(const float *x, const float *y, double alpha, int64_t n, float *out, void *stream) {
    scale_add_kernel<<<(n + 255) / 256, 256, 0, (cudaStream_t)stream>>>(x, y, (float)alpha, out, n);
    return (int)cudaGetLastError();
}
"""

ATTACKS = (
    Attack("C2", "over the limit", "L1", ("compile.shared_memory",), MATMUL, OVER, UNDER),
    Attack(
        "C2",
        "read before written",
        "L2",
        ("correctness.", "process."),
        LARGE_SCALE_ADD,
        text(SHARED.replace("WRITE", "")),
        text(SHARED.replace("WRITE", "kept[threadIdx.x] = 1.0f;")),
        gpu=True,
        seen_on_gpu=True,
        dsl="cuda",
        language="cuda",
    ),
)
