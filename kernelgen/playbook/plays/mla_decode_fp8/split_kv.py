"""Split-KV decoding: every sequence cut into runs of pages, heads on the M side, partial results merged by their LSE.

A run of pages is one program's: each group of 128 values is read once as e4m3, multiplied by its scale, rounded to bf16
and used for both products. With few heads, `attend_few_kernel` holds the next tile in registers and two programs share
an SM. With many, the sums take the registers: `attend_many_kernel` leaves the next tiles to Triton's pipeline in shared
memory, has an SM to itself, and its scores start while the next group is dequantised. `merge_split_kernel` weighs the
partial outputs by their log-sum-exp.
"""

import torch
import triton
import triton.language as tl

AUTOTUNE_CONFIGS = {
    "attend_few_kernel": [
        triton.Config({"BLOCK_N": 32}, num_warps=4, num_stages=1),
        triton.Config({"BLOCK_N": 16}, num_warps=4, num_stages=1),
        triton.Config({"BLOCK_N": 64}, num_warps=8, num_stages=1),
    ],
    "attend_many_kernel": [
        triton.Config({"BLOCK_N": 64}, num_warps=8, num_stages=3),
        triton.Config({"BLOCK_N": 64}, num_warps=8, num_stages=2),
    ],
    "merge_split_kernel": [
        triton.Config({"BLOCK_D": 512, "BLOCK_S": 4}, num_warps=4, num_stages=1),
        triton.Config({"BLOCK_D": 256, "BLOCK_S": 4}, num_warps=4, num_stages=1),
    ],
}

LATENT = 512
MAX_BLOCK_HEADS = 64
MIN_BLOCK_HEADS = 16
# of a block: up to here the queries, too, fit into the registers of each warp
FEW_HEADS = 16
# two programs for each SM of an H200 where few heads leave room for two, else one
FEW_HEADS_PROGRAMS = 264
MANY_HEADS_PROGRAMS = 132
LOG2_E = 1.4426950408889634


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


@triton.autotune(configs=AUTOTUNE_CONFIGS["attend_few_kernel"], key=["batch", "heads", "run"])
@triton.jit
def attend_few_kernel(
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
    DTYPE: tl.constexpr = tl.float32 if UPCAST else tl.bfloat16
    part = tl.arange(0, 128)
    turn = tl.arange(0, 64)
    q_rows = q_ptr + (sequence * heads + head)[:, None] * 576
    q0 = tl.load(q_rows + part[None, :], mask=real[:, None], other=0.0).to(DTYPE)
    q1 = tl.load(q_rows + 128 + part[None, :], mask=real[:, None], other=0.0).to(DTYPE)
    q2 = tl.load(q_rows + 256 + part[None, :], mask=real[:, None], other=0.0).to(DTYPE)
    q3 = tl.load(q_rows + 384 + part[None, :], mask=real[:, None], other=0.0).to(DTYPE)
    q_rope = tl.load(q_rows + 512 + turn[None, :], mask=real[:, None], other=0.0).to(DTYPE)
    out0 = tl.zeros([BLOCK_H, 128], dtype=tl.float32)
    out1 = tl.zeros([BLOCK_H, 128], dtype=tl.float32)
    out2 = tl.zeros([BLOCK_H, 128], dtype=tl.float32)
    out3 = tl.zeros([BLOCK_H, 128], dtype=tl.float32)
    largest = tl.full([BLOCK_H], float("-inf"), dtype=tl.float32)
    weight = tl.zeros([BLOCK_H], dtype=tl.float32)
    tl.static_assert(64 % BLOCK_N == 0, "a tile lies within one page of 64 tokens")
    # the next tile is on its way while this one is used, and the number of the page after it as well
    pages = block_table_ptr + sequence * max_pages
    page = tl.load(pages + first // 64)
    c0, c1, c2, c3, rope, s0, s1, s2, s3 = load_tile(nope_ptr, scales_ptr, rope_ptr, page, first, last, BLOCK_N)
    ahead = first + BLOCK_N
    page = tl.load(pages + ahead // 64, mask=ahead < last, other=0)
    for start in range(first, last, BLOCK_N):
        inside = start + tl.arange(0, BLOCK_N) < last
        k0 = (c0.to(tl.float32) * s0[:, None]).to(DTYPE)
        k1 = (c1.to(tl.float32) * s1[:, None]).to(DTYPE)
        k2 = (c2.to(tl.float32) * s2[:, None]).to(DTYPE)
        k3 = (c3.to(tl.float32) * s3[:, None]).to(DTYPE)
        k_rope = rope.to(DTYPE)
        ahead = start + BLOCK_N
        c0, c1, c2, c3, rope, s0, s1, s2, s3 = load_tile(nope_ptr, scales_ptr, rope_ptr, page, ahead, last, BLOCK_N)
        ahead += BLOCK_N
        page = tl.load(pages + ahead // 64, mask=ahead < last, other=0)
        scores = tl.dot(q_rope, tl.trans(k_rope))
        scores = tl.dot(q0, tl.trans(k0), scores)
        scores = tl.dot(q1, tl.trans(k1), scores)
        scores = tl.dot(q2, tl.trans(k2), scores)
        scores = tl.dot(q3, tl.trans(k3), scores)
        scores = tl.where(inside[None, :], scores * scale_log2, float("-inf"))
        rise = tl.maximum(largest, tl.max(scores, axis=1))
        fade = tl.exp2(largest - rise)
        p = tl.exp2(scores - rise[:, None])
        weight = weight * fade + tl.sum(p, axis=1)
        p = p.to(DTYPE)
        out0 = tl.dot(p, k0, out0 * fade[:, None])
        out1 = tl.dot(p, k1, out1 * fade[:, None])
        out2 = tl.dot(p, k2, out2 * fade[:, None])
        out3 = tl.dot(p, k3, out3 * fade[:, None])
        largest = rise
    tl.store(partial_lse_ptr + lane, largest + tl.log2(weight), mask=real)
    share = (1.0 / weight)[:, None]
    places = partial_ptr + lane[:, None] * 512 + part[None, :]
    tl.store(places, out0 * share, mask=real[:, None])
    tl.store(places + 128, out1 * share, mask=real[:, None])
    tl.store(places + 256, out2 * share, mask=real[:, None])
    tl.store(places + 384, out3 * share, mask=real[:, None])


@triton.autotune(configs=AUTOTUNE_CONFIGS["attend_many_kernel"], key=["batch", "heads", "run"])
@triton.jit
def attend_many_kernel(
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
    """The same for many heads, the next tiles in shared memory."""
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
    DTYPE: tl.constexpr = tl.float32 if UPCAST else tl.bfloat16
    part = tl.arange(0, 128)
    turn = tl.arange(0, 64)
    q_rows = q_ptr + (sequence * heads + head)[:, None] * 576
    q0 = tl.load(q_rows + part[None, :], mask=real[:, None], other=0.0).to(DTYPE)
    q1 = tl.load(q_rows + 128 + part[None, :], mask=real[:, None], other=0.0).to(DTYPE)
    q2 = tl.load(q_rows + 256 + part[None, :], mask=real[:, None], other=0.0).to(DTYPE)
    q3 = tl.load(q_rows + 384 + part[None, :], mask=real[:, None], other=0.0).to(DTYPE)
    q_rope = tl.load(q_rows + 512 + turn[None, :], mask=real[:, None], other=0.0).to(DTYPE)
    out0 = tl.zeros([BLOCK_H, 128], dtype=tl.float32)
    out1 = tl.zeros([BLOCK_H, 128], dtype=tl.float32)
    out2 = tl.zeros([BLOCK_H, 128], dtype=tl.float32)
    out3 = tl.zeros([BLOCK_H, 128], dtype=tl.float32)
    largest = tl.full([BLOCK_H], float("-inf"), dtype=tl.float32)
    weight = tl.zeros([BLOCK_H], dtype=tl.float32)
    tl.static_assert(64 % BLOCK_N == 0, "a tile lies within one page of 64 tokens")
    # the page number is read a tile earlier, so that the tile's loads depend on nothing within their iteration
    pages = block_table_ptr + sequence * max_pages
    page = tl.load(pages + first // 64)
    for start in range(first, last, BLOCK_N):
        inside = start + tl.arange(0, BLOCK_N) < last
        c0, c1, c2, c3, rope, s0, s1, s2, s3 = load_tile(nope_ptr, scales_ptr, rope_ptr, page, start, last, BLOCK_N)
        page = tl.load(pages + (start + BLOCK_N) // 64, mask=start + BLOCK_N < last, other=0)
        scores = tl.dot(q_rope, tl.trans(rope.to(DTYPE)))
        k0 = (c0.to(tl.float32) * s0[:, None]).to(DTYPE)
        scores = tl.dot(q0, tl.trans(k0), scores)
        k1 = (c1.to(tl.float32) * s1[:, None]).to(DTYPE)
        scores = tl.dot(q1, tl.trans(k1), scores)
        k2 = (c2.to(tl.float32) * s2[:, None]).to(DTYPE)
        scores = tl.dot(q2, tl.trans(k2), scores)
        k3 = (c3.to(tl.float32) * s3[:, None]).to(DTYPE)
        scores = tl.dot(q3, tl.trans(k3), scores)
        scores = tl.where(inside[None, :], scores * scale_log2, float("-inf"))
        rise = tl.maximum(largest, tl.max(scores, axis=1))
        fade = tl.exp2(largest - rise)
        p = tl.exp2(scores - rise[:, None])
        weight = weight * fade + tl.sum(p, axis=1)
        p = p.to(DTYPE)
        out0 = tl.dot(p, k0, out0 * fade[:, None])
        out1 = tl.dot(p, k1, out1 * fade[:, None])
        out2 = tl.dot(p, k2, out2 * fade[:, None])
        out3 = tl.dot(p, k3, out3 * fade[:, None])
        largest = rise
    tl.store(partial_lse_ptr + lane, largest + tl.log2(weight), mask=real)
    share = (1.0 / weight)[:, None]
    places = partial_ptr + lane[:, None] * 512 + part[None, :]
    tl.store(places, out0 * share, mask=real[:, None])
    tl.store(places + 128, out1 * share, mask=real[:, None])
    tl.store(places + 256, out2 * share, mask=real[:, None])
    tl.store(places + 384, out3 * share, mask=real[:, None])


@triton.autotune(configs=AUTOTUNE_CONFIGS["merge_split_kernel"], key=["splits"])
@triton.jit
def merge_split_kernel(
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
    few = block_h <= FEW_HEADS
    programs = FEW_HEADS_PROGRAMS if few else MANY_HEADS_PROGRAMS
    run = max(1, triton.cdiv(batch * head_blocks * max_pages, programs))
    splits = triton.cdiv(max_pages, run)
    partial = torch.empty((batch, heads, splits, LATENT), dtype=torch.float32, device=q.device)
    partial_lse = torch.empty((batch, heads, splits), dtype=torch.float32, device=q.device)
    out = torch.empty((batch, heads, LATENT), dtype=torch.bfloat16, device=q.device)
    lse = torch.empty((batch, heads), dtype=torch.float32, device=q.device)
    if few:
        attend_few_kernel[(splits, head_blocks, batch)](
            q, kv_pages.view(torch.float8_e4m3fn), kv_pages.view(torch.float32), kv_pages.view(torch.bfloat16),
            block_table, seqlens, partial, partial_lse, sm_scale * LOG2_E, batch, heads, max_pages, run, splits,
            BLOCK_H=block_h, UPCAST=triton.knobs.runtime.interpret,
        )  # fmt: skip
    else:
        attend_many_kernel[(splits, head_blocks, batch)](
            q, kv_pages.view(torch.float8_e4m3fn), kv_pages.view(torch.float32), kv_pages.view(torch.bfloat16),
            block_table, seqlens, partial, partial_lse, sm_scale * LOG2_E, batch, heads, max_pages, run, splits,
            BLOCK_H=block_h, UPCAST=triton.knobs.runtime.interpret,
        )  # fmt: skip

    def merge_grid(meta):
        return (batch * heads, LATENT // meta["BLOCK_D"])

    merge_split_kernel[merge_grid](partial, partial_lse, out, lse, splits)
    return out, lse
