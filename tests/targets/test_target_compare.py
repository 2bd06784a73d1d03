"""The shared comparison looks at form before values, and no trick of form or NaN passes for equality."""

from typing import Any

import pytest
import torch

from kernelgen.errors import ConfigError
from kernelgen.targets import compare

TOLERANCE = {"out": (0.01, 0.1)}
WANT = (torch.arange(6, dtype=torch.float32).reshape(2, 3), torch.ones(2, dtype=torch.int32))


class Lazy(torch.Tensor):
    """A subclass that could compute when it is looked at."""


def _form(got: Any) -> list[str]:
    return compare.structure(("out", "count"), WANT, got)


def test_right_form_has_no_fault() -> None:
    assert _form((torch.zeros(2, 3), torch.zeros(2, dtype=torch.int32))) == []


@pytest.mark.parametrize(
    ("got", "sentence"),
    [
        ([WANT[0], WANT[1]], "returned list, expected a tuple of out, count"),
        (WANT[0], "returned Tensor, expected a tuple"),
        ((), "returned 0 outputs, expected 2"),
        ((WANT[0],), "returned 1 outputs, expected 2"),
        ((WANT[0].double(), WANT[1]), "out has dtype torch.float64, expected torch.float32"),
        ((WANT[0][:1], WANT[1]), "out has shape [1, 3], expected [2, 3]"),
        ((WANT[0].to("meta"), WANT[1]), "out has device meta, expected cpu"),
        ((WANT[0].to_sparse(), WANT[1]), "out has layout torch.sparse_coo, expected torch.strided"),
        ((torch.zeros(3, 2).T, WANT[1]), "out is not contiguous: strides (1, 2)"),
        ((torch.zeros(1, 3).expand(2, 3), WANT[1]), "out is not contiguous"),
        ((WANT[0].as_subclass(Lazy), WANT[1]), "out is a Lazy, expected a plain torch.Tensor"),
        ((None, WANT[1]), "out is a NoneType"),
    ],
)
def test_wrong_form_is_named(got: Any, sentence: str) -> None:
    faults = _form(got)
    assert len(faults) == 1
    assert sentence in faults[0]


@pytest.mark.parametrize("distance", [compare.element_distance, compare.vector_distance])
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_non_finite_values_never_pass(distance: Any, bad: float) -> None:
    got = WANT[0].clone()
    got[1, 2] = bad
    for expected in (WANT[0], got):
        faults = distance("out", expected, got, {"out": (1e9, 1e9)})
        assert len(faults) == 1
        assert faults[0].startswith("out[1, 2] is ")
        assert "1 of 6 values are not finite" in faults[0]


def test_worst_element_is_named_with_its_figures() -> None:
    got = WANT[0].clone()
    got[0, 1] += 0.05
    got[1, 0] += 0.5
    assert compare.element_distance("out", WANT[0], got, TOLERANCE) == [
        "out[1, 0] is 3.5, expected 3: off by 0.5, allowed 0.13"
    ]
    assert compare.element_distance("out", WANT[0], WANT[0] + 0.05, TOLERANCE) == []


def test_a_small_wrong_vector_is_not_hidden_by_a_large_one() -> None:
    want = torch.tensor([[1000.0, 1000.0], [0.001, 0.001]])
    got = torch.tensor([[1000.0, 1000.0], [0.001, 0.002]])
    faults = compare.vector_distance("out", want, got, TOLERANCE)
    assert len(faults) == 1
    assert faults[0].startswith("out[1]: relative error 0.707")


def test_a_spike_in_a_large_vector_is_found_by_its_element() -> None:
    want = torch.full((1, 10000), 1.0)
    got = want.clone()
    got[0, 77] = 1.5
    faults = compare.vector_distance("out", want, got, TOLERANCE)
    assert faults == ["out[0, 77] is 1.5, expected 1: off by 0.5, allowed 0.1"]


def test_a_vector_that_should_be_zero_must_be_zero() -> None:
    faults = compare.vector_distance("out", torch.zeros(2, 3), torch.full((2, 3), 1e-3), TOLERANCE)
    assert "relative error inf" in faults[0]


def test_tolerance_must_fit_the_outputs() -> None:
    with pytest.raises(ConfigError, match="no entry 'out'"):
        compare.element_distance("out", WANT[0], WANT[0], {})
    with pytest.raises(ConfigError, match="tolerance of 'rows' must be 0"):
        compare.require_exact({"rows": (0.1, 0.0)}, ("rows",))
    compare.require_exact({"rows": (0.0, 0.0)}, ("rows", "ids"))


@pytest.mark.parametrize(("dtype", "tiny"), [("bfloat16", 3.4e-39), ("float32", 1e-39)])
def test_a_subnormal_may_be_rounded_or_flushed_and_a_normal_may_not(dtype: str, tiny: float) -> None:
    kind = getattr(torch, dtype)
    exact = torch.tensor([tiny, 1.0], dtype=torch.float64)
    table = {"out": (4e-3, 1e-6)}
    rounded, flushed = exact.to(kind), torch.tensor([0.0, 1.0], dtype=kind)
    for got in (rounded, flushed):
        assert compare.element_distance("out", exact, got, table, scale=exact.abs()) == []
        assert compare.vector_distance("out", exact[None, :1], got[None, :1], table, by_size=True) == []
    wrong = torch.tensor([1e-30, 1.0], dtype=kind)
    assert compare.element_distance("out", exact, wrong, table, scale=exact.abs())


def test_half_precision_may_round_between_subnormals_and_not_flush_them() -> None:
    exact = torch.tensor([3.1e-8], dtype=torch.float64)
    table = {"out": (4e-3, 1e-6)}
    assert compare.element_distance("out", exact, exact.half(), table, scale=exact.abs()) == []
    normal = torch.tensor([3e-5], dtype=torch.float64)
    assert compare.element_distance("out", normal, torch.zeros(1, dtype=torch.half), table, scale=normal.abs())
