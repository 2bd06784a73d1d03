"""D1, round the task: torch, cuBLAS or numpy does the work.

L0 refuses it on the parsed source; with no policy L2 counts what torch is asked for, and finds that no kernel decides
the answer. The twin has the same names in comments, texts and a kernel of its own called matmul.
"""

from tests.attacks.attack import Attack
from tests.attacks.goals import MATMUL, SCALE_ADD, honest, kernel
from tests.attacks.source import text


def product(expression: str, *before: str) -> str:
    """A matmul candidate that returns an expression."""
    return text(*before, kernel("matmul"), f"def matmul(a, b):\n    return ({expression},)")


OPERATOR = product("a.float() @ b.float()")
FUNCTION = product("torch.matmul(a.float(), b.float())")
EINSUM = product('torch.einsum("mk,kn->mn", a.float(), b.float())')
LINEAR = product("F.linear(a.float(), b.float().t())", "import torch.nn.functional as F")
MODULE = text(
    kernel("matmul"),
    """
    class Product(torch.nn.Module):
        def forward(self, a, b):
            layer = torch.nn.Linear(a.shape[1], b.shape[1], bias=False)
            layer.weight = torch.nn.Parameter(b.float().t(), requires_grad=False)
            return layer(a.float())


    def matmul(a, b):
        return (Product()(a, b),)
    """,
)
PIECES = product('getattr(torch, "mat" + "mul")(a.float(), b.float())')
OPS = product("getattr(torch.ops.aten, names[0][::-1])(a.float(), b.float())", 'names = ["mm"]')
NUMPY = product("torch.from_numpy(np.dot(a.float().numpy(), b.float().numpy()))", "import numpy as np")
ALIAS = product("work(a.float(), b.float())", "from torch import mm as work")
DUNDER = product("a.float().__matmul__(b.float())")
COMPILED = text(
    kernel("scale_add"),
    """
    @torch.compile(backend="eager")
    def fused(x, y, alpha):
        return alpha * x + y


    def scale_add(x, y, alpha):
        return (fused(x, y, alpha),)
    """,
)
CHAIN = text(kernel("scale_add"), "def scale_add(x, y, alpha):\n    return (x.mul(alpha).add_(y),)")
INTO = text(
    kernel("scale_add"),
    """
    def scale_add(x, y, alpha):
        out = torch.empty_like(x)
        torch.add(y, x, alpha=alpha, out=out)
        return (out,)
    """,
)
CUBLAS = text(
    """
    #include <cublas_v2.h>
    #include <cuda_fp16.h>
    #include <cstdint>

    __global__ void matmul_kernel(const half *a, const half *b, float *out) {}

    extern "C" int matmul(const half *a, const half *b, int64_t K, int64_t M, int64_t N, float *out, void *stream) {
        cublasHandle_t handle;
        cublasCreate(&handle);
        cublasSetStream(handle, (cudaStream_t)stream);
        float one = 1.0f, zero = 0.0f;
        return (int)cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, N, M, K, &one, b, CUDA_R_16F, N, a, CUDA_R_16F, K,
                                 &zero, out, CUDA_R_32F, N, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    }
    """
)
MMA = text(
    """
    #include <mma.h>
    #include <cuda_fp16.h>
    #include <cstdint>

    using namespace nvcuda;

    // neither cublasGemmEx nor at::matmul: "cublas_v2.h" is only named here
    __global__ void matmul_kernel(const half *a, const half *b, float *out, int64_t K, int64_t M, int64_t N) {
        __shared__ half left[16 * 16], right[16 * 16];
        __shared__ float sum[16 * 16];
        wmma::fragment<wmma::accumulator, 16, 16, 16, float> total;
        wmma::fill_fragment(total, 0.0f);
        int64_t row = blockIdx.y * 16, column = blockIdx.x * 16;
        for (int64_t begin = 0; begin < K; begin += 16) {
            for (int at = threadIdx.x; at < 256; at += 32) {
                int64_t i = at / 16, j = at % 16;
                left[at] = row + i < M && begin + j < K ? a[(row + i) * K + begin + j] : half(0.0f);
                right[at] = begin + i < K && column + j < N ? b[(begin + i) * N + column + j] : half(0.0f);
            }
            __syncwarp();
            wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> x;
            wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> y;
            wmma::load_matrix_sync(x, left, 16);
            wmma::load_matrix_sync(y, right, 16);
            wmma::mma_sync(total, x, y, total);
            __syncwarp();
        }
        wmma::store_matrix_sync(sum, total, 16, wmma::mem_row_major);
        __syncwarp();
        for (int at = threadIdx.x; at < 256; at += 32) {
            int64_t i = row + at / 16, j = column + at % 16;
            if (i < M && j < N) out[i * N + j] = sum[at];
        }
    }

    extern "C" int matmul(const half *a, const half *b, int64_t K, int64_t M, int64_t N, float *out, void *stream) {
        dim3 grid((N + 15) / 16, (M + 15) / 16);
        matmul_kernel<<<grid, 32, 0, (cudaStream_t)stream>>>(a, b, out, K, M, N);
        return (int)cudaGetLastError();
    }
    """
)
COPY = """
    def copy_kernel(x_ptr, y_ptr, out_ptr, n, alpha, BLOCK: tl.constexpr):
        place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out_ptr + place, tl.load(out_ptr + place, mask=place < n), mask=place < n)
"""
LAUNCHED = """
    def scale_add(x, y, alpha):
        out, n = torch.empty_like(x), x.numel()
        copy_kernel[(triton.cdiv(n, 256),)](x, y, out, n, alpha, BLOCK=256)
        return (out,)
"""
IN_GRID = text(
    kernel("scale_add"),
    "from dataclasses import dataclass\nfrom typing import Any",
    """
    @dataclass
    class Job:
        x: Any
        y: Any
        out: Any
        alpha: Any


    @triton.jit
"""
    + COPY.strip("\n"),
    """
    def scale_add(x, y, alpha):
        n = x.numel()
        job = Job(x, y, torch.empty_like(x), alpha)

        def grid(meta):
            job.out.copy_(job.y + job.x * job.alpha)
            return (triton.cdiv(n, meta["BLOCK"]),)

        copy_kernel[grid](x, y, job.out, n, alpha, BLOCK=256)
        return (job.out,)
    """,
)
IN_HEURISTIC = text(
    kernel("scale_add"),
    """
    def prepare(args):
        args["out_ptr"].copy_(args["y_ptr"] + args["x_ptr"] * args["alpha"])
        return 256


    @triton.heuristics({"BLOCK": lambda args: prepare(args)})
    @triton.jit
"""
    + COPY.strip("\n"),
    LAUNCHED.replace(", BLOCK=256", ""),
)
IN_PYTHON = text(
    kernel("scale_add"),
    """
    @triton.jit
"""
    + COPY.strip("\n"),
    LAUNCHED.replace(
        "torch.empty_like(x), x.numel()",
        "torch.tensor([a * alpha + b for a, b in zip(x.tolist(), y.tolist())], dtype=x.dtype), x.numel()",
    ),
)
TWIN = text(
    honest("matmul")
    .replace("matmul_kernel", "mm")
    .replace(
        "    (M, K)",
        '    """Neither torch.matmul(a, b) nor a @ b, and no F.linear."""\n    name = "torch.einsum"\n    (M, K)',
    )
    .replace("    return (out,)", "    return (out,) if name else ()"),
)
VECTOR_TWIN = (
    honest("scale_add")
    .replace("scale_add_kernel", "add")
    .replace("    n = x.numel()\n", "    # not torch.add(y, x, alpha=alpha), and no torch.compile\n    n = x.numel()\n")
)
WORK = ("policy.library_work",)
SEEN = (*WORK, "policy.introspection")
RAN = ("correctness.no_launch", "correctness.library_work")

ATTACKS = (
    *(
        Attack("D1", face, "L0", SEEN, MATMUL, cheat, TWIN, faster=True, past_policy=RAN)
        for face, cheat in (
            ("operator", OPERATOR),
            ("function", FUNCTION),
            ("einsum", EINSUM),
            ("linear", LINEAR),
            ("module", MODULE),
            ("name in pieces", PIECES),
            ("operator table", OPS),
            ("numpy", NUMPY),
            ("alias", ALIAS),
            ("special method", DUNDER),
        )
    ),
    Attack("D1", "compiled", "L0", WORK, SCALE_ADD, COMPILED, VECTOR_TWIN, past_policy=(*RAN, "correctness.raised")),
    Attack("D1", "method chain", "L0", WORK, SCALE_ADD, CHAIN, VECTOR_TWIN, faster=True, past_policy=RAN),
    Attack("D1", "into the output", "L0", WORK, SCALE_ADD, INTO, VECTOR_TWIN, faster=True, past_policy=RAN),
    *(
        Attack("D1", face, "L0", WORK, SCALE_ADD, cheat, VECTOR_TWIN)
        for face, cheat in (
            ("fields in a grid", IN_GRID),
            ("arguments in a heuristic", IN_HEURISTIC),
            ("numbers in Python", IN_PYTHON),
        )
    ),
    Attack("D1", "cublas", "L0", WORK, MATMUL, CUBLAS, MMA, gpu=True, dsl="cuda", language="cuda"),
)
