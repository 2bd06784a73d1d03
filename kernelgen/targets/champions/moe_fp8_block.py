"""Naive fp8 block experts: pairs grouped by expert, both projections expert by expert, then the weighted sum.

A program takes one expert and a block of its outputs and walks the expert's pairs 16 at a time, reading the same
weights anew for each 16. Codes become bf16 exactly, by integer arithmetic that needs no fp8 instructions; what lies
between the projections stays bf16.
"""

import torch
import triton
import triton.language as tl

AUTOTUNE_CONFIGS = {
    "group_kernel": [triton.Config({"BLOCK_E": 8, "BLOCK_P": 512}, num_warps=4)],
    "gate_up_kernel": [triton.Config({"BLOCK_M": 16, "BLOCK_N": 64}, num_warps=4, num_stages=2)],
    "down_kernel": [triton.Config({"BLOCK_M": 16, "BLOCK_N": 64}, num_warps=4, num_stages=2)],
    "combine_kernel": [triton.Config({"BLOCK_H": 1024}, num_warps=4)],
}
CHOSEN = 8
# rows and columns of a weight block, and inputs of an activation's group
BLOCK = 128


@triton.jit
def e4m3_to_fp32(code):
    """e4m3 bytes to fp32, exactly: the bits of an fp16 that is 2^-8 as large."""
    bits = code.to(tl.int16)
    half = ((bits & 0x80) << 8) | ((bits & 0x7F) << 7)
    return half.to(tl.float16, bitcast=True).to(tl.float32) * 256.0


@triton.jit
def multiply(a, b, UPCAST: tl.constexpr):
    """a @ b in fp32, of values that bf16 holds; UPCAST makes the product one of fp32."""
    if UPCAST:
        return tl.dot(a.to(tl.float32), b.to(tl.float32), input_precision="ieee")
    return tl.dot(a.to(tl.bfloat16), b.to(tl.bfloat16))


@triton.autotune(configs=AUTOTUNE_CONFIGS["group_kernel"], key=["n_pairs"])
@triton.jit
def group_kernel(
    ids_ptr, pairs_ptr, counts_ptr, n_pairs, tokens, experts, BLOCK_E: tl.constexpr, BLOCK_P: tl.constexpr
):
    """BLOCK_E experts: the pairs of each by rising index, pairs [E, T] int32, and how many, counts [E] int32."""
    own_experts = tl.program_id(0) * BLOCK_E + tl.arange(0, BLOCK_E)
    counts = tl.zeros((BLOCK_E,), dtype=tl.int32)
    for start in range(0, n_pairs, BLOCK_P):
        pairs = start + tl.arange(0, BLOCK_P)
        ids = tl.load(ids_ptr + pairs, mask=pairs < n_pairs, other=-1)
        own = (ids[None, :] == own_experts[:, None]) & (ids >= 0)[None, :]
        place = counts[:, None] + tl.cumsum(own.to(tl.int32), axis=1) - 1
        spread = pairs[None, :] + tl.zeros_like(place)
        tl.store(pairs_ptr + own_experts.to(tl.int64)[:, None] * tokens + place, spread, mask=own)
        counts += tl.sum(own.to(tl.int32), axis=1)
    tl.store(counts_ptr + own_experts, counts, mask=own_experts < experts)


@triton.autotune(configs=AUTOTUNE_CONFIGS["gate_up_kernel"], key=["inner", "tokens"])
@triton.jit
def gate_up_kernel(
    x_ptr, x_scales_ptr, codes_ptr, scales_ptr, pairs_ptr, counts_ptr, hidden_ptr, inner, tokens,
    WIDTH: tl.constexpr, CHOSEN: tl.constexpr, BLOCK: tl.constexpr, UPCAST: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """BLOCK_N outputs of one expert, within one weight block, for all its pairs: silu(gate) * up in hidden [8T, n]."""
    expert = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    gate_rows = expert * 2 * inner + columns
    gate_block = (expert * 2 * inner + tl.program_id(1) * BLOCK_N) // BLOCK * (WIDTH // BLOCK)
    up_block = gate_block + inner // BLOCK * (WIDTH // BLOCK)
    count = tl.load(counts_ptr + expert)
    for start in range(0, count, BLOCK_M):
        rows = start + tl.arange(0, BLOCK_M)
        pair = tl.load(pairs_ptr + expert * tokens + rows, mask=rows < count, other=0).to(tl.int64)
        token = pair // CHOSEN
        gate = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        up = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for group in range(WIDTH // BLOCK):
            inputs = group * BLOCK + tl.arange(0, BLOCK)
            x = e4m3_to_fp32(tl.load(x_ptr + token[:, None] * WIDTH + inputs[None, :]))
            x_scale = tl.load(x_scales_ptr + token * (WIDTH // BLOCK) + group)[:, None]
            gate_codes = tl.load(codes_ptr + gate_rows[None, :] * WIDTH + inputs[:, None])
            up_codes = tl.load(codes_ptr + (gate_rows + inner)[None, :] * WIDTH + inputs[:, None])
            gate_scale = tl.load(scales_ptr + gate_block + group)
            up_scale = tl.load(scales_ptr + up_block + group)
            gate += multiply(x, e4m3_to_fp32(gate_codes), UPCAST) * (x_scale * gate_scale)
            up += multiply(x, e4m3_to_fp32(up_codes), UPCAST) * (x_scale * up_scale)
        value = (gate * tl.sigmoid(gate) * up).to(hidden_ptr.dtype.element_ty)
        tl.store(hidden_ptr + pair[:, None] * inner + columns[None, :], value, mask=(rows < count)[:, None])


@triton.autotune(configs=AUTOTUNE_CONFIGS["down_kernel"], key=["inner", "tokens"])
@triton.jit
def down_kernel(
    hidden_ptr, codes_ptr, scales_ptr, pairs_ptr, counts_ptr, z_ptr, inner, tokens,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, UPCAST: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """BLOCK_N outputs of one expert, within one weight block, for all its pairs: z [8T, H] bf16, a row a pair."""
    expert = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    weight_rows = expert * WIDTH + columns
    scale_row = (expert * WIDTH + tl.program_id(1) * BLOCK_N) // BLOCK * (inner // BLOCK)
    count = tl.load(counts_ptr + expert)
    for start in range(0, count, BLOCK_M):
        rows = start + tl.arange(0, BLOCK_M)
        pair = tl.load(pairs_ptr + expert * tokens + rows, mask=rows < count, other=0).to(tl.int64)
        total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for group in range(inner // BLOCK):
            inputs = group * BLOCK + tl.arange(0, BLOCK)
            hidden = tl.load(
                hidden_ptr + pair[:, None] * inner + inputs[None, :], mask=(rows < count)[:, None], other=0.0
            )
            codes = tl.load(codes_ptr + weight_rows[None, :] * inner + inputs[:, None])
            total += multiply(hidden, e4m3_to_fp32(codes), UPCAST) * tl.load(scales_ptr + scale_row + group)
        value = total.to(z_ptr.dtype.element_ty)
        tl.store(z_ptr + pair[:, None] * WIDTH + columns[None, :], value, mask=(rows < count)[:, None])


@triton.autotune(configs=AUTOTUNE_CONFIGS["combine_kernel"], key=[])
@triton.jit
def combine_kernel(
    z_ptr, ids_ptr, weights_ptr, out_ptr, WIDTH: tl.constexpr, CHOSEN: tl.constexpr, BLOCK_H: tl.constexpr
):
    """BLOCK_H columns of one token: the weighted sum of its rows of z; rows of pairs without expert are unwritten."""
    token = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    inside = columns < WIDTH
    total = tl.zeros((BLOCK_H,), dtype=tl.float32)
    for k in range(CHOSEN):
        pair = token * CHOSEN + k
        here = tl.load(ids_ptr + pair) >= 0
        row = tl.load(z_ptr + pair * WIDTH + columns, mask=inside & here, other=0.0)
        total += tl.load(weights_ptr + pair) * row.to(tl.float32)
    tl.store(out_ptr + token * WIDTH + columns, total.to(out_ptr.dtype.element_ty), mask=inside)


def moe_fp8_block(x, x_scales, w13, w13_scales, w2, w2_scales, ids, weights):
    """(out [T, H] bf16,) of e4m3 x [T, H] and weights, each with fp32 scales; see the target for their layout."""
    tokens, width = x.shape
    experts, inner = w13.shape[0], w13.shape[1] // 2
    n_pairs = tokens * CHOSEN
    # Triton's interpreter multiplies the raw bits of bf16 operands
    constants = {"WIDTH": width, "BLOCK": BLOCK, "UPCAST": triton.knobs.runtime.interpret}
    pairs = torch.empty((experts, tokens), dtype=torch.int32, device=x.device)
    counts = torch.empty((experts,), dtype=torch.int32, device=x.device)
    hidden = torch.empty((n_pairs, inner), dtype=torch.bfloat16, device=x.device)
    z = torch.empty((n_pairs, width), dtype=torch.bfloat16, device=x.device)
    out = torch.empty((tokens, width), dtype=torch.bfloat16, device=x.device)
    x, w13, w2 = (tensor.view(torch.uint8) for tensor in (x, w13, w2))
    group_kernel[lambda meta: (triton.cdiv(experts, meta["BLOCK_E"]),)](ids, pairs, counts, n_pairs, tokens, experts)
    gate_up_kernel[lambda meta: (experts, inner // meta["BLOCK_N"])](
        x, x_scales, w13, w13_scales, pairs, counts, hidden, inner, tokens, CHOSEN=CHOSEN, **constants
    )
    down_kernel[lambda meta: (experts, width // meta["BLOCK_N"])](
        hidden, w2, w2_scales, pairs, counts, z, inner, tokens, **constants
    )
    combine_kernel[lambda meta: (tokens, triton.cdiv(width, meta["BLOCK_H"]))](
        z, ids, weights, out, WIDTH=width, CHOSEN=CHOSEN
    )
    return (out,)
