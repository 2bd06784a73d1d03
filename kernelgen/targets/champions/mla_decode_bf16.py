"""Naive MLA decode: a program for each sequence and block of heads walks all tokens with an online softmax.

Each block of tokens is loaded once and serves as keys and as values. No split over tokens: a small batch leaves most of
the GPU idle.
"""

import torch
import triton
import triton.language as tl

AUTOTUNE_CONFIGS = {
    "attend_kernel": [triton.Config({"BLOCK_H": 16, "BLOCK_N": 32}, num_warps=8, num_stages=2)],
}
LATENT = 512
ROPE = 64
PAGE = 64


@triton.autotune(configs=AUTOTUNE_CONFIGS["attend_kernel"], key=["heads", "entries"])
@triton.jit
def attend_kernel(
    q_ptr,
    pages_ptr,
    table_ptr,
    lengths_ptr,
    out_ptr,
    lse_ptr,
    sm_scale,
    heads,
    entries,
    LATENT: tl.constexpr,
    ROPE: tl.constexpr,
    PAGE: tl.constexpr,
    UPCAST: tl.constexpr,
    BLOCK_H: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Heads BLOCK_H at a time of one sequence: out [B, h, 512] bf16 and lse [B, h] fp32. UPCAST makes products fp32."""
    sequence = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    inside = head[:, None] < heads
    latent_dims = tl.arange(0, LATENT)
    rope_dims = tl.arange(0, ROPE)
    row = sequence * heads + head
    queries = q_ptr + row[:, None] * (LATENT + ROPE)
    q_latent = tl.load(queries + latent_dims[None, :], mask=inside, other=0.0)
    q_rope = tl.load(queries + LATENT + rope_dims[None, :], mask=inside, other=0.0)
    if UPCAST:
        q_latent = q_latent.to(tl.float32)
        q_rope = q_rope.to(tl.float32)
    length = tl.load(lengths_ptr + sequence)
    largest = tl.full((BLOCK_H,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_H,), dtype=tl.float32)
    sums = tl.zeros((BLOCK_H, LATENT), dtype=tl.float32)
    for start in range(0, length, BLOCK_N):
        token = start + tl.arange(0, BLOCK_N)
        valid = token < length
        page = tl.load(table_ptr + sequence * entries + token // PAGE, mask=valid, other=0)
        slot = pages_ptr + (page.to(tl.int64) * PAGE + token % PAGE)[:, None] * (LATENT + ROPE)
        latent = tl.load(slot + latent_dims[None, :], mask=valid[:, None], other=0.0)
        rope = tl.load(slot + LATENT + rope_dims[None, :], mask=valid[:, None], other=0.0)
        if UPCAST:
            latent = latent.to(tl.float32)
            rope = rope.to(tl.float32)
        score = tl.dot(q_latent, tl.trans(latent)) + tl.dot(q_rope, tl.trans(rope))
        score = tl.where(valid[None, :], score * sm_scale, float("-inf"))
        new_largest = tl.maximum(largest, tl.max(score, axis=1))
        p = tl.exp(score - new_largest[:, None])
        shrink = tl.exp(largest - new_largest)
        total = total * shrink + tl.sum(p, axis=1)
        sums = tl.dot(p.to(latent.dtype), latent, sums * shrink[:, None])
        largest = new_largest
    out = sums / total[:, None]
    tl.store(out_ptr + row[:, None] * LATENT + latent_dims[None, :], out.to(out_ptr.dtype.element_ty), mask=inside)
    tl.store(lse_ptr + row, largest + tl.log(total), mask=head < heads)


def mla_decode_bf16(q, kv_pages, block_table, seqlens, sm_scale):
    """(out, lse) of q [B, h, 576] bf16 over kv_pages [P, 64, 576] bf16; lse is a natural logarithm."""
    batch, heads, _ = q.shape
    out = torch.empty((batch, heads, LATENT), dtype=torch.bfloat16, device=q.device)
    lse = torch.empty((batch, heads), dtype=torch.float32, device=q.device)

    def grid(meta):
        return (batch, triton.cdiv(heads, meta["BLOCK_H"]))

    attend_kernel[grid](
        q,
        kv_pages,
        block_table,
        seqlens,
        out,
        lse,
        sm_scale,
        heads,
        block_table.shape[1],
        LATENT=LATENT,
        ROPE=ROPE,
        PAGE=PAGE,
        # Triton's interpreter multiplies the raw bits of bf16 operands
        UPCAST=triton.knobs.runtime.interpret,
    )
    return out, lse
