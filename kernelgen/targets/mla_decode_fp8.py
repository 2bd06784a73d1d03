"""MLA decode of Kimi K2.6 in the absorbed form, one query token a sequence, over a paged fp8 cache.

A slot of the cache is 656 bytes: 512 e4m3 values, 4 fp32 scales of 128 values each, 64 bf16 rotary values (layout of
deepseek-ai/FlashMLA). The reference works in float64 on the dequantised cache. Every byte of the pool is finite data:
slots past a sequence's end hold stale tokens eight times as large, and unused table entries name pages of the pool that
are not the sequence's, so that a kernel which ignores the lengths is wrong and not merely lucky. Lengths are 1 or more.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from kernelgen.errors import ConfigError, nearest
from kernelgen.targets.compare import ToleranceTable, element_distance, structure, vector_distance

if TYPE_CHECKING:
    from torch import Generator, Tensor

LATENT = 512
ROPE = 64
QUERY = LATENT + ROPE
GROUP = 128
GROUPS = LATENT // GROUP
PAGE = 64
SLOT_BYTES = LATENT + 4 * GROUPS + 2 * ROPE
# where the parts of a slot begin, counted in elements of their own dtype
SCALE_AT = LATENT // 4
ROPE_AT = (LATENT + 4 * GROUPS) // 2
E4M3_LARGEST = 448.0
STALE_FACTOR = 8.0
# size of a spike along the heads' shared direction: it outweighs thousands of ordinary tokens, and three share the mass
SPIKE = 1.5
OUTPUTS = ("out", "lse")
# the yarn factor of the rotary embedding sets sm_scale: 64 for K2.6, 32 for K2
YARN_FACTORS = {"plain": 64, "skewed": 64, "ragged": 32, "stressed": 64}
# pages built at once, so that making a large pool needs little memory beside it
PAGES_AT_ONCE = 4096


def make_inputs(dims: dict[str, int], kind: str, seed: int, device: str) -> dict[str, Any]:
    """q [B, h, 576] bf16, kv_pages [(B+1)*ceil(S/64), 64, 656] uint8, block_table [B, ceil(S/64)] int32,
    seqlens [B] int32 on `device` and sm_scale (float), the same for the same seed.

    plain: every length S. skewed: one of length S, the others by Zipf's law. ragged: any length from 1 to S, a 1 among
    them. stressed: length S less a part of a page; a spike at the first, the last and a random token; values of
    sequences in turn 1, 1/8 and 1/64 as large; head 0 all zero, so that its softmax is uniform. Raises ConfigError for
    an unknown kind.
    """
    import torch

    if kind not in YARN_FACTORS:
        raise ConfigError(f"mla_decode_fp8 has no input kind '{kind}'{nearest(kind, YARN_FACTORS)}")
    generator = torch.Generator(device=device).manual_seed(seed)
    batch, longest, heads = dims["B"], dims["S"], dims["h"]
    entries = -(-longest // PAGE)
    lengths = _lengths(kind, batch, longest, generator)
    order = torch.randperm((batch + 1) * entries, generator=generator, device=device).reshape(batch + 1, entries)
    table = order[:batch]
    pool = _random_pool((batch + 1) * entries, generator)
    query = torch.randn(batch, heads, QUERY, generator=generator, device=device)
    if kind == "stressed":
        _stress(query, pool, table, lengths, generator)
    _make_stale(pool, table, lengths)
    used = torch.arange(entries, device=device) * PAGE < lengths[:, None]
    return {
        "q": query.bfloat16(),
        "kv_pages": pool,
        # unused entries: the next sequence's pages, or for the last one pages of no sequence
        "block_table": torch.where(used, table, order[1:]).int(),
        "seqlens": lengths.int(),
        "sm_scale": softmax_scale(YARN_FACTORS[kind]),
    }


def reference(q: Tensor, kv_pages: Tensor, block_table: Tensor, seqlens: Tensor, sm_scale: float) -> tuple[Tensor, ...]:
    """(out [B, h, 512] bf16, lse [B, h] fp32, natural logarithm), computed in float64 sequence by sequence."""
    import torch

    batch, heads, _ = q.shape
    out = torch.empty(batch, heads, LATENT, dtype=torch.float64, device=q.device)
    lse = torch.empty(batch, heads, dtype=torch.float64, device=q.device)
    for sequence, length in enumerate(seqlens.tolist()):
        pages = block_table[sequence, : -(-length // PAGE)].long()
        latent, rope = dequantise(kv_pages[pages].reshape(-1, SLOT_BYTES)[:length])
        query = q[sequence].double()
        scores = sm_scale * (query[:, :LATENT] @ latent.T + query[:, LATENT:] @ rope.T)
        lse[sequence] = scores.logsumexp(dim=-1)
        out[sequence] = scores.softmax(dim=-1) @ latent
    return out.bfloat16(), lse.float()


def compare(inputs: dict[str, Any], expected: Any, got: Any, tolerance: ToleranceTable) -> list[str]:
    """What is wrong with `got`, a sentence each; empty where nothing is. `expected` is the reference's answer.

    Raises ConfigError where the tolerance table lacks an output.
    """
    faults = structure(OUTPUTS, expected, got)
    if faults:
        return faults
    return vector_distance("out", expected[0], got[0], tolerance) + element_distance(
        "lse", expected[1], got[1], tolerance
    )


def flops(dims: dict[str, int]) -> float:
    """2 * B * h * S * (576 + 512): the two products at full length; softmax and dequantisation count for nothing."""
    return 2.0 * dims["B"] * dims["h"] * dims["S"] * (QUERY + LATENT)


def bytes_moved(dims: dict[str, int]) -> float:
    """656 bytes a token at full length, queries and outputs in bf16, lse, page table and lengths, once each."""
    batch, longest, heads = dims["B"], dims["S"], dims["h"]
    vectors = 2.0 * batch * heads * (QUERY + LATENT) + 4.0 * batch * heads
    return batch * longest * float(SLOT_BYTES) + vectors + 4.0 * batch * (-(-longest // PAGE) + 1)


def softmax_scale(yarn_factor: float) -> float:
    """192^-0.5 * (0.1 ln(factor) + 1)^2: head size 128 + 64 and yarn's correction (DeepSeek-V3 modelling code)."""
    return float(192**-0.5 * (0.1 * math.log(yarn_factor) + 1.0) ** 2)


def dequantise(slots: Tensor) -> tuple[Tensor, Tensor]:
    """Slots [n, 656] uint8 to (latent [n, 512], rope [n, 64]) in float64, exactly."""
    import torch

    codes = slots[:, :LATENT].contiguous().view(torch.float8_e4m3fn).double()
    scales = slots.view(torch.float32)[:, SCALE_AT : SCALE_AT + GROUPS].double()
    latent = (codes.reshape(-1, GROUPS, GROUP) * scales[:, :, None]).reshape(-1, LATENT)
    return latent, slots.view(torch.bfloat16)[:, ROPE_AT:].double()


def quantise(latent: Tensor, rope: Tensor) -> Tensor:
    """Latent [n, 512] fp32 and rope [n, 64] to slots [n, 656] uint8; each scale is its group's amax / 448."""
    import torch

    groups = latent.reshape(-1, GROUPS, GROUP)
    scales = groups.abs().amax(dim=-1).clamp(min=torch.finfo(torch.float32).tiny) / E4M3_LARGEST
    codes = (groups / scales[:, :, None]).clamp(-E4M3_LARGEST, E4M3_LARGEST).to(torch.float8_e4m3fn)
    parts = (codes.reshape(-1, LATENT), scales, rope.bfloat16())
    return torch.cat([part.contiguous().view(torch.uint8) for part in parts], dim=-1)


def _lengths(kind: str, batch: int, longest: int, generator: Generator) -> Tensor:
    """Lengths [B] int64 on the generator's device."""
    import torch

    device = generator.device
    if kind == "plain":
        return torch.full((batch,), longest, device=device)
    if kind == "stressed":
        part = torch.randint(1, PAGE, (batch,), generator=generator, device=device)
        return (longest - part).clamp(min=1)
    order = torch.randperm(batch, generator=generator, device=device)
    if kind == "skewed":
        return (longest // (order + 1)).clamp(min=1)
    lengths = torch.randint(1, longest + 1, (batch,), generator=generator, device=device)
    # with a single sequence the length itself stays ragged
    return torch.where(order == 1, torch.ones_like(lengths), lengths)


def _random_pool(pages: int, generator: Generator) -> Tensor:
    """A pool [pages, 64, 656] uint8 of normal latents and rotary parts."""
    import torch

    device = generator.device
    pool = torch.empty(pages, PAGE, SLOT_BYTES, dtype=torch.uint8, device=device)
    for start in range(0, pages, PAGES_AT_ONCE):
        part = pool[start : start + PAGES_AT_ONCE]
        normal = torch.randn(part.shape[0] * PAGE, QUERY, generator=generator, device=device)
        part.copy_(quantise(normal[:, :LATENT], normal[:, LATENT:]).reshape(part.shape))
    return pool


def _make_stale(pool: Tensor, table: Tensor, lengths: Tensor) -> None:
    """Multiplies every slot that belongs to no token by STALE_FACTOR, in place."""
    import torch

    position = torch.arange(table.shape[1] * PAGE, device=pool.device).reshape(1, -1, PAGE)
    factor = torch.full(pool.shape[:2], STALE_FACTOR, device=pool.device)
    factor[table] = torch.where(position < lengths[:, None, None], 1.0, STALE_FACTOR)
    pool.view(torch.float32)[:, :, SCALE_AT : SCALE_AT + GROUPS] *= factor[:, :, None]
    pool.view(torch.bfloat16)[:, :, ROPE_AT:] *= factor[:, :, None].bfloat16()


def _stress(query: Tensor, pool: Tensor, table: Tensor, lengths: Tensor, generator: Generator) -> None:
    """Spikes, amplitudes and a zero head, in place; see `make_inputs`."""
    import torch

    device = pool.device
    # a direction that all heads of a sequence share: a token along it is a spike for each of them
    shared = torch.randn(query.shape[0], ROPE, generator=generator, device=device)
    query[:, :, LATENT:] = 0.5 * query[:, :, LATENT:] + shared[:, None, :]
    query[:, 0] = 0.0
    amplitude = torch.tensor([1.0, 2.0**-3, 2.0**-6], device=device)[torch.arange(len(lengths), device=device) % 3]
    pool.view(torch.float32)[table, :, SCALE_AT : SCALE_AT + GROUPS] *= amplitude[:, None, None, None]
    anywhere = (torch.rand(len(lengths), generator=generator, device=device) * lengths).long()
    every = torch.arange(len(lengths), device=device)
    spike = (SPIKE * shared).bfloat16()
    for position in (torch.zeros_like(lengths), lengths - 1, anywhere):
        pool.view(torch.bfloat16)[table[every, position // PAGE], position % PAGE, ROPE_AT:] = spike
