"""Split-KV decoding that never multiplies a cache value: scales are folded into scores and probabilities.

e4m3 codes become fp16 exactly, in one conversion a pair. A group's scale is one number a token, so it multiplies the
group's [heads, tokens] scores instead of its 128 values, and the probabilities instead of the values again. Scaled
probabilities are kept relative to their own running maximum, so fp16 holds them whatever the scales are.
"""

import torch
import triton
import triton.language as tl

AUTOTUNE_CONFIGS = {
    "attend_folded_kernel": [
        triton.Config({"BLOCK_N": 16}, num_warps=4, num_stages=1),
        triton.Config({"BLOCK_N": 32}, num_warps=4, num_stages=1),
        triton.Config({"BLOCK_N": 32}, num_warps=8, num_stages=1),
        triton.Config({"BLOCK_N": 64}, num_warps=8, num_stages=1),
    ],
    "merge_folded_kernel": [
        triton.Config({"BLOCK_D": 128, "BLOCK_S": 8}, num_warps=4, num_stages=1),
        triton.Config({"BLOCK_D": 256, "BLOCK_S": 4}, num_warps=4, num_stages=1),
        triton.Config({"BLOCK_D": 512, "BLOCK_S": 4}, num_warps=4, num_stages=1),
    ],
}

LATENT = 512
MAX_BLOCK_HEADS = 64
MIN_BLOCK_HEADS = 16
TARGET_PROGRAMS = 264
LOG2_E = 1.4426950408889634


@triton.jit
def larger_of_four(a0, a1, a2, a3, b0, b1, b2, b3):
    """Elementwise maximum of two quadruples: one pass over the tokens serves all four groups."""
    return tl.maximum(a0, b0), tl.maximum(a1, b1), tl.maximum(a2, b2), tl.maximum(a3, b3)


@triton.jit
def load_tile(nope_ptr, scales_ptr, rope_ptr, page, start, last, BLOCK_N: tl.constexpr):
    """One tile of tokens from `start`: four groups of codes, rope, and the four scales; at and after `last` zeros."""
    part = tl.arange(0, 128)
    turn = tl.arange(0, 64)
    inside = start + tl.arange(0, BLOCK_N) < last
    rows = page.to(tl.int64) * 64 + start % 64 + tl.arange(0, BLOCK_N)
    codes = nope_ptr + rows[:, None] * 656 + part[None, :]
    c0 = tl.load(codes, mask=inside[:, None], other=0.0)
    c1 = tl.load(codes + 128, mask=inside[:, None], other=0.0)
    c2 = tl.load(codes + 256, mask=inside[:, None], other=0.0)
    c3 = tl.load(codes + 384, mask=inside[:, None], other=0.0)
    turned = rope_ptr + rows[:, None] * 328 + 264 + turn[None, :]
    rope = tl.load(turned, mask=inside[:, None], other=0.0)
    s0 = tl.load(scales_ptr + rows * 164 + 128, mask=inside, other=0.0)
    s1 = tl.load(scales_ptr + rows * 164 + 129, mask=inside, other=0.0)
    s2 = tl.load(scales_ptr + rows * 164 + 130, mask=inside, other=0.0)
    s3 = tl.load(scales_ptr + rows * 164 + 131, mask=inside, other=0.0)
    return c0, c1, c2, c3, rope, s0, s1, s2, s3


@triton.jit
def accumulate(out, fade, peak, taller, scaled, codes, DTYPE: tl.constexpr):
    """Move `out` from the frame of `peak` to that of `taller` and add the tile's product."""
    inverse = tl.where(taller > 0.0, 1.0 / taller, 0.0)
    return tl.dot((scaled * inverse[:, None]).to(DTYPE), codes, out * (fade * peak * inverse)[:, None])


@triton.autotune(configs=AUTOTUNE_CONFIGS["attend_folded_kernel"], key=["batch", "heads", "run"])
@triton.jit
def attend_folded_kernel(
    q_ptr,
    nope_ptr,
    scales_ptr,
    rope_ptr,
    block_table_ptr,
    seqlens_ptr,
    partial_ptr,
    partial_lse_ptr,
    scale_log2,
    batch,
    heads,
    max_pages,
    run,
    splits,
    BLOCK_H: tl.constexpr,
    BLOCK_N: tl.constexpr,
    UPCAST: tl.constexpr,
):
    """One run of pages of one sequence for BLOCK_H heads: normalised output and base-2 log-sum-exp."""
    split = tl.program_id(0)
    sequence = tl.program_id(2).to(tl.int64)
    head = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    real = head < heads
    lane = (sequence * heads + head) * splits + split
    first = split * run * 64
    last = tl.minimum(tl.load(seqlens_ptr + sequence), first + run * 64)
    if first >= last:
        tl.store(partial_lse_ptr + lane, tl.full([BLOCK_H], float("-inf"), tl.float32), mask=real)
        return
    HALF: tl.constexpr = tl.float32 if UPCAST else tl.float16
    WIDE: tl.constexpr = tl.float32 if UPCAST else tl.bfloat16
    part = tl.arange(0, 128)
    turn = tl.arange(0, 64)
    q_rows = q_ptr + (sequence * heads + head)[:, None] * 576
    q0 = tl.load(q_rows + part[None, :], mask=real[:, None], other=0.0).to(tl.float32)
    q1 = tl.load(q_rows + 128 + part[None, :], mask=real[:, None], other=0.0).to(tl.float32)
    q2 = tl.load(q_rows + 256 + part[None, :], mask=real[:, None], other=0.0).to(tl.float32)
    q3 = tl.load(q_rows + 384 + part[None, :], mask=real[:, None], other=0.0).to(tl.float32)
    q_rope = tl.load(q_rows + 512 + turn[None, :], mask=real[:, None], other=0.0).to(WIDE)
    # a power of two a head brings q into the range of fp16 without rounding it
    widest = tl.max(tl.maximum(tl.maximum(tl.abs(q0), tl.abs(q1)), tl.maximum(tl.abs(q2), tl.abs(q3))), axis=1)
    unit = tl.exp2(tl.ceil(tl.log2(tl.where(widest > 0.0, widest, 1.0))))
    q0 = (q0 / unit[:, None]).to(HALF)
    q1 = (q1 / unit[:, None]).to(HALF)
    q2 = (q2 / unit[:, None]).to(HALF)
    q3 = (q3 / unit[:, None]).to(HALF)
    nope_log2 = (unit * scale_log2)[:, None]
    out0 = tl.zeros([BLOCK_H, 128], dtype=tl.float32)
    out1 = tl.zeros([BLOCK_H, 128], dtype=tl.float32)
    out2 = tl.zeros([BLOCK_H, 128], dtype=tl.float32)
    out3 = tl.zeros([BLOCK_H, 128], dtype=tl.float32)
    peak0 = tl.zeros([BLOCK_H], dtype=tl.float32)
    peak1 = tl.zeros([BLOCK_H], dtype=tl.float32)
    peak2 = tl.zeros([BLOCK_H], dtype=tl.float32)
    peak3 = tl.zeros([BLOCK_H], dtype=tl.float32)
    largest = tl.full([BLOCK_H], float("-inf"), dtype=tl.float32)
    # kept a column of the tile until the end: one reduction instead of one a tile
    weights = tl.zeros([BLOCK_H, BLOCK_N], dtype=tl.float32)
    tl.static_assert(64 % BLOCK_N == 0, "a tile lies within one page of 64 tokens")
    # the next tile is on its way while this one is used, and the number of the page after it as well
    pages = block_table_ptr + sequence * max_pages
    page = tl.load(pages + first // 64)
    c0, c1, c2, c3, rope, s0, s1, s2, s3 = load_tile(nope_ptr, scales_ptr, rope_ptr, page, first, last, BLOCK_N)
    ahead = first + BLOCK_N
    page = tl.load(pages + ahead // 64, mask=ahead < last, other=0)
    for start in range(first, last, BLOCK_N):
        inside = start + tl.arange(0, BLOCK_N) < last
        k0 = c0.to(HALF)
        k1 = c1.to(HALF)
        k2 = c2.to(HALF)
        k3 = c3.to(HALF)
        k_rope = rope.to(WIDE)
        scale0 = s0[None, :]
        scale1 = s1[None, :]
        scale2 = s2[None, :]
        scale3 = s3[None, :]
        ahead = start + BLOCK_N
        c0, c1, c2, c3, rope, s0, s1, s2, s3 = load_tile(nope_ptr, scales_ptr, rope_ptr, page, ahead, last, BLOCK_N)
        ahead += BLOCK_N
        page = tl.load(pages + ahead // 64, mask=ahead < last, other=0)
        nope = tl.dot(q0, tl.trans(k0)) * scale0 + tl.dot(q1, tl.trans(k1)) * scale1
        nope += tl.dot(q2, tl.trans(k2)) * scale2 + tl.dot(q3, tl.trans(k3)) * scale3
        scores = nope * nope_log2 + tl.dot(q_rope, tl.trans(k_rope)) * scale_log2
        scores = tl.where(inside[None, :], scores, float("-inf"))
        rise = tl.maximum(largest, tl.max(scores, axis=1))
        fade = tl.exp2(largest - rise)
        p = tl.exp2(scores - rise[:, None])
        weights = weights * fade[:, None] + p
        p0 = p * scale0
        p1 = p * scale1
        p2 = p * scale2
        p3 = p * scale3
        top0, top1, top2, top3 = tl.reduce((tl.abs(p0), tl.abs(p1), tl.abs(p2), tl.abs(p3)), 1, larger_of_four)
        top0 = tl.maximum(top0, peak0 * fade)
        top1 = tl.maximum(top1, peak1 * fade)
        top2 = tl.maximum(top2, peak2 * fade)
        top3 = tl.maximum(top3, peak3 * fade)
        out0 = accumulate(out0, fade, peak0, top0, p0, k0, HALF)
        out1 = accumulate(out1, fade, peak1, top1, p1, k1, HALF)
        out2 = accumulate(out2, fade, peak2, top2, p2, k2, HALF)
        out3 = accumulate(out3, fade, peak3, top3, p3, k3, HALF)
        peak0, peak1, peak2, peak3 = top0, top1, top2, top3
        largest = rise
    weight = tl.sum(weights, axis=1)
    tl.store(partial_lse_ptr + lane, largest + tl.log2(weight), mask=real)
    places = partial_ptr + lane[:, None] * 512 + part[None, :]
    tl.store(places, out0 * (peak0 / weight)[:, None], mask=real[:, None])
    tl.store(places + 128, out1 * (peak1 / weight)[:, None], mask=real[:, None])
    tl.store(places + 256, out2 * (peak2 / weight)[:, None], mask=real[:, None])
    tl.store(places + 384, out3 * (peak3 / weight)[:, None], mask=real[:, None])


@triton.autotune(configs=AUTOTUNE_CONFIGS["merge_folded_kernel"], key=["splits"])
@triton.jit
def merge_folded_kernel(
    partial_ptr, partial_lse_ptr, out_ptr, lse_ptr, splits, BLOCK_D: tl.constexpr, BLOCK_S: tl.constexpr
):
    """BLOCK_D values of one head: the partial outputs, each weighted by the exponential of its log-sum-exp."""
    lane = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)
    total = tl.zeros([BLOCK_D], dtype=tl.float32)
    largest = float("-inf")
    weight = 0.0
    for start in range(0, splits, BLOCK_S):
        parts = start + tl.arange(0, BLOCK_S)
        lse = tl.load(partial_lse_ptr + lane * splits + parts, mask=parts < splits, other=float("-inf"))
        used = lse > float("-inf")
        rise = tl.maximum(largest, tl.max(lse, axis=0))
        frame = tl.where(rise > float("-inf"), rise, 0.0)
        fade = tl.exp2(largest - frame)
        shares = tl.where(used, tl.exp2(lse - frame), 0.0)
        places = (lane * splits + parts)[:, None] * 512 + columns[None, :]
        values = tl.load(partial_ptr + places, mask=used[:, None], other=0.0)
        total = total * fade + tl.sum(values * shares[:, None], axis=0)
        weight = weight * fade + tl.sum(shares, axis=0)
        largest = rise
    result = tl.where(weight > 0.0, total / weight, 0.0)
    tl.store(out_ptr + lane * 512 + columns, result.to(tl.bfloat16))
    if tl.program_id(1) == 0:
        tl.store(lse_ptr + lane, (largest + tl.log2(weight)) * 0.6931471805599453)


def mla_decode_fp8(q, kv_pages, block_table, seqlens, sm_scale):
    """q [B, h, 576] bf16, kv_pages [P, 64, 656] uint8, block_table [B, pages] int32, seqlens [B] int32 -> out, lse."""
    batch, heads, _ = q.shape
    max_pages = block_table.shape[1]
    block_h = min(MAX_BLOCK_HEADS, max(MIN_BLOCK_HEADS, triton.next_power_of_2(heads)))
    head_blocks = triton.cdiv(heads, block_h)
    run = max(1, triton.cdiv(batch * head_blocks * max_pages, TARGET_PROGRAMS))
    splits = triton.cdiv(max_pages, run)
    partial = torch.empty((batch, heads, splits, LATENT), dtype=torch.float32, device=q.device)
    partial_lse = torch.empty((batch, heads, splits), dtype=torch.float32, device=q.device)
    out = torch.empty((batch, heads, LATENT), dtype=torch.bfloat16, device=q.device)
    lse = torch.empty((batch, heads), dtype=torch.float32, device=q.device)
    attend_folded_kernel[(splits, head_blocks, batch)](
        q, kv_pages.view(torch.float8_e4m3fn), kv_pages.view(torch.float32), kv_pages.view(torch.bfloat16),
        block_table, seqlens, partial, partial_lse, sm_scale * LOG2_E, batch, heads, max_pages, run, splits,
        BLOCK_H=block_h, UPCAST=triton.knobs.runtime.interpret,
    )  # fmt: skip

    def merge_grid(meta):
        return (batch * heads, LATENT // meta["BLOCK_D"])

    merge_folded_kernel[merge_grid](partial, partial_lse, out, lse, splits)
    return out, lse
