"""MLA decode of Kimi K2.6 in the absorbed form, one query token a sequence, over a paged fp8 cache.

A slot of the cache is 656 bytes: 512 e4m3 values, 4 fp32 scales of 128 values each, 64 bf16 rotary values (layout of
deepseek-ai/FlashMLA). The reference works in float64 on the dequantised cache. Inputs, their kinds and what stale slots
and unused table entries hold are those of `kernelgen.targets.paged_mla`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernelgen.targets import paged_mla
from kernelgen.targets.compare import ToleranceTable
from kernelgen.targets.paged_mla import LATENT, PAGE, ROPE, YARN_FACTORS, flops, softmax_scale

if TYPE_CHECKING:
    from torch import Tensor

__all__ = [
    "YARN_FACTORS",
    "bytes_moved",
    "compare",
    "dequantise",
    "flops",
    "make_inputs",
    "quantise",
    "reference",
    "softmax_scale",
]

GROUP = 128
GROUPS = LATENT // GROUP
SLOT_BYTES = LATENT + 4 * GROUPS + 2 * ROPE
# where the parts of a slot begin, counted in elements of their own dtype
SCALE_AT = LATENT // 4
ROPE_AT = (LATENT + 4 * GROUPS) // 2
E4M3_LARGEST = 448.0


class Fp8Cache:
    """Pools [P, 64, 656] uint8."""

    def empty(self, pages: int, device: Any) -> Tensor:
        """An uninitialised pool."""
        import torch

        return torch.empty(pages, PAGE, SLOT_BYTES, dtype=torch.uint8, device=device)

    def write(self, pages: Tensor, latent: Tensor, rope: Tensor) -> None:
        """Quantise latent and round rope into the pages."""
        pages.copy_(quantise(latent, rope).reshape(pages.shape))

    def read(self, slots: Tensor) -> tuple[Tensor, Tensor]:
        """Slots [n, 656] uint8 dequantised to float64."""
        return dequantise(slots)

    def scale_latent(self, pool: Tensor, factor: Tensor) -> None:
        """Multiply the scales."""
        import torch

        pool.view(torch.float32)[:, :, SCALE_AT : SCALE_AT + GROUPS] *= factor[:, :, None]

    def scale_rope(self, pool: Tensor, factor: Tensor) -> None:
        """Multiply the bf16 values."""
        import torch

        pool.view(torch.bfloat16)[:, :, ROPE_AT:] *= factor[:, :, None].bfloat16()

    def write_rope(self, pool: Tensor, page: Tensor, slot: Tensor, rope: Tensor) -> None:
        """Set the bf16 values of single slots."""
        import torch

        pool.view(torch.bfloat16)[page, slot, ROPE_AT:] = rope.bfloat16()


def make_inputs(dims: dict[str, int], kind: str, seed: int, device: str) -> dict[str, Any]:
    """q [B, h, 576] bf16, kv_pages [(B+1)*ceil(S/64), 64, 656] uint8, block_table [B, ceil(S/64)] int32,
    seqlens [B] int32 on `device` and sm_scale (float); kinds as in `paged_mla.make_inputs`.

    Raises ConfigError for an unknown kind.
    """
    return paged_mla.make_inputs(Fp8Cache(), "mla_decode_fp8", dims, kind, seed, device)


def reference(q: Tensor, kv_pages: Tensor, block_table: Tensor, seqlens: Tensor, sm_scale: float) -> tuple[Tensor, ...]:
    """(out [B, h, 512] bf16, lse [B, h] fp32, natural logarithm), computed in float64 sequence by sequence."""
    return paged_mla.reference(Fp8Cache(), q, kv_pages, block_table, seqlens, sm_scale)


def compare(inputs: dict[str, Any], expected: Any, got: Any, tolerance: ToleranceTable) -> list[str]:
    """What is wrong with `got`, a sentence each; empty where nothing is. `expected` is the reference's answer.

    Raises ConfigError where the tolerance table lacks an output.
    """
    return paged_mla.compare(expected, got, tolerance)


def bytes_moved(dims: dict[str, int]) -> float:
    """656 bytes a token at full length, queries and outputs in bf16, lse, page table and lengths, once each."""
    return paged_mla.bytes_moved(dims, SLOT_BYTES)


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
