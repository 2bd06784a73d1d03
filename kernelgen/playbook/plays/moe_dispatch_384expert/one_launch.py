"""No atomics and no shared counters: few tokens in one launch, many in three with a stable order.

Up to ONE_LAUNCH_TOKENS tokens, every program of `dispatch_kernel` routes all tokens again in registers, finds the
places of its own token from the expert mask and copies its columns: nothing has to wait for another program. Above
that, `route_kernel` counts a chunk of tokens, `prefix_kernel` sums the chunks before each chunk, and `copy_kernel`
copies. Pairs of an expert stand in the order of their tokens, in every run.
"""

import torch
import triton
import triton.language as tl

AUTOTUNE_CONFIGS = {
    "dispatch_kernel": [
        triton.Config({"BLOCK_H": 1024}, num_warps=16, num_stages=1),
        triton.Config({"BLOCK_H": 1024}, num_warps=8, num_stages=1),
        triton.Config({"BLOCK_H": 2048}, num_warps=8, num_stages=1),
        triton.Config({"BLOCK_H": 2048}, num_warps=16, num_stages=1),
    ],
    "route_kernel": [
        triton.Config({}, num_warps=8, num_stages=1),
        triton.Config({}, num_warps=4, num_stages=1),
        triton.Config({}, num_warps=16, num_stages=1),
    ],
    "prefix_kernel": [
        triton.Config({"BLOCK_E": 16, "BLOCK_C": 64}, num_warps=4, num_stages=1),
        triton.Config({"BLOCK_E": 8, "BLOCK_C": 128}, num_warps=4, num_stages=1),
    ],
    "copy_kernel": [
        triton.Config({"BLOCK_H": 8192}, num_warps=8, num_stages=1),
        triton.Config({"BLOCK_H": 4096}, num_warps=8, num_stages=1),
        triton.Config({"BLOCK_H": 2048}, num_warps=4, num_stages=1),
    ],
}

EXPERTS = 384
EXPERTS_PADDED = 512
TOP_K = 8
ROUTED_SCALING = 2.827
WEIGHT_EPSILON = 1e-20
ONE_LAUNCH_TOKENS = 32
CHUNK_TOKENS = 8


@triton.jit
def top_experts(logits_ptr, bias_ptr, tokens, T, E: tl.constexpr, E_PADDED: tl.constexpr, K: tl.constexpr):
    """The K best experts of each token, best first [tokens, K], and the mask of them [tokens, E_PADDED]."""
    experts = tl.arange(0, E_PADDED)
    slots = tl.arange(0, K)
    real = (tokens < T)[:, None] & (experts < E)[None, :]
    logits = tl.load(logits_ptr + tokens[:, None] * E + experts[None, :], mask=real, other=0.0)
    biased = tl.sigmoid(logits) + tl.load(bias_ptr + experts, mask=experts < E, other=0.0)[None, :]
    # scores as integers of the same order; the lowest index is taken among equals
    bits = biased.to(tl.int32, bitcast=True)
    lowest: tl.constexpr = -(1 << 31)
    keys = tl.where(real, bits ^ ((bits >> 31) & 0x7FFFFFFF), lowest)
    ids = tl.zeros([tokens.shape[0], K], dtype=tl.int32)
    for k in tl.static_range(K):
        best = tl.max(keys, axis=1)
        chosen = tl.min(tl.where(keys == best[:, None], experts[None, :], E_PADDED), axis=1)
        ids = tl.where(slots[None, :] == k, chosen[:, None], ids)
        keys = tl.where(experts[None, :] == chosen[:, None], lowest, keys)
    return ids, real & (keys == lowest)


@triton.jit
def store_weights(logits_ptr, ids, rows, pairs, inside, weights_ptr, EPSILON: tl.constexpr, SCALING: tl.constexpr,
                  E: tl.constexpr):  # fmt: skip
    """The scores of the chosen experts, renormalised; `rows` are the tokens as a column."""
    scores = tl.sigmoid(tl.load(logits_ptr + rows * E + ids, mask=inside, other=0.0))
    total = tl.sum(scores, axis=1)[:, None]
    tl.store(weights_ptr + pairs, scores / (total + EPSILON) * SCALING, mask=inside)


@triton.autotune(configs=AUTOTUNE_CONFIGS["dispatch_kernel"], key=["T"])
@triton.jit
def dispatch_kernel(
    hidden_ptr,
    logits_ptr,
    bias_ptr,
    rows_ptr,
    offsets_ptr,
    ids_ptr,
    weights_ptr,
    pairs_ptr,
    T,
    EPSILON: tl.constexpr,
    SCALING: tl.constexpr,
    H: tl.constexpr,
    E: tl.constexpr,
    E_PADDED: tl.constexpr,
    K: tl.constexpr,
    T_PADDED: tl.constexpr,
    BLOCK_H: tl.constexpr,
):
    """BLOCK_H columns of one token, with the routing of all tokens worked out on the spot."""
    token = tl.program_id(0)
    chunk = tl.program_id(1)
    columns = chunk * BLOCK_H + tl.arange(0, BLOCK_H)
    values = tl.load(hidden_ptr + token.to(tl.int64) * H + columns, mask=columns < H, other=0.0)
    tokens = tl.arange(0, T_PADDED)
    experts = tl.arange(0, E_PADDED)
    slots = tl.arange(0, K)
    ids, mask = top_experts(logits_ptr, bias_ptr, tokens, T, E, E_PADDED, K)
    picked = mask.to(tl.int32)
    counts = tl.sum(picked, axis=0)
    earlier = tl.sum(tl.where((tokens < token)[:, None], picked, 0), axis=0)
    own = tl.sum(tl.where((tokens == token)[:, None], ids, 0), axis=0)
    smaller = tl.where(experts[None, :] < own[:, None], counts[None, :], 0)
    same = tl.where(experts[None, :] == own[:, None], earlier[None, :], 0)
    places = tl.sum(smaller + same, axis=1).to(tl.int64)
    if chunk == 0:
        tl.store(pairs_ptr + places, token * K + slots)
        if token == 0:
            inside = (tokens < T)[:, None] & (slots < K)[None, :]
            pairs = tokens[:, None] * K + slots[None, :]
            tl.store(ids_ptr + pairs, ids, mask=inside)
            store_weights(logits_ptr, ids, tokens[:, None], pairs, inside, weights_ptr, EPSILON, SCALING, E)
            ends = tl.cumsum(counts, axis=0)
            tl.store(offsets_ptr + experts, ends - counts, mask=experts < E)
            tl.store(offsets_ptr + experts + 1, ends, mask=experts == E - 1)
    copies = tl.broadcast_to(values[None, :], (K, BLOCK_H))
    tl.store(rows_ptr + places[:, None] * H + columns[None, :], copies, mask=(columns < H)[None, :])


@triton.autotune(configs=AUTOTUNE_CONFIGS["route_kernel"], key=["T"])
@triton.jit
def route_kernel(
    logits_ptr,
    bias_ptr,
    ids_ptr,
    weights_ptr,
    ranks_ptr,
    chunk_counts_ptr,
    T,
    EPSILON: tl.constexpr,
    SCALING: tl.constexpr,
    E: tl.constexpr,
    E_PADDED: tl.constexpr,
    K: tl.constexpr,
    CHUNK_T: tl.constexpr,
):
    """One chunk of tokens: experts, weights, each pair's place within its expert and chunk, the chunk's counts."""
    chunk = tl.program_id(0).to(tl.int64)
    tokens = chunk * CHUNK_T + tl.arange(0, CHUNK_T)
    experts = tl.arange(0, E_PADDED)
    slots = tl.arange(0, K)
    ids, mask = top_experts(logits_ptr, bias_ptr, tokens, T, E, E_PADDED, K)
    inside = (tokens < T)[:, None] & (slots < K)[None, :]
    pairs = tokens[:, None] * K + slots[None, :]
    ids = tl.where(inside, ids, 0)
    tl.store(ids_ptr + pairs, ids, mask=inside)
    store_weights(logits_ptr, ids, tokens[:, None], pairs, inside, weights_ptr, EPSILON, SCALING, E)
    picked = mask.to(tl.int32)
    earlier = tl.cumsum(picked, axis=0) - picked
    tl.store(ranks_ptr + pairs, tl.gather(earlier, ids, axis=1), mask=inside)
    tl.store(chunk_counts_ptr + chunk * E + experts, tl.sum(picked, axis=0), mask=experts < E)


@triton.autotune(configs=AUTOTUNE_CONFIGS["prefix_kernel"], key=["CHUNKS"])
@triton.jit
def prefix_kernel(
    chunk_counts_ptr,
    chunk_starts_ptr,
    counts_ptr,
    CHUNKS,
    E: tl.constexpr,
    BLOCK_E: tl.constexpr,
    BLOCK_C: tl.constexpr,
):
    """BLOCK_E experts: how many of their pairs lie in the chunks before each chunk, and in all chunks."""
    experts = tl.program_id(0) * BLOCK_E + tl.arange(0, BLOCK_E)
    total = tl.zeros([BLOCK_E], dtype=tl.int32)
    for start in range(0, CHUNKS, BLOCK_C):
        chunks = start + tl.arange(0, BLOCK_C)
        inside = (chunks < CHUNKS)[:, None] & (experts < E)[None, :]
        places = chunks[:, None] * E + experts[None, :]
        counts = tl.load(chunk_counts_ptr + places, mask=inside, other=0)
        before = tl.cumsum(counts, axis=0) - counts + total[None, :]
        tl.store(chunk_starts_ptr + places, before, mask=inside)
        total += tl.sum(counts, axis=0)
    tl.store(counts_ptr + experts, total, mask=experts < E)


@triton.autotune(configs=AUTOTUNE_CONFIGS["copy_kernel"], key=["T"])
@triton.jit
def copy_kernel(
    hidden_ptr,
    ids_ptr,
    ranks_ptr,
    chunk_starts_ptr,
    counts_ptr,
    rows_ptr,
    offsets_ptr,
    pairs_ptr,
    T,
    H: tl.constexpr,
    E: tl.constexpr,
    E_PADDED: tl.constexpr,
    K: tl.constexpr,
    CHUNK_T: tl.constexpr,
    BLOCK_H: tl.constexpr,
):
    """BLOCK_H columns of one token: read once, written to the token's K places."""
    token = tl.program_id(0).to(tl.int64)
    piece = tl.program_id(1)
    columns = piece * BLOCK_H + tl.arange(0, BLOCK_H)
    values = tl.load(hidden_ptr + token * H + columns, mask=columns < H, other=0.0, eviction_policy="evict_first")
    experts = tl.arange(0, E_PADDED)
    slots = tl.arange(0, K)
    counts = tl.load(counts_ptr + experts, mask=experts < E, other=0)
    ids = tl.load(ids_ptr + token * K + slots)
    before = tl.sum(tl.where(experts[None, :] < ids[:, None], counts[None, :], 0), axis=1)
    before += tl.load(chunk_starts_ptr + (token // CHUNK_T) * E + ids)
    places = (before + tl.load(ranks_ptr + token * K + slots)).to(tl.int64)
    if piece == 0:
        tl.store(pairs_ptr + places, (token * K + slots).to(tl.int32))
        if token == 0:
            ends = tl.cumsum(counts, axis=0)
            tl.store(offsets_ptr + experts, ends - counts, mask=experts < E)
            tl.store(offsets_ptr + experts + 1, ends, mask=experts == E - 1)
    copies = tl.broadcast_to(values[None, :], (K, BLOCK_H))
    tl.store(rows_ptr + places[:, None] * H + columns[None, :], copies, mask=(columns < H)[None, :])


def dispatch_many(hidden, logits, bias, rows, offsets, ids, weights, pairs):
    """Three launches: count by chunk, sum over chunks, copy."""
    T, H = hidden.shape
    chunks = triton.cdiv(T, CHUNK_TOKENS)
    ranks = torch.empty_like(ids)
    chunk_counts = torch.empty((chunks, EXPERTS), dtype=torch.int32, device=hidden.device)
    chunk_starts = torch.empty_like(chunk_counts)
    counts = torch.empty((EXPERTS,), dtype=torch.int32, device=hidden.device)
    route_kernel[(chunks,)](
        logits, bias, ids, weights, ranks, chunk_counts, T, EPSILON=WEIGHT_EPSILON, SCALING=ROUTED_SCALING,
        E=EXPERTS, E_PADDED=EXPERTS_PADDED, K=TOP_K, CHUNK_T=CHUNK_TOKENS,
    )  # fmt: skip
    prefix_kernel[lambda meta: (triton.cdiv(EXPERTS, meta["BLOCK_E"]),)](
        chunk_counts, chunk_starts, counts, chunks, E=EXPERTS
    )
    copy_kernel[lambda meta: (T, triton.cdiv(H, meta["BLOCK_H"]))](
        hidden, ids, ranks, chunk_starts, counts, rows, offsets, pairs, T,
        H=H, E=EXPERTS, E_PADDED=EXPERTS_PADDED, K=TOP_K, CHUNK_T=CHUNK_TOKENS,
    )  # fmt: skip


def moe_dispatch_384expert(hidden, logits, bias):
    """hidden [T, 7168] bf16, logits [T, 384] fp32, bias [384] fp32 -> rows, offsets, ids, weights, pairs."""
    T, H = hidden.shape
    device = hidden.device
    rows = torch.empty((TOP_K * T, H), dtype=hidden.dtype, device=device)
    offsets = torch.empty((EXPERTS + 1,), dtype=torch.int32, device=device)
    ids = torch.empty((T, TOP_K), dtype=torch.int32, device=device)
    weights = torch.empty((T, TOP_K), dtype=torch.float32, device=device)
    pairs = torch.empty((TOP_K * T,), dtype=torch.int32, device=device)
    if T > ONE_LAUNCH_TOKENS:
        dispatch_many(hidden, logits, bias, rows, offsets, ids, weights, pairs)
        return rows, offsets, ids, weights, pairs
    dispatch_kernel[lambda meta: (T, triton.cdiv(H, meta["BLOCK_H"]))](
        hidden, logits, bias, rows, offsets, ids, weights, pairs, T, EPSILON=WEIGHT_EPSILON,
        SCALING=ROUTED_SCALING, H=H, E=EXPERTS, E_PADDED=EXPERTS_PADDED, K=TOP_K,
        T_PADDED=triton.next_power_of_2(T),
    )  # fmt: skip
    return rows, offsets, ids, weights, pairs
