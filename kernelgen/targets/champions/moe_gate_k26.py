"""Naive gate: a program for each token picks the best of its 384 scores eight times over."""

import torch
import triton
import triton.language as tl

AUTOTUNE_CONFIGS = {
    "gate_kernel": [triton.Config({}, num_warps=4)],
}
EXPERTS = 384
# the next power of two: Triton's blocks have no other sizes
EXPERTS_PADDED = 512
CHOSEN = 8


@triton.autotune(configs=AUTOTUNE_CONFIGS["gate_kernel"], key=[])
@triton.jit
def gate_kernel(
    logits_ptr,
    bias_ptr,
    weights_ptr,
    ids_ptr,
    EXPERTS: tl.constexpr,
    EXPERTS_PADDED: tl.constexpr,
    CHOSEN: tl.constexpr,
):
    """One token: weights [T, 8] fp32 and ids [T, 8] int32."""
    token = tl.program_id(0).to(tl.int64)
    experts = tl.arange(0, EXPERTS_PADDED)
    inside = experts < EXPERTS
    logit = tl.load(logits_ptr + token * EXPERTS + experts, mask=inside, other=0.0)
    # a NaN would be larger than nothing and equal to nothing: it counts as -inf
    score = tl.sigmoid(tl.where(logit == logit, logit, float("-inf")))
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
    tl.store(weights_ptr + token * CHOSEN + slots, weights)
    tl.store(ids_ptr + token * CHOSEN + slots, ids)


def moe_gate_k26(logits, bias):
    """(weights, ids) of logits [T, 384] fp32 and bias [384] fp32."""
    tokens = logits.shape[0]
    weights = torch.empty((tokens, CHOSEN), dtype=torch.float32, device=logits.device)
    ids = torch.empty((tokens, CHOSEN), dtype=torch.int32, device=logits.device)
    gate_kernel[(tokens,)](logits, bias, weights, ids, EXPERTS=EXPERTS, EXPERTS_PADDED=EXPERTS_PADDED, CHOSEN=CHOSEN)
    return weights, ids
