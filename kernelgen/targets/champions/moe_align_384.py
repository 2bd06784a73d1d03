"""Naive align: count, scan and scatter, a launch each; deterministic, without atomics.

Each block of experts reads all ids to find its pairs, and fills its padding itself.
"""

import torch
import triton
import triton.language as tl

AUTOTUNE_CONFIGS = {
    "count_kernel": [triton.Config({"BLOCK_E": 8, "BLOCK_P": 1024}, num_warps=4)],
    "scan_kernel": [triton.Config({}, num_warps=4)],
    "scatter_kernel": [triton.Config({"BLOCK_E": 8, "BLOCK_P": 1024}, num_warps=4)],
    "blocks_kernel": [triton.Config({"BLOCK_B": 32, "BLOCK_P": 32}, num_warps=4)],
}
CHOSEN = 8


@triton.autotune(configs=AUTOTUNE_CONFIGS["count_kernel"], key=["n_pairs"])
@triton.jit
def count_kernel(ids_ptr, counts_ptr, n_pairs, experts, BLOCK_E: tl.constexpr, BLOCK_P: tl.constexpr):
    """BLOCK_E experts: how many pairs chose each."""
    own_experts = tl.program_id(0) * BLOCK_E + tl.arange(0, BLOCK_E)
    counts = tl.zeros((BLOCK_E,), dtype=tl.int32)
    for start in range(0, n_pairs, BLOCK_P):
        pairs = start + tl.arange(0, BLOCK_P)
        ids = tl.load(ids_ptr + pairs, mask=pairs < n_pairs, other=-1)
        counts += tl.sum((ids[None, :] == own_experts[:, None]).to(tl.int32), axis=1)
    tl.store(counts_ptr + own_experts, counts, mask=own_experts < experts)


@triton.autotune(configs=AUTOTUNE_CONFIGS["scan_kernel"], key=[])
@triton.jit
def scan_kernel(counts_ptr, ends_ptr, padded_ptr, block_m, experts, EXPERTS_PADDED: tl.constexpr):
    """Counts [E] to the ends [E] of the experts' padded ranges and the padded length, in one program."""
    every = tl.arange(0, EXPERTS_PADDED)
    counts = tl.load(counts_ptr + every, mask=every < experts, other=0)
    padded = (counts + block_m - 1) // block_m * block_m
    tl.store(ends_ptr + every, tl.cumsum(padded, axis=0), mask=every < experts)
    tl.store(padded_ptr, tl.sum(padded, axis=0))


@triton.autotune(configs=AUTOTUNE_CONFIGS["scatter_kernel"], key=["n_pairs"])
@triton.jit
def scatter_kernel(
    ids_ptr, counts_ptr, ends_ptr, sorted_ptr, slots_ptr, n_pairs, block_m, experts,
    BLOCK_E: tl.constexpr, BLOCK_P: tl.constexpr,
):  # fmt: skip
    """BLOCK_E experts: the pairs of each, by rising index, into its slots, and padding after them.

    The first program also gives the pairs without an expert their -1.
    """
    own_experts = tl.program_id(0) * BLOCK_E + tl.arange(0, BLOCK_E)
    inside = own_experts < experts
    count = tl.load(counts_ptr + own_experts, mask=inside, other=0)
    end = tl.load(ends_ptr + own_experts, mask=inside, other=0)
    slot = end - (count + block_m - 1) // block_m * block_m
    for start in range(0, n_pairs, BLOCK_P):
        pairs = start + tl.arange(0, BLOCK_P)
        ids = tl.load(ids_ptr + pairs, mask=pairs < n_pairs, other=-1)
        own = (ids[None, :] == own_experts[:, None]) & (ids >= 0)[None, :]
        place = slot[:, None] + tl.cumsum(own.to(tl.int32), axis=1) - 1
        spread = pairs[None, :] + tl.zeros_like(place)
        tl.store(sorted_ptr + place, spread, mask=own)
        tl.store(slots_ptr + spread, place, mask=own)
        first = (tl.program_id(0) == 0) & (pairs < n_pairs)
        tl.store(slots_ptr + pairs, tl.zeros_like(pairs) - 1, mask=first & (ids < 0))
        slot += tl.sum(own.to(tl.int32), axis=1)
    for start in range(0, block_m, BLOCK_P):
        place = slot[:, None] + start + tl.arange(0, BLOCK_P)[None, :]
        tl.store(sorted_ptr + place, tl.zeros_like(place) + n_pairs, mask=place < end[:, None])


@triton.autotune(configs=AUTOTUNE_CONFIGS["blocks_kernel"], key=["n_blocks"])
@triton.jit
def blocks_kernel(
    ends_ptr, blocks_ptr, sorted_ptr, n_blocks, n_pairs, capacity, block_m, experts,
    EXPERTS_PADDED: tl.constexpr, BLOCK_B: tl.constexpr, BLOCK_P: tl.constexpr,
):  # fmt: skip
    """BLOCK_B blocks: the expert of each, or past the padded length -1 and slots of padding."""
    blocks = tl.program_id(0) * BLOCK_B + tl.arange(0, BLOCK_B)
    every = tl.arange(0, EXPERTS_PADDED)
    ends = tl.load(ends_ptr + every, mask=every < experts, other=0)
    before = (ends[None, :] <= (blocks * block_m)[:, None]) & (every < experts)[None, :]
    expert = tl.sum(before.to(tl.int32), axis=1)
    tl.store(blocks_ptr + blocks, tl.where(expert < experts, expert, -1), mask=blocks < n_blocks)
    # a block with an expert has no slots to fill here
    length = tl.where(expert < experts, 0, block_m)
    for start in range(0, block_m, BLOCK_P):
        offset = start + tl.arange(0, BLOCK_P)[None, :]
        place = (blocks * block_m)[:, None] + offset
        tl.store(
            sorted_ptr + place, tl.zeros_like(place) + n_pairs, mask=(offset < length[:, None]) & (place < capacity)
        )


def moe_align_384(ids, block_m, experts):
    """(sorted_pairs, block_experts, padded, slots) of ids [T, 8] int32; block_m rows a block, ids below experts."""
    n_pairs = ids.shape[0] * CHOSEN
    capacity = n_pairs + experts * (block_m - 1)
    n_blocks = triton.cdiv(capacity, block_m)
    experts_padded = triton.next_power_of_2(experts)
    counts, ends, padded, sorted_pairs, block_experts = (
        torch.empty((size,), dtype=torch.int32, device=ids.device) for size in (experts, experts, 1, capacity, n_blocks)
    )
    slots = torch.empty_like(ids)

    def expert_blocks(meta):
        return (triton.cdiv(experts, meta["BLOCK_E"]),)

    def block_blocks(meta):
        return (triton.cdiv(n_blocks, meta["BLOCK_B"]),)

    count_kernel[expert_blocks](ids, counts, n_pairs, experts)
    scan_kernel[(1,)](counts, ends, padded, block_m, experts, EXPERTS_PADDED=experts_padded)
    scatter_kernel[expert_blocks](ids, counts, ends, sorted_pairs, slots, n_pairs, block_m, experts)
    blocks_kernel[block_blocks](
        ends, block_experts, sorted_pairs, n_blocks, n_pairs, capacity, block_m, experts, EXPERTS_PADDED=experts_padded
    )
    return sorted_pairs, block_experts, padded, slots
