"""Inputs of any size are had as shapes alone, whether or not the target's code supports the meta device."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from kernelgen.ladder import inputs  # noqa: E402
from kernelgen.targets.code import TargetCode  # noqa: E402


def make(dims, kind, seed, device):
    return {"x": torch.empty(dims["N"], 3, dtype=torch.bfloat16, device=device).t(), "scale": 0.5}


def with_a_generator(dims, kind, seed, device):
    generator = torch.Generator(device=device).manual_seed(seed)
    return {"x": torch.randn(dims["N"], 3, generator=generator, device=device).bfloat16().t(), "scale": 0.5}


def by_values(dims, kind, seed, device):
    extent = int(torch.full((1,), dims["N"], device=device).item())
    return {"x": torch.zeros(extent, 3, device=device).bfloat16().t(), "scale": 0.5}


def code(make_inputs) -> TargetCode:
    return TargetCode(
        module=__file__,
        make_inputs=make_inputs,
        reference=lambda **inputs: (),
        compare=lambda inputs, expected, got, tolerance: [],
        flops=lambda dims: 0.0,
        bytes_moved=lambda dims: 6.0 * dims["N"],
    )


@pytest.mark.parametrize(("make_inputs", "extent"), [(make, 1 << 40), (with_a_generator, 1 << 40), (by_values, 5)])
def test_shapes_strides_and_types_are_kept_and_numbers_too(make_inputs, extent: int) -> None:
    made = inputs.shapes_only(code(make_inputs), {"N": extent}, "plain", 0)
    x = made["x"]
    assert (x.device.type, x.dtype, x.shape, x.stride()) == ("meta", torch.bfloat16, (3, extent), (1, 3))
    assert made["scale"] == 0.5


def test_what_needs_values_is_not_made_beyond_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "REAL_BYTES", 60)
    assert inputs.shapes_only(code(by_values), {"N": 10}, "plain", 0) is not None
    assert inputs.shapes_only(code(by_values), {"N": 11}, "plain", 0) is None
