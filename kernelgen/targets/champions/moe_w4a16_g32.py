"""Naive W4A16 experts: pairs grouped by expert, both projections expert by expert, then the weighted sum.

A program takes one expert and a block of its outputs and walks the expert's pairs 16 at a time, dequantising the same
weights anew for each 16. Every product is a bf16 `tl.dot`; eight loads read the same packed word.
"""

import torch
import triton
import triton.language as tl

AUTOTUNE_CONFIGS = {
    "group_kernel": [triton.Config({"BLOCK_E": 8, "BLOCK_P": 512}, num_warps=4)],
    "gate_up_kernel": [triton.Config({"BLOCK_M": 16, "BLOCK_N": 32, "BLOCK_K": 64}, num_warps=4, num_stages=2)],
    "down_kernel": [triton.Config({"BLOCK_M": 16, "BLOCK_N": 64, "BLOCK_K": 32}, num_warps=4, num_stages=2)],
    "combine_kernel": [triton.Config({"BLOCK_H": 1024}, num_warps=4)],
}
CHOSEN = 8


@triton.jit
def load_weights(words_ptr, scales_ptr, output, inputs, valid, SIZE):
    """Weights [k, n] fp32 of SIZE inputs each: 8 nibbles an int32, a scale for each 32; outputs of all experts."""
    word = tl.load(words_ptr + output[None, :] * (SIZE // 8) + inputs[:, None] // 8, mask=valid[None, :], other=0)
    scale = tl.load(scales_ptr + output[None, :] * (SIZE // 32) + inputs[:, None] // 32, mask=valid[None, :], other=0.0)
    nibble = (word >> (inputs[:, None] % 8 * 4)) & 15
    return (nibble - 8).to(tl.float32) * scale.to(tl.float32)


@triton.jit
def multiply(a, b, total, UPCAST: tl.constexpr):
    """total + a @ b; UPCAST makes the product one of fp32."""
    if UPCAST:
        return tl.dot(a.to(tl.float32), b, total, input_precision="ieee")
    return tl.dot(a, b.to(tl.bfloat16), total)


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
    x_ptr, words_ptr, scales_ptr, pairs_ptr, counts_ptr, hidden_ptr, inner, tokens,
    WIDTH: tl.constexpr, CHOSEN: tl.constexpr, UPCAST: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """BLOCK_N outputs of one expert, for all its pairs: silu(gate) * up in hidden [8T, n] bf16, a row a pair."""
    expert = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inside = columns < inner
    gate_rows = expert * 2 * inner + columns
    count = tl.load(counts_ptr + expert)
    for start in range(0, count, BLOCK_M):
        rows = start + tl.arange(0, BLOCK_M)
        pair = tl.load(pairs_ptr + expert * tokens + rows, mask=rows < count, other=0).to(tl.int64)
        gate = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        up = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for k in range(0, WIDTH, BLOCK_K):
            inputs = k + tl.arange(0, BLOCK_K)
            x = tl.load(x_ptr + (pair // CHOSEN)[:, None] * WIDTH + inputs[None, :])
            gate_weights = load_weights(words_ptr, scales_ptr, gate_rows, inputs, inside, WIDTH)
            up_weights = load_weights(words_ptr, scales_ptr, gate_rows + inner, inputs, inside, WIDTH)
            gate = multiply(x, gate_weights, gate, UPCAST)
            up = multiply(x, up_weights, up, UPCAST)
        value = (gate * tl.sigmoid(gate) * up).to(hidden_ptr.dtype.element_ty)
        place = pair[:, None] * inner + columns[None, :]
        tl.store(hidden_ptr + place, value, mask=(rows < count)[:, None] & inside[None, :])


@triton.autotune(configs=AUTOTUNE_CONFIGS["down_kernel"], key=["inner", "tokens"])
@triton.jit
def down_kernel(
    hidden_ptr, words_ptr, scales_ptr, pairs_ptr, counts_ptr, z_ptr, inner, tokens,
    WIDTH: tl.constexpr, UPCAST: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """BLOCK_N outputs of one expert, for all its pairs: z [8T, H] bf16, a row a pair. n is a multiple of BLOCK_K."""
    expert = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inside = columns < WIDTH
    count = tl.load(counts_ptr + expert)
    for start in range(0, count, BLOCK_M):
        rows = start + tl.arange(0, BLOCK_M)
        pair = tl.load(pairs_ptr + expert * tokens + rows, mask=rows < count, other=0).to(tl.int64)
        total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for k in range(0, inner, BLOCK_K):
            inputs = k + tl.arange(0, BLOCK_K)
            hidden = tl.load(
                hidden_ptr + pair[:, None] * inner + inputs[None, :], mask=(rows < count)[:, None], other=0.0
            )
            weights = load_weights(words_ptr, scales_ptr, expert * WIDTH + columns, inputs, inside, inner)
            total = multiply(hidden, weights, total, UPCAST)
        place = pair[:, None] * WIDTH + columns[None, :]
        value = total.to(z_ptr.dtype.element_ty)
        tl.store(z_ptr + place, value, mask=(rows < count)[:, None] & inside[None, :])


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


def moe_w4a16_g32(x, w13, w13_scales, w2, w2_scales, ids, weights):
    """(out [T, H] bf16,) of x [T, H] bf16 and int4 weights; see the target for their layout."""
    tokens, width = x.shape
    experts, inner = w13.shape[0], w13.shape[1] // 2
    n_pairs = tokens * CHOSEN
    # Triton's interpreter multiplies the raw bits of bf16 operands
    upcast = triton.knobs.runtime.interpret
    pairs = torch.empty((experts, tokens), dtype=torch.int32, device=x.device)
    counts = torch.empty((experts,), dtype=torch.int32, device=x.device)
    hidden = torch.empty((n_pairs, inner), dtype=torch.bfloat16, device=x.device)
    z = torch.empty((n_pairs, width), dtype=torch.bfloat16, device=x.device)
    out = torch.empty((tokens, width), dtype=torch.bfloat16, device=x.device)
    group_kernel[lambda meta: (triton.cdiv(experts, meta["BLOCK_E"]),)](ids, pairs, counts, n_pairs, tokens, experts)
    gate_up_kernel[lambda meta: (experts, triton.cdiv(inner, meta["BLOCK_N"]))](
        x, w13, w13_scales, pairs, counts, hidden, inner, tokens, WIDTH=width, CHOSEN=CHOSEN, UPCAST=upcast
    )
    down_kernel[lambda meta: (experts, triton.cdiv(width, meta["BLOCK_N"]))](
        hidden, w2, w2_scales, pairs, counts, z, inner, tokens, WIDTH=width, UPCAST=upcast
    )
    combine_kernel[lambda meta: (tokens, triton.cdiv(width, meta["BLOCK_H"]))](
        z, ids, weights, out, WIDTH=width, CHOSEN=CHOSEN
    )
    return (out,)
