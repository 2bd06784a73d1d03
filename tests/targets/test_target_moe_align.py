"""The align target accepts any order within an expert and nothing else, empty experts or not."""

import re
from typing import Any

import pytest
import torch

from kernelgen.errors import ConfigError
from kernelgen.targets import moe_align_384 as target

NONE: dict[str, tuple[float, float]] = {}
LAYOUTS = {
    "tp": {"T": 24, "M": 16, "E": 384, "EP": 1},
    "ep_odd_block": {"T": 24, "M": 7, "E": 48, "EP": 8},
    "block_of_one": {"T": 24, "M": 1, "E": 12, "EP": 2},
}
Outputs = tuple[torch.Tensor, ...]


@pytest.fixture(scope="module", params=[(layout, kind) for layout in LAYOUTS for kind in target.KINDS], ids="-".join)
def case(request: pytest.FixtureRequest) -> tuple[dict[str, Any], Outputs]:
    layout, kind = request.param
    inputs = target.make_inputs(LAYOUTS[layout], kind, 3, "cpu")
    return inputs, target.reference(**inputs)


def _faults(case: tuple[dict[str, Any], Outputs], got: Any) -> list[str]:
    return target.compare(case[0], case[1], got, NONE)


def _plainly(ids: torch.Tensor, block_m: int, experts: int) -> Outputs:
    """The same lists, pair by pair in plain Python, the last pairs of an expert first."""
    flat = ids.reshape(-1).tolist()
    nobody, listed, owners = len(flat), [], []
    for expert in range(experts):
        own = [pair for pair, chosen in reversed(list(enumerate(flat))) if chosen == expert]
        blocks = -(-len(own) // block_m)
        listed += own + [nobody] * (blocks * block_m - len(own))
        owners += [expert] * blocks
    slots = [listed.index(pair) if chosen >= 0 else -1 for pair, chosen in enumerate(flat)]
    size = target.capacity(ids.shape[0], block_m, experts)
    padded, n_blocks = len(listed), -(-size // block_m)
    listed += [nobody] * (size - padded)
    owners += [-1] * (n_blocks - len(owners))
    answer = (torch.tensor(values, dtype=torch.int32) for values in (listed, owners, [padded], slots))
    sorted_pairs, block_experts, length, inverse = answer
    return sorted_pairs, block_experts, length, inverse.reshape(ids.shape)


def test_reference_is_accepted_and_deterministic(case: Any) -> None:
    assert _faults(case, case[1]) == []
    assert all(torch.equal(one, other) for one, other in zip(case[1], target.reference(**case[0]), strict=True))


def test_plain_python_in_another_order_within_experts_is_accepted(case: Any) -> None:
    assert _faults(case, _plainly(**case[0])) == []


def test_no_pair_at_all_is_an_ordinary_input() -> None:
    inputs = {"ids": torch.full((3, 8), -1, dtype=torch.int32), "block_m": 16, "experts": 48}
    expected = target.reference(**inputs)
    assert expected[2].item() == 0
    assert expected[0].unique().tolist() == [24]
    assert all(tensor.unique().tolist() == [-1] for tensor in (expected[1], expected[3]))
    assert _faults((inputs, expected), _plainly(**inputs)) == []


def _zeros(inputs: dict[str, Any], want: Outputs) -> Outputs:
    return tuple(torch.zeros_like(tensor) for tensor in want)


def _token_order(inputs: dict[str, Any], want: Outputs) -> Outputs:
    pairs = want[0].sort().values
    return pairs, *want[1:]


def _half_done(inputs: dict[str, Any], want: Outputs) -> Outputs:
    pairs = want[0].clone()
    pairs[len(pairs) // 8 :] = 0
    return pairs, *want[1:]


def _one_pair_twice(inputs: dict[str, Any], want: Outputs) -> Outputs:
    pairs = want[0].clone()
    kept = (pairs != inputs["ids"].numel()).nonzero()[:, 0]
    pairs[kept[0]] = pairs[kept[-1]]
    return pairs, *want[1:]


def _out_of_range(inputs: dict[str, Any], want: Outputs) -> Outputs:
    pairs = want[0].clone()
    pairs[3] = inputs["ids"].numel() + 1
    return pairs, *want[1:]


def _unwritten_tail(inputs: dict[str, Any], want: Outputs) -> Outputs:
    pairs = want[0].clone()
    pairs[-1] = -1
    return pairs, *want[1:]


def _blocks_shifted(inputs: dict[str, Any], want: Outputs) -> Outputs:
    return want[0], want[1].roll(1), *want[2:]


def _length_unpadded(inputs: dict[str, Any], want: Outputs) -> Outputs:
    return *want[:2], want[2] + 1, want[3]


def _slots_swapped(inputs: dict[str, Any], want: Outputs) -> Outputs:
    return *want[:3], want[3].flip(0).contiguous()


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (_zeros, "every pair kept must appear once"),
        (_half_done, "every pair kept must appear once"),
        (_one_pair_twice, "every pair kept must appear once"),
        (_out_of_range, r"sorted_pairs\[3\] is \d+, expected a pair below 192, or 192"),
        (_unwritten_tail, r"sorted_pairs\[\d+\] is -1"),
        (_blocks_shifted, "blocks follow the experts"),
        (_length_unpadded, "sum of the experts' padded counts"),
        (_slots_swapped, "inverse of sorted_pairs"),
        (_token_order, "a pair stands with its expert's"),
    ],
)
def test_wrong_answers_are_refused_for_every_kind(case: Any, wrong: Any, sentence: str) -> None:
    faults = _faults(case, wrong(*case))
    assert any(re.search(sentence, fault) for fault in faults), faults


def test_kinds_leave_experts_empty_and_give_one_every_token() -> None:
    dims = {"T": 64, "M": 16, "E": 48, "EP": 8}
    ids = {kind: target.make_inputs(dims, kind, 3, "cpu")["ids"] for kind in target.KINDS}
    counts = {kind: torch.bincount(of_kind[of_kind >= 0].long(), minlength=48) for kind, of_kind in ids.items()}
    assert int(counts["ragged"].max()) == 64
    assert int((counts["ragged"] == 0).sum()) >= 48 - 11
    # one token of four has no expert here, one has the first token's
    assert ids["stressed"][1::4].unique().tolist() == [-1]
    assert len(ids["stressed"][2::4].unique(dim=0)) == 1
    for of_kind in ids.values():
        ranked = of_kind.sort(dim=-1).values
        assert not ((ranked[:, 1:] == ranked[:, :-1]) & (ranked[:, 1:] >= 0)).any()
        assert -1 <= int(of_kind.min()) <= int(of_kind.max()) < 48


def test_uniform_routing_keeps_an_eighth_of_the_pairs_on_one_of_eight_ranks() -> None:
    ids = target.make_inputs({"T": 4096, "M": 16, "E": 48, "EP": 8}, "plain", 3, "cpu")["ids"]
    assert (ids >= 0).float().mean().item() == pytest.approx(1 / 8, rel=0.05)


def test_skewed_experts_are_far_from_balanced() -> None:
    ids = target.make_inputs({"T": 256, "M": 16, "E": 384, "EP": 1}, "skewed", 3, "cpu")["ids"]
    counts = torch.bincount(ids.reshape(-1).long(), minlength=384).sort(descending=True).values
    assert counts[:16].sum() > 0.4 * counts.sum()


def test_unknown_kind_and_a_tolerance_are_refused(case: Any) -> None:
    with pytest.raises(ConfigError, match="did you mean 'plain'"):
        target.make_inputs(LAYOUTS["tp"], "plane", 1, "cpu")
    with pytest.raises(ConfigError, match="tolerance of 'slots' must be 0"):
        target.compare(*case, case[1], {"slots": (0.1, 0.0)})


@pytest.mark.parametrize(("tokens", "megabytes"), [(64, 0.1), (4096, 0.36)])
def test_bytes_without_blocks_and_inverse_are_the_known_ones(tokens: int, megabytes: float) -> None:
    # ids and sorted pairs as tabulated for the region at blocks of 64
    moved = target.bytes_moved({"T": tokens, "M": 64, "E": 384, "EP": 1})
    blocks = -(-target.capacity(tokens, 64, 384) // 64)
    assert (moved - 4 * (blocks + 1) - 32 * tokens) / 1e6 == pytest.approx(megabytes, rel=0.02)


def test_bytes_are_those_of_the_tensors(case: Any) -> None:
    inputs, expected = case
    dims = next(d for d in LAYOUTS.values() if (d["M"], d["E"]) == (inputs["block_m"], inputs["experts"]))
    assert target.bytes_moved(dims) == inputs["ids"].nbytes + sum(tensor.nbytes for tensor in expected)
    assert target.flops(dims) == 192 / dims["EP"] + dims["E"]
