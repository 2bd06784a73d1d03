"""Split-KV decoding with one warp for each group of 128 values: a warp meets its own quarter of the cache and no other.

The four groups are the batch of a batched product. Warp g multiplies the queries' quarter g with the codes of group g,
scales the [heads, tokens] result by the token's scale g, and after one sum over the warps multiplies the probabilities,
scaled again, with the same codes. Cache values are e4m3 codes as fp16, exact and never multiplied; scaled probabilities
are kept relative to their own running maximum, so fp16 holds them whatever the scales are.
"""

import torch
import triton
import triton.language as tl

# four warps, one for each group
AUTOTUNE_CONFIGS = {
    "attend_groups_kernel": [
        triton.Config({"BLOCK_N": 16}, num_warps=4, num_stages=1),
        triton.Config({"BLOCK_N": 32}, num_warps=4, num_stages=1),
    ],
    "merge_groups_kernel": [
        triton.Config({"BLOCK_D": 512, "BLOCK_S": 4}, num_warps=4, num_stages=1),
        triton.Config({"BLOCK_D": 256, "BLOCK_S": 4}, num_warps=4, num_stages=1),
    ],
}

LATENT = 512
BLOCK_HEADS = 16
TARGET_PROGRAMS = 264
LOG2_E = 1.4426950408889634


@triton.jit
def load_tile(nope_ptr, scales_ptr, rope_ptr, page, start, last, BLOCK_N: tl.constexpr):
    """A tile of tokens from `start`: codes [4, N, 128], rope [4, N, 16] and scales [4, N]; zeros from `last` on."""
    group = tl.arange(0, 4)[:, None, None]
    inside = start + tl.arange(0, BLOCK_N) < last
    rows = (page.to(tl.int64) * 64 + start % 64 + tl.arange(0, BLOCK_N))[None, :]
    mask = inside[None, :, None]
    codes = nope_ptr + rows[:, :, None] * 656 + group * 128 + tl.arange(0, 128)[None, None, :]
    turned = rope_ptr + rows[:, :, None] * 328 + 264 + group * 16 + tl.arange(0, 16)[None, None, :]
    scales = scales_ptr + rows * 164 + 128 + tl.arange(0, 4)[:, None]
    return (
        tl.load(codes, mask=mask, other=0.0),
        tl.load(turned, mask=mask, other=0.0),
        tl.load(scales, mask=inside[None, :], other=0.0),
    )


@triton.autotune(configs=AUTOTUNE_CONFIGS["attend_groups_kernel"], key=["batch", "heads", "run"])
@triton.jit
def attend_groups_kernel(
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
    split = tl.program_id(1)
    sequence = tl.program_id(2).to(tl.int64)
    # blocks of heads are neighbours in the grid: the run's pages come out of the L2 cache for all but the first
    head = tl.program_id(0) * BLOCK_H + tl.arange(0, BLOCK_H)
    real = head < heads
    lane = (sequence * heads + head) * splits + split
    first = split * run * 64
    last = tl.minimum(tl.load(seqlens_ptr + sequence), first + run * 64)
    if first >= last:
        tl.store(partial_lse_ptr + lane, tl.full([BLOCK_H], float("-inf"), tl.float32), mask=real)
        return
    HALF: tl.constexpr = tl.float32 if UPCAST else tl.float16
    WIDE: tl.constexpr = tl.float32 if UPCAST else tl.bfloat16
    group = tl.arange(0, 4)[:, None, None]
    part = tl.arange(0, 128)[None, None, :]
    q_rows = q_ptr + (sequence * heads + head)[None, :, None] * 576
    q = tl.load(q_rows + group * 128 + part, mask=real[None, :, None], other=0.0).to(tl.float32)
    turn = tl.arange(0, 16)[None, None, :]
    q_rope = tl.load(q_rows + 512 + group * 16 + turn, mask=real[None, :, None], other=0.0).to(WIDE)
    # a power of two a head and group brings q into the range of fp16 without rounding it
    widest = tl.max(tl.abs(q), axis=2)
    unit = tl.exp2(tl.ceil(tl.log2(tl.where(widest > 0.0, widest, 1.0))))[:, :, None]
    q = (q / unit).to(HALF)
    nope_log2 = unit * scale_log2
    out = tl.zeros([4, BLOCK_H, 128], dtype=tl.float32)
    peak = tl.zeros([4, BLOCK_H], dtype=tl.float32)
    largest = tl.full([BLOCK_H], float("-inf"), dtype=tl.float32)
    # kept a column of the tile until the end: one reduction instead of one a tile
    weights = tl.zeros([BLOCK_H, BLOCK_N], dtype=tl.float32)
    tl.static_assert(64 % BLOCK_N == 0, "a tile lies within one page of 64 tokens")
    # the next tile is on its way while this one is used, and the number of the page after it as well
    pages = block_table_ptr + sequence * max_pages
    page = tl.load(pages + first // 64)
    codes, rope, scales = load_tile(nope_ptr, scales_ptr, rope_ptr, page, first, last, BLOCK_N)
    ahead = first + BLOCK_N
    page = tl.load(pages + ahead // 64, mask=ahead < last, other=0)
    for start in range(first, last, BLOCK_N):
        inside = start + tl.arange(0, BLOCK_N) < last
        k = codes.to(HALF)
        k_rope = rope.to(WIDE)
        scale = scales[:, None, :]
        ahead = start + BLOCK_N
        codes, rope, scales = load_tile(nope_ptr, scales_ptr, rope_ptr, page, ahead, last, BLOCK_N)
        ahead += BLOCK_N
        page = tl.load(pages + ahead // 64, mask=ahead < last, other=0)
        shares = tl.dot(q, tl.permute(k, (0, 2, 1))) * (nope_log2 * scale)
        shares += tl.dot(q_rope, tl.permute(k_rope, (0, 2, 1))) * scale_log2
        scores = tl.where(inside[None, :], tl.sum(shares, axis=0), float("-inf"))
        rise = tl.maximum(largest, tl.max(scores, axis=1))
        fade = tl.exp2(largest - rise)
        p = tl.exp2(scores - rise[:, None])
        weights = weights * fade[:, None] + p
        scaled = p[None, :, :] * scale
        taller = tl.maximum(tl.max(tl.abs(scaled), axis=2), peak * fade[None, :])
        inverse = tl.where(taller > 0.0, 1.0 / taller, 0.0)
        moved = out * (fade[None, :] * peak * inverse)[:, :, None]
        out = tl.dot((scaled * inverse[:, :, None]).to(HALF), k, moved)
        peak = taller
        largest = rise
    weight = tl.sum(weights, axis=1)
    tl.store(partial_lse_ptr + lane, largest + tl.log2(weight), mask=real)
    places = partial_ptr + lane[None, :, None] * 512 + group * 128 + part
    tl.store(places, out * (peak / weight[None, :])[:, :, None], mask=real[None, :, None])


@triton.autotune(configs=AUTOTUNE_CONFIGS["merge_groups_kernel"], key=["splits"])
@triton.jit
def merge_groups_kernel(
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
    head_blocks = triton.cdiv(heads, BLOCK_HEADS)
    run = max(1, triton.cdiv(batch * head_blocks * max_pages, TARGET_PROGRAMS))
    splits = triton.cdiv(max_pages, run)
    partial = torch.empty((batch, heads, splits, LATENT), dtype=torch.float32, device=q.device)
    partial_lse = torch.empty((batch, heads, splits), dtype=torch.float32, device=q.device)
    out = torch.empty((batch, heads, LATENT), dtype=torch.bfloat16, device=q.device)
    lse = torch.empty((batch, heads), dtype=torch.float32, device=q.device)
    attend_groups_kernel[(head_blocks, splits, batch)](
        q, kv_pages.view(torch.float8_e4m3fn), kv_pages.view(torch.float32), kv_pages.view(torch.bfloat16),
        block_table, seqlens, partial, partial_lse, sm_scale * LOG2_E, batch, heads, max_pages, run, splits,
        BLOCK_H=BLOCK_HEADS, UPCAST=triton.knobs.runtime.interpret,
    )  # fmt: skip

    def merge_grid(meta):
        return (batch * heads, LATENT // meta["BLOCK_D"])

    merge_groups_kernel[merge_grid](partial, partial_lse, out, lse, splits)
    return out, lse
