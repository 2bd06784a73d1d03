"""Naive combine: a program for each token and block of columns reads its eight rows one after another."""

import torch
import triton
import triton.language as tl

AUTOTUNE_CONFIGS = {
    "combine_kernel": [triton.Config({"BLOCK_H": 1024}, num_warps=4)],
}
HIDDEN = 7168
CHOSEN = 8


@triton.autotune(configs=AUTOTUNE_CONFIGS["combine_kernel"], key=["HAS_SHARED"])
@triton.jit
def combine_kernel(
    z_ptr,
    weights_ptr,
    shared_ptr,
    out_ptr,
    HIDDEN: tl.constexpr,
    CHOSEN: tl.constexpr,
    HAS_SHARED: tl.constexpr,
    BLOCK_H: tl.constexpr,
):
    """BLOCK_H columns of one token: out [T, 7168] bf16, summed in fp32."""
    token = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    inside = columns < HIDDEN
    total = tl.zeros((BLOCK_H,), dtype=tl.float32)
    if HAS_SHARED:
        total += tl.load(shared_ptr + token * HIDDEN + columns, mask=inside, other=0.0).to(tl.float32)
    for k in range(CHOSEN):
        pair = token * CHOSEN + k
        weight = tl.load(weights_ptr + pair)
        # the row of a pair without weight is unwritten memory: not even 0 times it is 0
        length = tl.where(weight != 0.0, HIDDEN, 0)
        row = tl.load(z_ptr + pair * HIDDEN + columns, mask=columns < length, other=0.0)
        total += weight * row.to(tl.float32)
    tl.store(out_ptr + token * HIDDEN + columns, total.to(out_ptr.dtype.element_ty), mask=inside)


def moe_combine(z, weights, shared):
    """(out,) of z [T, 8, 7168] bf16, weights [T, 8] fp32 and shared [T or 0, 7168] bf16."""
    tokens = z.shape[0]
    out = torch.empty((tokens, HIDDEN), dtype=torch.bfloat16, device=z.device)

    def grid(meta):
        return (tokens, triton.cdiv(HIDDEN, meta["BLOCK_H"]))

    combine_kernel[grid](z, weights, shared, out, HIDDEN=HIDDEN, CHOSEN=CHOSEN, HAS_SHARED=shared.shape[0] > 0)
    return (out,)
