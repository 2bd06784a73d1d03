"""MLA decode of Kimi K2.6 in the absorbed form, one query token a sequence, over a paged bf16 cache.

A slot of the cache is 576 bf16 values: 512 latent, then 64 rotary. The reference works in float64 on the cache as it
is. Inputs, their kinds and what stale slots and unused table entries hold are those of `kernelgen.targets.paged_mla`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernelgen.targets import paged_mla
from kernelgen.targets.compare import ToleranceTable
from kernelgen.targets.paged_mla import LATENT, PAGE, QUERY, flops

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["bytes_moved", "compare", "flops", "make_inputs", "reference"]

SLOT_BYTES = 2 * QUERY


class Bf16Cache:
    """Pools [P, 64, 576] bf16."""

    def empty(self, pages: int, device: Any) -> Tensor:
        """An uninitialised pool."""
        import torch

        return torch.empty(pages, PAGE, QUERY, dtype=torch.bfloat16, device=device)

    def write(self, pages: Tensor, latent: Tensor, rope: Tensor) -> None:
        """Round latent and rope into the pages."""
        pages[:, :, :LATENT] = latent.reshape(-1, PAGE, LATENT).bfloat16()
        pages[:, :, LATENT:] = rope.reshape(-1, PAGE, QUERY - LATENT).bfloat16()

    def read(self, slots: Tensor) -> tuple[Tensor, Tensor]:
        """Slots [n, 576] bf16 as float64."""
        return slots[:, :LATENT].double(), slots[:, LATENT:].double()

    def scale_latent(self, pool: Tensor, factor: Tensor) -> None:
        """Multiply the first 512 values."""
        pool[:, :, :LATENT] *= factor[:, :, None].bfloat16()

    def scale_rope(self, pool: Tensor, factor: Tensor) -> None:
        """Multiply the last 64 values."""
        pool[:, :, LATENT:] *= factor[:, :, None].bfloat16()

    def write_rope(self, pool: Tensor, page: Tensor, slot: Tensor, rope: Tensor) -> None:
        """Set the last 64 values of single slots."""
        pool[page, slot, LATENT:] = rope.bfloat16()


def make_inputs(dims: dict[str, int], kind: str, seed: int, device: str) -> dict[str, Any]:
    """q [B, h, 576] bf16, kv_pages [(B+1)*ceil(S/64), 64, 576] bf16, block_table [B, ceil(S/64)] int32,
    seqlens [B] int32 on `device` and sm_scale (float); kinds as in `paged_mla.make_inputs`.

    Raises ConfigError for an unknown kind.
    """
    return paged_mla.make_inputs(Bf16Cache(), "mla_decode_bf16", dims, kind, seed, device)


def reference(q: Tensor, kv_pages: Tensor, block_table: Tensor, seqlens: Tensor, sm_scale: float) -> tuple[Tensor, ...]:
    """(out [B, h, 512] bf16, lse [B, h] fp32, natural logarithm), computed in float64 sequence by sequence."""
    return paged_mla.reference(Bf16Cache(), q, kv_pages, block_table, seqlens, sm_scale)


def compare(inputs: dict[str, Any], expected: Any, got: Any, tolerance: ToleranceTable) -> list[str]:
    """What is wrong with `got`, a sentence each; empty where nothing is. `expected` is the reference's answer.

    Raises ConfigError where the tolerance table lacks an output.
    """
    return paged_mla.compare(expected, got, tolerance)


def bytes_moved(dims: dict[str, int]) -> float:
    """1152 bytes a token at full length, queries and outputs in bf16, lse, page table and lengths, once each."""
    return paged_mla.bytes_moved(dims, SLOT_BYTES)
