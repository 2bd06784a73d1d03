"""The weighted sum of each token's eight expert rows, with the shared expert's row or without: target moe_combine.

A block sums BLOCK columns of one token in fp32. The row of a pair whose weight is 0 is unwritten memory, never read.
"""

import tilelang
import tilelang.language as T

HIDDEN = 7168
CHOSEN = 8
BLOCK = 1024
THREADS = 128
# offsets into z pass 2^31 at 40000 tokens
PASS_CONFIGS = {tilelang.PassConfigKey.TL_CONFIG_INDEX_BITWIDTH: 64}


@tilelang.jit(out_idx=[-1], pass_configs=PASS_CONFIGS)
def combine_plain():
    tokens = T.dynamic("tokens", "int64")

    @T.prim_func
    def combine_plain_kernel(
        z: T.Tensor((tokens, CHOSEN, HIDDEN), "bfloat16"),
        weights: T.Tensor((tokens, CHOSEN), "float32"),
        out: T.Tensor((tokens, HIDDEN), "bfloat16"),
    ):
        with T.Kernel(tokens, HIDDEN // BLOCK, threads=THREADS) as (token, block):
            total = T.alloc_fragment((BLOCK,), "float32")
            T.clear(total)
            for k in T.serial(CHOSEN):
                if weights[token, k] != 0.0:
                    for i in T.Parallel(BLOCK):
                        total[i] += weights[token, k] * T.cast(z[token, k, block * BLOCK + i], "float32")
            for i in T.Parallel(BLOCK):
                out[token, block * BLOCK + i] = T.cast(total[i], "bfloat16")

    return combine_plain_kernel


@tilelang.jit(out_idx=[-1], pass_configs=PASS_CONFIGS)
def combine_with_shared():
    tokens = T.dynamic("tokens", "int64")

    @T.prim_func
    def combine_shared_kernel(
        z: T.Tensor((tokens, CHOSEN, HIDDEN), "bfloat16"),
        weights: T.Tensor((tokens, CHOSEN), "float32"),
        shared: T.Tensor((tokens, HIDDEN), "bfloat16"),
        out: T.Tensor((tokens, HIDDEN), "bfloat16"),
    ):
        with T.Kernel(tokens, HIDDEN // BLOCK, threads=THREADS) as (token, block):
            total = T.alloc_fragment((BLOCK,), "float32")
            for i in T.Parallel(BLOCK):
                total[i] = T.cast(shared[token, block * BLOCK + i], "float32")
            for k in T.serial(CHOSEN):
                if weights[token, k] != 0.0:
                    for i in T.Parallel(BLOCK):
                        total[i] += weights[token, k] * T.cast(z[token, k, block * BLOCK + i], "float32")
            for i in T.Parallel(BLOCK):
                out[token, block * BLOCK + i] = T.cast(total[i], "bfloat16")

    return combine_shared_kernel


def moe_combine(z, weights, shared):
    """(out [T, 7168] bf16,) of z [T, 8, 7168] bf16, weights [T, 8] fp32 and shared [T or 0, 7168] bf16."""
    if shared.shape[0] == 0:
        return (combine_plain()(z, weights),)
    return (combine_with_shared()(z, weights, shared),)
