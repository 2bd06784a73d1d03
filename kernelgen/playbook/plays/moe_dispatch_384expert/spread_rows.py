"""Gate that ranks as it counts, then a gather that reads each hidden row once.

Two launches, and the zeroing of the counters. `gate_kernel` picks the experts of a token and takes each pair's place
within its expert from an atomic counter. `spread_kernel` adds the counters of the experts before, reads a token's row
once and writes its eight copies. The order within an expert is the order in which tokens reach the counter: it may
differ from run to run. Up to FEW_TOKENS tokens nothing is counted: `compare_kernel` compares ids with all ids.
"""

import torch
import triton
import triton.language as tl

AUTOTUNE_CONFIGS = {
    "gate_kernel": [
        triton.Config({"BLOCK_T": 1}, num_warps=1, num_stages=1),
        triton.Config({"BLOCK_T": 1}, num_warps=2, num_stages=1),
        triton.Config({"BLOCK_T": 1}, num_warps=4, num_stages=1),
        triton.Config({"BLOCK_T": 2}, num_warps=1, num_stages=1),
    ],
    "compare_kernel": [
        triton.Config({"BLOCK_H": 1024}, num_warps=8, num_stages=1),
        triton.Config({"BLOCK_H": 1024}, num_warps=4, num_stages=1),
        triton.Config({"BLOCK_H": 512}, num_warps=4, num_stages=1),
        triton.Config({"BLOCK_H": 2048}, num_warps=8, num_stages=1),
    ],
    "spread_kernel": [
        triton.Config({"BLOCK_H": 8192}, num_warps=16, num_stages=1),
        triton.Config({"BLOCK_H": 8192}, num_warps=8, num_stages=1),
        triton.Config({"BLOCK_H": 4096}, num_warps=4, num_stages=1),
        triton.Config({"BLOCK_H": 4096}, num_warps=8, num_stages=1),
        triton.Config({"BLOCK_H": 1024}, num_warps=2, num_stages=1),
    ],
}

EXPERTS = 384
EXPERTS_PADDED = 512
TOP_K = 8
ROUTED_SCALING = 2.827
WEIGHT_EPSILON = 1e-20
FEW_TOKENS = 32


@triton.autotune(configs=AUTOTUNE_CONFIGS["gate_kernel"], key=["T"], reset_to_zero=["counts_ptr"])
@triton.jit
def gate_kernel(
    logits_ptr,
    bias_ptr,
    ids_ptr,
    weights_ptr,
    counts_ptr,
    ranks_ptr,
    T,
    EPSILON: tl.constexpr,
    SCALING: tl.constexpr,
    E: tl.constexpr,
    E_PADDED: tl.constexpr,
    K: tl.constexpr,
    COUNT: tl.constexpr,
    BLOCK_T: tl.constexpr,
):
    """BLOCK_T tokens: the K largest of sigmoid(logits) + bias, their weights; with COUNT each pair's place, counted."""
    tokens = tl.program_id(0).to(tl.int64) * BLOCK_T + tl.arange(0, BLOCK_T)
    experts = tl.arange(0, E_PADDED)
    slots = tl.arange(0, K)
    real = (tokens < T)[:, None] & (experts < E)[None, :]
    logits = tl.load(logits_ptr + tokens[:, None] * E + experts[None, :], mask=real, other=0.0)
    biased = tl.sigmoid(logits) + tl.load(bias_ptr + experts, mask=experts < E, other=0.0)[None, :]
    # scores as integers of the same order: a maximum and a minimum over 32 bits, which a warp has instructions for
    bits = biased.to(tl.int32, bitcast=True)
    lowest: tl.constexpr = -(1 << 31)
    keys = tl.where((experts < E)[None, :], bits ^ ((bits >> 31) & 0x7FFFFFFF), lowest)
    ids = tl.zeros([BLOCK_T, K], dtype=tl.int32)
    for k in tl.static_range(K):
        best = tl.max(keys, axis=1)
        # the lowest index among equals
        chosen = tl.min(tl.where(keys == best[:, None], experts[None, :], E_PADDED), axis=1)
        ids = tl.where(slots[None, :] == k, chosen[:, None], ids)
        keys = tl.where(experts[None, :] == chosen[:, None], lowest, keys)
    pairs = tokens[:, None] * K + slots[None, :]
    inside = (tokens < T)[:, None] & (slots < K)[None, :]
    scores = tl.sigmoid(tl.load(logits_ptr + tokens[:, None] * E + ids, mask=inside, other=0.0))
    total = tl.sum(scores, axis=1)[:, None]
    tl.store(ids_ptr + pairs, ids, mask=inside)
    tl.store(weights_ptr + pairs, scores / (total + EPSILON) * SCALING, mask=inside)
    if COUNT:
        ranks = tl.atomic_add(counts_ptr + ids, tl.full([BLOCK_T, K], 1, tl.int32), mask=inside, sem="relaxed")
        tl.store(ranks_ptr + pairs, ranks, mask=inside)


@triton.autotune(configs=AUTOTUNE_CONFIGS["compare_kernel"], key=["T"])
@triton.jit
def compare_kernel(
    hidden_ptr,
    ids_ptr,
    rows_ptr,
    offsets_ptr,
    pairs_ptr,
    T,
    H: tl.constexpr,
    E: tl.constexpr,
    K: tl.constexpr,
    PAIRS_PADDED: tl.constexpr,
    OFFSETS_EACH: tl.constexpr,
    BLOCK_H: tl.constexpr,
):
    """BLOCK_H columns of one token to its K places, found by comparing its ids with those of all pairs."""
    token = tl.program_id(0)
    chunk = tl.program_id(1)
    columns = chunk * BLOCK_H + tl.arange(0, BLOCK_H)
    values = tl.load(hidden_ptr + token.to(tl.int64) * H + columns, mask=columns < H, other=0.0)
    every = tl.arange(0, PAIRS_PADDED)
    ids = tl.load(ids_ptr + every, mask=every < T * K, other=E)
    pairs = token * K + tl.arange(0, K)
    own = tl.load(ids_ptr + pairs)[:, None]
    before = (ids[None, :] < own) | ((ids[None, :] == own) & (every[None, :] < pairs[:, None]))
    places = tl.sum(before.to(tl.int32), axis=1)
    if chunk == 0:
        tl.store(pairs_ptr + places, pairs)
        experts = token * OFFSETS_EACH + tl.arange(0, OFFSETS_EACH)
        # padding ids are E: no expert from 0 to E counts them
        starts = tl.sum((ids[None, :] < experts[:, None]).to(tl.int32), axis=1)
        tl.store(offsets_ptr + experts, starts, mask=experts <= E)
    copies = tl.broadcast_to(values[None, :], (K, BLOCK_H))
    places = places.to(tl.int64)
    tl.store(rows_ptr + places[:, None] * H + columns[None, :], copies, mask=(columns < H)[None, :])


@triton.autotune(configs=AUTOTUNE_CONFIGS["spread_kernel"], key=["T"])
@triton.jit
def spread_kernel(
    hidden_ptr,
    ids_ptr,
    ranks_ptr,
    counts_ptr,
    rows_ptr,
    offsets_ptr,
    pairs_ptr,
    T,
    H: tl.constexpr,
    E: tl.constexpr,
    E_PADDED: tl.constexpr,
    K: tl.constexpr,
    BLOCK_H: tl.constexpr,
):
    """BLOCK_H columns of one token: read once, written to the token's K places."""
    token = tl.program_id(0).to(tl.int64)
    chunk = tl.program_id(1)
    columns = chunk * BLOCK_H + tl.arange(0, BLOCK_H)
    values = tl.load(hidden_ptr + token * H + columns, mask=columns < H, other=0.0, eviction_policy="evict_first")
    experts = tl.arange(0, E_PADDED)
    slots = tl.arange(0, K)
    counts = tl.load(counts_ptr + experts, mask=experts < E, other=0)
    ids = tl.load(ids_ptr + token * K + slots)
    before = tl.sum(tl.where(experts[None, :] < ids[:, None], counts[None, :], 0), axis=1)
    places = (before + tl.load(ranks_ptr + token * K + slots)).to(tl.int64)
    if chunk == 0:
        tl.store(pairs_ptr + places, (token * K + slots).to(tl.int32))
        if token == 0:
            ends = tl.cumsum(counts, axis=0)
            tl.store(offsets_ptr + experts, ends - counts, mask=experts < E)
            tl.store(offsets_ptr + experts + 1, ends, mask=experts == E - 1)
    copies = tl.broadcast_to(values[None, :], (K, BLOCK_H))
    tl.store(rows_ptr + places[:, None] * H + columns[None, :], copies, mask=(columns < H)[None, :])


def moe_dispatch_384expert(hidden, logits, bias):
    """hidden [T, 7168] bf16, logits [T, 384] fp32, bias [384] fp32 -> rows, offsets, ids, weights, pairs."""
    T, H = hidden.shape
    device = hidden.device
    rows = torch.empty((TOP_K * T, H), dtype=hidden.dtype, device=device)
    offsets = torch.empty((EXPERTS + 1,), dtype=torch.int32, device=device)
    ids = torch.empty((T, TOP_K), dtype=torch.int32, device=device)
    weights = torch.empty((T, TOP_K), dtype=torch.float32, device=device)
    pairs = torch.empty((TOP_K * T,), dtype=torch.int32, device=device)
    few = T <= FEW_TOKENS
    ranks = torch.empty_like(ids)
    counts = (torch.empty if few else torch.zeros)((EXPERTS,), dtype=torch.int32, device=device)
    gate_kernel[lambda meta: (triton.cdiv(T, meta["BLOCK_T"]),)](
        logits, bias, ids, weights, counts, ranks, T, EPSILON=WEIGHT_EPSILON, SCALING=ROUTED_SCALING,
        E=EXPERTS, E_PADDED=EXPERTS_PADDED, K=TOP_K, COUNT=not few,
    )  # fmt: skip
    if few:
        compare_kernel[lambda meta: (T, triton.cdiv(H, meta["BLOCK_H"]))](
            hidden, ids, rows, offsets, pairs, T, H=H, E=EXPERTS, K=TOP_K,
            PAIRS_PADDED=triton.next_power_of_2(T * TOP_K),
            OFFSETS_EACH=triton.next_power_of_2(triton.cdiv(EXPERTS + 1, T)),
        )  # fmt: skip
        return rows, offsets, ids, weights, pairs
    spread_kernel[lambda meta: (T, triton.cdiv(H, meta["BLOCK_H"]))](
        hidden, ids, ranks, counts, rows, offsets, pairs, T,
        H=H, E=EXPERTS, E_PADDED=EXPERTS_PADDED, K=TOP_K,
    )  # fmt: skip
    return rows, offsets, ids, weights, pairs
