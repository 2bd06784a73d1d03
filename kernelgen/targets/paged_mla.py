"""Paged MLA decode of Kimi K2.6, whatever the cache stores: inputs, float64 reference, comparison and FLOPs.

A target brings its `Cache`: how a slot of a page holds the latent and the rotary part of one token. Every value of the
pool is finite data: slots past a sequence's end hold stale tokens eight times as large, and unused table entries name
pages of the pool that are not the sequence's, so that a kernel which ignores the lengths is wrong and not merely lucky.
Lengths are 1 or more. Does not run the kernel, and does not say what a slot costs.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Protocol

from kernelgen.errors import ConfigError, nearest
from kernelgen.targets.compare import ToleranceTable, element_distance, structure, vector_distance

if TYPE_CHECKING:
    from torch import Generator, Tensor

LATENT = 512
ROPE = 64
QUERY = LATENT + ROPE
PAGE = 64
STALE_FACTOR = 8.0
# size of a spike along the heads' shared direction: it outweighs thousands of ordinary tokens, and three share the mass
SPIKE = 1.5
# factors on the latents of a stressed batch's sequences in turn: powers of two, which every format multiplies exactly
AMPLITUDES = (1.0, 2.0**-3, 2.0**-6)
OUTPUTS = ("out", "lse")
# the yarn factor of the rotary embedding sets sm_scale: 64 for K2.6, 32 for K2
YARN_FACTORS = {"plain": 64, "skewed": 64, "ragged": 32, "stressed": 64}
# pages built at once, so that making a large pool needs little memory beside it
PAGES_AT_ONCE = 4096


class Cache(Protocol):
    """How a pool [P, 64, ...] of pages stores a token in each slot."""

    def empty(self, pages: int, device: Any) -> Tensor:
        """An uninitialised pool of that many pages."""

    def write(self, pages: Tensor, latent: Tensor, rope: Tensor) -> None:
        """Fill pages [n, 64, ...] with latent [64n, 512] fp32 and rope [64n, 64] fp32, in place."""

    def read(self, slots: Tensor) -> tuple[Tensor, Tensor]:
        """Slots [n, ...] as latent [n, 512] and rope [n, 64] in float64, exactly."""

    def scale_latent(self, pool: Tensor, factor: Tensor) -> None:
        """Multiply the latent of every slot by factor [P, 64], powers of two in fp32, in place."""

    def scale_rope(self, pool: Tensor, factor: Tensor) -> None:
        """Multiply the rotary part of every slot by factor [P, 64], powers of two in fp32, in place."""

    def write_rope(self, pool: Tensor, page: Tensor, slot: Tensor, rope: Tensor) -> None:
        """Set the rotary part of slot [n] of page [n] to rope [n, 64], rounded to bf16, in place."""


def make_inputs(cache: Cache, target: str, dims: dict[str, int], kind: str, seed: int, device: str) -> dict[str, Any]:
    """q [B, h, 576] bf16, kv_pages [(B+1)*ceil(S/64), 64, ...], block_table [B, ceil(S/64)] int32, seqlens [B] int32 on
    `device` and sm_scale (float), the same for the same seed.

    plain: every length S. skewed: one of length S, the others by Zipf's law. ragged: any length from 1 to S, a 1 among
    them. stressed: length S less a part of a page; a spike at the first, the last and a random token; values of
    sequences in turn 1, 1/8 and 1/64 as large; head 0 all zero, so that its softmax is uniform. Raises ConfigError,
    naming `target`, for an unknown kind.
    """
    import torch

    if kind not in YARN_FACTORS:
        raise ConfigError(f"{target} has no input kind '{kind}'{nearest(kind, YARN_FACTORS)}")
    generator = torch.Generator(device=device).manual_seed(seed)
    batch, longest, heads = dims["B"], dims["S"], dims["h"]
    entries = -(-longest // PAGE)
    lengths = _lengths(kind, batch, longest, generator)
    order = torch.randperm((batch + 1) * entries, generator=generator, device=device).reshape(batch + 1, entries)
    table = order[:batch]
    pool = _random_pool(cache, (batch + 1) * entries, generator)
    query = torch.randn(batch, heads, QUERY, generator=generator, device=device)
    if kind == "stressed":
        _stress(cache, query, pool, table, lengths, generator)
    _make_stale(cache, pool, table, lengths)
    used = torch.arange(entries, device=device) * PAGE < lengths[:, None]
    return {
        "q": query.bfloat16(),
        "kv_pages": pool,
        # unused entries: the next sequence's pages, or for the last one pages of no sequence
        "block_table": torch.where(used, table, order[1:]).int(),
        "seqlens": lengths.int(),
        "sm_scale": softmax_scale(YARN_FACTORS[kind]),
    }


def reference(
    cache: Cache, q: Tensor, kv_pages: Tensor, block_table: Tensor, seqlens: Tensor, sm_scale: float
) -> tuple[Tensor, ...]:
    """(out [B, h, 512] bf16, lse [B, h] fp32, natural logarithm), computed in float64 sequence by sequence."""
    import torch

    batch, heads, _ = q.shape
    out = torch.empty(batch, heads, LATENT, dtype=torch.float64, device=q.device)
    lse = torch.empty(batch, heads, dtype=torch.float64, device=q.device)
    for sequence, length in enumerate(seqlens.tolist()):
        pages = block_table[sequence, : -(-length // PAGE)].long()
        latent, rope = cache.read(kv_pages[pages].flatten(0, 1)[:length])
        query = q[sequence].double()
        scores = sm_scale * (query[:, :LATENT] @ latent.T + query[:, LATENT:] @ rope.T)
        lse[sequence] = scores.logsumexp(dim=-1)
        out[sequence] = scores.softmax(dim=-1) @ latent
    return out.bfloat16(), lse.float()


def compare(expected: Any, got: Any, tolerance: ToleranceTable) -> list[str]:
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


def bytes_moved(dims: dict[str, int], slot_bytes: int) -> float:
    """slot_bytes a token at full length, queries and outputs in bf16, lse, page table and lengths, once each."""
    batch, longest, heads = dims["B"], dims["S"], dims["h"]
    vectors = 2.0 * batch * heads * (QUERY + LATENT) + 4.0 * batch * heads
    return batch * longest * float(slot_bytes) + vectors + 4.0 * batch * (-(-longest // PAGE) + 1)


def softmax_scale(yarn_factor: float) -> float:
    """192^-0.5 * (0.1 ln(factor) + 1)^2: head size 128 + 64 and yarn's correction (DeepSeek-V3 modelling code)."""
    return float(192**-0.5 * (0.1 * math.log(yarn_factor) + 1.0) ** 2)


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


def _random_pool(cache: Cache, pages: int, generator: Generator) -> Tensor:
    """A pool [pages, 64, ...] of normal latents and rotary parts."""
    import torch

    pool = cache.empty(pages, generator.device)
    for start in range(0, pages, PAGES_AT_ONCE):
        part = pool[start : start + PAGES_AT_ONCE]
        normal = torch.randn(part.shape[0] * PAGE, QUERY, generator=generator, device=generator.device)
        cache.write(part, normal[:, :LATENT], normal[:, LATENT:])
    return pool


def _make_stale(cache: Cache, pool: Tensor, table: Tensor, lengths: Tensor) -> None:
    """Multiplies every slot that belongs to no token by STALE_FACTOR, in place."""
    import torch

    position = torch.arange(table.shape[1] * PAGE, device=pool.device).reshape(1, -1, PAGE)
    factor = torch.full(pool.shape[:2], STALE_FACTOR, device=pool.device)
    factor[table] = torch.where(position < lengths[:, None, None], 1.0, STALE_FACTOR)
    cache.scale_latent(pool, factor)
    cache.scale_rope(pool, factor)


def _stress(cache: Cache, query: Tensor, pool: Tensor, table: Tensor, lengths: Tensor, generator: Generator) -> None:
    """Spikes, amplitudes and a zero head, in place; see `make_inputs`."""
    import torch

    device = pool.device
    # a direction that all heads of a sequence share: a token along it is a spike for each of them
    shared = torch.randn(query.shape[0], ROPE, generator=generator, device=device)
    query[:, :, LATENT:] = 0.5 * query[:, :, LATENT:] + shared[:, None, :]
    query[:, 0] = 0.0
    every = torch.arange(len(lengths), device=device)
    factor = torch.ones(pool.shape[:2], device=device)
    factor[table] = torch.tensor(AMPLITUDES, device=device)[every % len(AMPLITUDES), None, None]
    cache.scale_latent(pool, factor)
    anywhere = (torch.rand(len(lengths), generator=generator, device=device) * lengths).long()
    for position in (torch.zeros_like(lengths), lengths - 1, anywhere):
        cache.write_rope(pool, table[every, position // PAGE], position % PAGE, SPIKE * shared)
