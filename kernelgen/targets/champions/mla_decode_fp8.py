"""Naive MLA decode: a program for each sequence and block of heads walks all tokens with an online softmax.

The latent is dequantised to bf16 by integer arithmetic, which needs no fp8 instructions. No split over tokens: a small
batch leaves most of the GPU idle.
"""

import torch
import triton
import triton.language as tl

AUTOTUNE_CONFIGS = {
    "attend_kernel": [triton.Config({"BLOCK_H": 16, "BLOCK_N": 32}, num_warps=8, num_stages=2)],
}
LATENT = 512
ROPE = 64
GROUPS = 4
PAGE = 64
SLOT_BYTES = 656


@triton.jit
def e4m3_to_fp32(code):
    """e4m3 bytes to fp32, exactly: the bits of an fp16 that is 2^-8 as large."""
    bits = code.to(tl.int16)
    half = ((bits & 0x80) << 8) | ((bits & 0x7F) << 7)
    return half.to(tl.float16, bitcast=True).to(tl.float32) * 256.0


@triton.jit
def load_slots(
    code_ptr,
    scale_ptr,
    rope_ptr,
    slot,
    valid,
    LATENT: tl.constexpr,
    ROPE: tl.constexpr,
    GROUPS: tl.constexpr,
    SLOT_BYTES: tl.constexpr,
):
    """Latent [n, 512] fp32 and rope [n, 64] bf16 of slots [n]: 512 codes, 4 fp32 scales, 64 bf16 values each."""
    latent_dims = tl.arange(0, LATENT)[None, :]
    rope_dims = tl.arange(0, ROPE)[None, :]
    code = tl.load(code_ptr + slot[:, None] * SLOT_BYTES + latent_dims, mask=valid[:, None], other=0)
    scales = scale_ptr + slot[:, None] * (SLOT_BYTES // 4) + LATENT // 4 + tl.arange(0, GROUPS)[None, :]
    ropes = rope_ptr + slot[:, None] * (SLOT_BYTES // 2) + (SLOT_BYTES // 2 - ROPE) + rope_dims
    rope = tl.load(ropes, mask=valid[:, None], other=0.0)
    scale = tl.load(scales, mask=valid[:, None], other=0.0)
    values = tl.reshape(e4m3_to_fp32(code), (slot.shape[0], GROUPS, LATENT // GROUPS))
    return tl.reshape(values * scale[:, :, None], (slot.shape[0], LATENT)), rope


@triton.autotune(configs=AUTOTUNE_CONFIGS["attend_kernel"], key=["heads", "entries"])
@triton.jit
def attend_kernel(
    q_ptr,
    code_ptr,
    scale_ptr,
    rope_ptr,
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
    GROUPS: tl.constexpr,
    SLOT_BYTES: tl.constexpr,
    UPCAST: tl.constexpr,
    BLOCK_H: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Heads BLOCK_H at a time of one sequence: out [B, h, 512] bf16 and lse [B, h] fp32.

    code_ptr, scale_ptr and rope_ptr are the same pages as bytes, fp32 and bf16. UPCAST makes the products fp32.
    """
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
        slot = page.to(tl.int64) * PAGE + token % PAGE
        latent, rope = load_slots(code_ptr, scale_ptr, rope_ptr, slot, valid, LATENT, ROPE, GROUPS, SLOT_BYTES)
        if UPCAST:
            rope = rope.to(tl.float32)
        else:
            latent = latent.to(tl.bfloat16)
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


def mla_decode_fp8(q, kv_pages, block_table, seqlens, sm_scale):
    """(out, lse) of q [B, h, 576] bf16 over kv_pages [P, 64, 656] uint8; lse is a natural logarithm."""
    batch, heads, _ = q.shape
    out = torch.empty((batch, heads, LATENT), dtype=torch.bfloat16, device=q.device)
    lse = torch.empty((batch, heads), dtype=torch.float32, device=q.device)

    def grid(meta):
        return (batch, triton.cdiv(heads, meta["BLOCK_H"]))

    attend_kernel[grid](
        q,
        kv_pages,
        kv_pages.view(torch.float32),
        kv_pages.view(torch.bfloat16),
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
        GROUPS=GROUPS,
        SLOT_BYTES=SLOT_BYTES,
        # Triton's interpreter multiplies the raw bits of bf16 operands
        UPCAST=triton.knobs.runtime.interpret,
    )
    return out, lse
