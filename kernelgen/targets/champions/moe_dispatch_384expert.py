"""Naive dispatch: choose, count, scan, scatter and gather, a launch each; deterministic, without atomics.

Each block of experts reads all ids to find its pairs, and every row is copied by a program of its own.
"""

import torch
import triton
import triton.language as tl

AUTOTUNE_CONFIGS = {
    "gate_kernel": [triton.Config({}, num_warps=4)],
    "count_kernel": [triton.Config({"BLOCK_E": 8, "BLOCK_P": 1024}, num_warps=4)],
    "scan_kernel": [triton.Config({}, num_warps=4)],
    "scatter_kernel": [triton.Config({"BLOCK_E": 8, "BLOCK_P": 1024}, num_warps=4)],
    "gather_kernel": [triton.Config({"BLOCK_H": 1024}, num_warps=4)],
}
HIDDEN = 7168
EXPERTS = 384
# the next power of two: Triton's blocks have no other sizes
EXPERTS_PADDED = 512
CHOSEN = 8


@triton.autotune(configs=AUTOTUNE_CONFIGS["gate_kernel"], key=[])
@triton.jit
def gate_kernel(
    logits_ptr,
    bias_ptr,
    ids_ptr,
    weights_ptr,
    EXPERTS: tl.constexpr,
    EXPERTS_PADDED: tl.constexpr,
    CHOSEN: tl.constexpr,
):
    """One token: ids [T, 8] int32 and weights [T, 8] fp32."""
    token = tl.program_id(0).to(tl.int64)
    experts = tl.arange(0, EXPERTS_PADDED)
    inside = experts < EXPERTS
    score = tl.sigmoid(tl.load(logits_ptr + token * EXPERTS + experts, mask=inside, other=0.0))
    biased = score + tl.load(bias_ptr + experts, mask=inside, other=0.0)
    biased = tl.where(inside, biased, float("-inf"))
    slots = tl.arange(0, CHOSEN)
    ids = tl.zeros((CHOSEN,), dtype=tl.int32)
    weights = tl.zeros((CHOSEN,), dtype=tl.float32)
    for k in range(CHOSEN):
        best = tl.max(biased, axis=0)
        # the lowest index among equals
        expert = tl.min(tl.where(biased == best, experts, EXPERTS_PADDED), axis=0)
        ids = tl.where(slots == k, expert, ids)
        weights = tl.where(slots == k, tl.sum(tl.where(experts == expert, score, 0.0), axis=0), weights)
        biased = tl.where(experts == expert, float("-inf"), biased)
    weights = weights / (tl.sum(weights, axis=0) + 1e-20) * 2.827
    tl.store(ids_ptr + token * CHOSEN + slots, ids)
    tl.store(weights_ptr + token * CHOSEN + slots, weights)


@triton.autotune(configs=AUTOTUNE_CONFIGS["count_kernel"], key=["n_pairs"])
@triton.jit
def count_kernel(ids_ptr, counts_ptr, n_pairs, EXPERTS: tl.constexpr, BLOCK_E: tl.constexpr, BLOCK_P: tl.constexpr):
    """BLOCK_E experts: how many pairs chose each."""
    experts = tl.program_id(0) * BLOCK_E + tl.arange(0, BLOCK_E)
    counts = tl.zeros((BLOCK_E,), dtype=tl.int32)
    for start in range(0, n_pairs, BLOCK_P):
        pairs = start + tl.arange(0, BLOCK_P)
        ids = tl.load(ids_ptr + pairs, mask=pairs < n_pairs, other=-1)
        counts += tl.sum((ids[None, :] == experts[:, None]).to(tl.int32), axis=1)
    tl.store(counts_ptr + experts, counts, mask=experts < EXPERTS)


@triton.autotune(configs=AUTOTUNE_CONFIGS["scan_kernel"], key=[])
@triton.jit
def scan_kernel(counts_ptr, offsets_ptr, EXPERTS: tl.constexpr, EXPERTS_PADDED: tl.constexpr):
    """Counts [384] to offsets [385], in one program."""
    experts = tl.arange(0, EXPERTS_PADDED)
    counts = tl.load(counts_ptr + experts, mask=experts < EXPERTS, other=0)
    # entry e + 1 is the sum up to and with expert e
    tl.store(offsets_ptr + 1 + experts, tl.cumsum(counts, axis=0), mask=experts < EXPERTS)
    tl.store(offsets_ptr + experts, tl.zeros_like(counts), mask=experts == 0)


@triton.autotune(configs=AUTOTUNE_CONFIGS["scatter_kernel"], key=["n_pairs"])
@triton.jit
def scatter_kernel(
    ids_ptr, offsets_ptr, pairs_ptr, n_pairs, EXPERTS: tl.constexpr, BLOCK_E: tl.constexpr, BLOCK_P: tl.constexpr
):
    """BLOCK_E experts: the pairs of each, by rising index, into its slots."""
    experts = tl.program_id(0) * BLOCK_E + tl.arange(0, BLOCK_E)
    slot = tl.load(offsets_ptr + experts, mask=experts < EXPERTS, other=0)
    for start in range(0, n_pairs, BLOCK_P):
        pairs = start + tl.arange(0, BLOCK_P)
        ids = tl.load(ids_ptr + pairs, mask=pairs < n_pairs, other=-1)
        own = (ids[None, :] == experts[:, None]).to(tl.int32)
        place = slot[:, None] + tl.cumsum(own, axis=1) - 1
        tl.store(pairs_ptr + place, pairs[None, :] + tl.zeros_like(place), mask=own == 1)
        slot += tl.sum(own, axis=1)


@triton.autotune(configs=AUTOTUNE_CONFIGS["gather_kernel"], key=["n_pairs"])
@triton.jit
def gather_kernel(
    hidden_ptr, pairs_ptr, rows_ptr, n_pairs, HIDDEN: tl.constexpr, CHOSEN: tl.constexpr, BLOCK_H: tl.constexpr
):
    """One slot: its token's row."""
    slot = tl.program_id(0).to(tl.int64)
    token = tl.load(pairs_ptr + slot).to(tl.int64) // CHOSEN
    for start in range(0, HIDDEN, BLOCK_H):
        columns = start + tl.arange(0, BLOCK_H)
        inside = columns < HIDDEN
        row = tl.load(hidden_ptr + token * HIDDEN + columns, mask=inside)
        tl.store(rows_ptr + slot * HIDDEN + columns, row, mask=inside)


def moe_dispatch_384expert(hidden, logits, bias):
    """(rows, offsets, ids, weights, pairs) of hidden [T, 7168] bf16, logits [T, 384] fp32 and bias [384] fp32."""
    tokens = hidden.shape[0]
    n_pairs = tokens * CHOSEN
    device = hidden.device
    rows = torch.empty((n_pairs, HIDDEN), dtype=torch.bfloat16, device=device)
    offsets = torch.empty((EXPERTS + 1,), dtype=torch.int32, device=device)
    ids = torch.empty((tokens, CHOSEN), dtype=torch.int32, device=device)
    weights = torch.empty((tokens, CHOSEN), dtype=torch.float32, device=device)
    pairs = torch.empty((n_pairs,), dtype=torch.int32, device=device)
    counts = torch.empty((EXPERTS,), dtype=torch.int32, device=device)

    def expert_blocks(meta):
        return (triton.cdiv(EXPERTS, meta["BLOCK_E"]),)

    gate_kernel[(tokens,)](logits, bias, ids, weights, EXPERTS=EXPERTS, EXPERTS_PADDED=EXPERTS_PADDED, CHOSEN=CHOSEN)
    count_kernel[expert_blocks](ids, counts, n_pairs, EXPERTS=EXPERTS)
    scan_kernel[(1,)](counts, offsets, EXPERTS=EXPERTS, EXPERTS_PADDED=EXPERTS_PADDED)
    scatter_kernel[expert_blocks](ids, offsets, pairs, n_pairs, EXPERTS=EXPERTS)
    gather_kernel[(n_pairs,)](hidden, pairs, rows, n_pairs, HIDDEN=HIDDEN, CHOSEN=CHOSEN)
    return rows, offsets, ids, weights, pairs
