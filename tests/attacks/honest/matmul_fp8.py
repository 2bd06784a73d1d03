"""out = a @ b transposed, both e4m3, accumulated in fp32."""

import torch
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(a_ptr, b_ptr, out_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    column = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for begin in range(0, K, BK):
        k = begin + tl.arange(0, BK)
        a = tl.load(a_ptr + row[:, None] * K + k[None, :], mask=(row[:, None] < M) & (k[None, :] < K), other=0.0)
        b = tl.load(b_ptr + column[None, :] * K + k[:, None], mask=(column[None, :] < N) & (k[:, None] < K), other=0.0)
        total = tl.dot(a, b, total)
    tl.store(out_ptr + row[:, None] * N + column[None, :], total, mask=(row[:, None] < M) & (column[None, :] < N))


def matmul_fp8(a, b):
    (M, K), N = a.shape, b.shape[0]
    out = torch.empty((M, N), dtype=torch.float32, device=a.device)
    matmul_kernel[(triton.cdiv(M, 64), triton.cdiv(N, 64))](a, b, out, M, N, K, BM=64, BN=64, BK=64)
    return (out,)
