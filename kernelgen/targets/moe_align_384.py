"""Dispatch metadata of Kimi K2.6: the pairs of tokens and experts sorted by expert, each expert padded to whole blocks.

Pair 8t + k is entry (t, k) of `ids`; pairs with id -1, of experts on another rank, are left out. Any order within an
expert is right; all else is exact, past the padded length too, where kernels have read what nobody wrote.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernelgen.errors import ConfigError, nearest
from kernelgen.targets.compare import ToleranceTable, exact_distance, require_exact, structure
from kernelgen.targets.experts import make_ids
from kernelgen.targets.routing import CHOSEN, KINDS

if TYPE_CHECKING:
    from torch import Tensor

OUTPUTS = ("sorted_pairs", "block_experts", "padded", "slots")


def make_inputs(dims: dict[str, int], kind: str, seed: int, device: str) -> dict[str, Any]:
    """ids [T, 8] int32 on `device`, block_m and experts (int), the same for the same seed.

    Kinds as in `experts.make_ids`. Raises ConfigError for an unknown kind.
    """
    import torch

    if kind not in KINDS:
        raise ConfigError(f"moe_align_384 has no input kind '{kind}'{nearest(kind, KINDS)}")
    generator = torch.Generator(device=device).manual_seed(seed)
    ids = make_ids(dims["T"], dims["E"], dims["EP"], kind, generator)
    return {"ids": ids, "block_m": dims["M"], "experts": dims["E"]}


def reference(ids: Tensor, block_m: int, experts: int) -> tuple[Tensor, ...]:
    """(sorted_pairs [8T + E(M-1)], block_experts [ceil of that / M], padded [1], slots [T, 8]), all int32.

    sorted_pairs[i] is the pair in slot i, or 8T in a padding slot; slots is its inverse, -1 for pairs left out. Past
    the padded length sorted_pairs holds 8T, and block_experts -1.
    """
    import torch

    flat = ids.reshape(-1).long()
    ends = _padded_counts(ids, block_m, experts).cumsum(0)
    order = flat.argsort(stable=True)[int((flat < 0).sum()) :]
    counts = torch.bincount(flat[flat >= 0], minlength=experts)
    # a pair's slot: where its expert begins, plus its rank among the expert's pairs
    begins = ends - _padded_counts(ids, block_m, experts)
    rank = torch.arange(order.numel(), device=ids.device) - (counts.cumsum(0) - counts)[flat[order]]
    place = begins[flat[order]] + rank
    sorted_pairs = torch.full((capacity(ids.shape[0], block_m, experts),), flat.numel(), device=ids.device)
    sorted_pairs[place] = order
    slots = torch.full_like(flat, -1)
    slots[order] = place
    blocks = torch.arange(-(-sorted_pairs.numel() // block_m), device=ids.device)
    owners = torch.searchsorted(ends, blocks * block_m, right=True)
    owners = torch.where(owners < experts, owners, -1)
    return sorted_pairs.int(), owners.int(), ends[-1:].int(), slots.reshape(ids.shape).int()


def compare(inputs: dict[str, Any], expected: Any, got: Any, tolerance: ToleranceTable) -> list[str]:
    """What is wrong with `got`, a sentence each; empty where nothing is. `expected` is the reference's answer.

    Raises ConfigError where the tolerance table promises a tolerance: everything is exact.
    """
    require_exact(tolerance, OUTPUTS)
    faults = structure(OUTPUTS, expected, got)
    if faults:
        return faults
    return (
        exact_distance("padded", expected[2], got[2], "it must be the sum of the experts' padded counts")
        + exact_distance("block_experts", expected[1], got[1], "blocks follow the experts, -1 past the padded length")
        + _slot_faults(inputs["ids"].reshape(-1), expected, got)
    )


def flops(dims: dict[str, int]) -> float:
    """An addition for each pair, block and expert: counts and offsets. Nothing here is bound by arithmetic."""
    return CHOSEN * dims["T"] / dims["EP"] + dims["E"]


def bytes_moved(dims: dict[str, int]) -> float:
    """4TK read (K = 8), and written 4(TK + E(M-1)) for the sorted pairs, 4 for each block that these can make, 4TK for
    the slots and 4 for the length, whatever the ids are.
    """
    slots = capacity(dims["T"], dims["M"], dims["E"])
    return 8.0 * CHOSEN * dims["T"] + 4.0 * (slots + -(-slots // dims["M"]) + 1)


def capacity(tokens: int, block_m: int, experts: int) -> int:
    """Slots that suffice for any routing: 8T + E(M-1), as SGLang and vLLM allocate."""
    return CHOSEN * tokens + experts * (block_m - 1)


def _padded_counts(ids: Tensor, block_m: int, experts: int) -> Tensor:
    """Pairs of each expert rounded up to whole blocks, [E] int64."""
    import torch

    counts = torch.bincount(ids[ids >= 0].long(), minlength=experts)
    return -(-counts // block_m) * block_m


def _slot_faults(ids: Tensor, expected: Any, got: Any) -> list[str]:
    """Whether every pair stands once in a slot of its expert, padding where the reference has it, slots the inverse."""
    import torch

    pairs, nobody = got[0], ids.numel()
    outside = (pairs < 0) | (pairs > nobody)
    if outside.any():
        place = int(outside.nonzero()[0])
        return [
            f"sorted_pairs[{place}] is {int(pairs[place])}, expected a pair below {nobody}, or {nobody} for padding"
        ]
    want = expected[0].sort().values
    faults = exact_distance("sorted sorted_pairs", want, pairs.sort().values, "every pair kept must appear once")
    if faults:
        return faults
    # the expert of each slot, and -1 for padding
    owners = torch.cat([ids, ids.new_full((1,), -1)])
    want, have = owners[expected[0].long()], owners[pairs.long()]
    faults = exact_distance("ids of sorted_pairs", want, have, "a pair stands with its expert's, padding after them")
    if faults:
        return faults
    inverse = torch.full_like(ids, -1)
    kept = pairs != nobody
    inverse[pairs[kept].long()] = kept.nonzero()[:, 0].int()
    return exact_distance("slots", inverse.reshape(got[3].shape), got[3], "it must be the inverse of sorted_pairs")
