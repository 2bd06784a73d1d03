"""Answers that did not do the work, which every target must refuse: constant, copied, half done, stale, too coarse.

Each maker takes a `Case` and gives outputs of the right form and device, so that only values can give them away, or
None where the target has nothing to make them of. They know no target: what only its author can think of (half the
history, weights unnormalised) belongs into the target's own tests.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor, dtype

Outputs = tuple[Any, ...]


@dataclass(frozen=True)
class Case:
    """One set of inputs with its right answer."""

    inputs: dict[str, Any]
    """Inputs and scalars by argument name."""
    expected: Outputs
    """What the reference says."""
    other: Outputs
    """What the reference says of inputs of another seed."""
    reference: Callable[..., Outputs]
    """The target's reference."""
    shape: str
    """Name of the smoke shape."""
    kind: str
    """Kind of the inputs."""


def zeros(case: Case) -> Outputs:
    """Every output zero."""
    import torch

    return tuple(torch.zeros_like(output) for output in case.expected)


def constant(case: Case) -> Outputs:
    """Every output one."""
    import torch

    return tuple(torch.ones_like(output) for output in case.expected)


def mean(case: Case) -> Outputs:
    """Every output its own mean along the last axis."""
    return tuple(
        output.double().mean(dim=-1, keepdim=True).expand_as(output).to(output.dtype).contiguous()
        for output in case.expected
    )


def copied_input(case: Case) -> Outputs:
    """Every output the values of an input, of its dtype where there is one, repeated as often as it needs."""
    return tuple(_filled(output, _source(case.inputs, output)) for output in case.expected)


def half_done(case: Case) -> Outputs:
    """Every output right in its first half and zero in its second."""
    halves = []
    for output in case.expected:
        half = output.clone()
        flat = half.view(-1)
        flat[flat.numel() // 2 :] = 0
        halves.append(half)
    return tuple(halves)


def other_call(case: Case) -> Outputs | None:
    """The right answer to inputs of another seed, as a cache gives it."""
    same = all(one.shape == two.shape for one, two in zip(case.expected, case.other, strict=True))
    return case.other if same else None


def not_a_number(case: Case) -> Outputs | None:
    """Every floating-point output NaN."""
    if not any(output.is_floating_point() for output in case.expected):
        return None
    return tuple(
        output.float().mul(float("nan")).to(output.dtype) if output.is_floating_point() else output
        for output in case.expected
    )


def lower_precision(case: Case) -> Outputs | None:
    """The reference on floating-point inputs rounded to the next smaller format, its outputs rounded alike."""
    values = [*case.inputs.values(), *case.expected]
    if not any(_coarser(value) is not None for value in values):
        return None
    coarse = case.reference(**{name: _rounded(value) for name, value in case.inputs.items()})
    return tuple(_rounded(output) for output in coarse)


def wrong_forms(case: Case) -> dict[str, Any]:
    """The right answer in forms that are not the declared one, by what is wrong with them."""
    import torch

    first, *others = case.expected
    other_dtype = torch.float32 if first.dtype == torch.float64 else torch.float64
    forms: dict[str, Any] = {
        "None": None,
        "a list": list(case.expected),
        "an answer without its last output": case.expected[:-1],
        "another dtype": (first.to(other_dtype), *others),
        "an output one value short": (first.reshape(-1)[:-1], *others),
    }
    if first.numel() > 1:
        forms["an output that is not contiguous"] = (torch.stack([first, first], dim=-1)[..., 0], *others)
    return forms


def same(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same bits: also of formats that torch cannot compare, and of NaN."""
    import torch

    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    # a tensor of no dimensions has no bytes to view until it has one
    bits = (t.contiguous().reshape(-1).view(torch.uint8) for t in (one, other))
    return bool(torch.equal(*bits))


def equal(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same bits, or hold equal numbers: zeros of either sign are equal."""
    if same(one, other):
        return True
    return one.shape == other.shape and bool((one.double() == other.double()).all())


def _source(inputs: dict[str, Any], output: Tensor) -> Tensor | None:
    """The input that looks most like the output; None where no input is a tensor."""
    tensors = [value for value in inputs.values() if hasattr(value, "numel")]
    ranked = sorted(tensors, key=lambda t: (t.dtype != output.dtype, t.shape != output.shape))
    return ranked[0] if ranked else None


def _filled(output: Tensor, source: Tensor | None) -> Tensor:
    """A tensor of the output's form with the values of the source, or ones."""
    import torch

    if source is None or source.numel() == 0:
        return torch.ones_like(output)
    flat = source.reshape(-1)[: output.numel()]
    repeats = -(-output.numel() // flat.numel())
    return flat.repeat(repeats)[: output.numel()].to(output.dtype).reshape(output.shape)


def _coarser(value: Any) -> dtype | None:
    """The next smaller floating-point format of a tensor; None where there is none, or it holds something else."""
    import torch

    smaller = {
        torch.float64: torch.float32,
        torch.float32: torch.bfloat16,
        torch.float16: torch.float8_e4m3fn,
        torch.bfloat16: torch.float8_e4m3fn,
        torch.float8_e4m3fn: torch.float8_e5m2,
    }
    return smaller.get(value.dtype) if isinstance(value, torch.Tensor) else None


def _rounded(value: Any) -> Any:
    """The value rounded to the next smaller format and back; anything else as it is."""
    import torch

    coarser = _coarser(value)
    if coarser is None:
        return value
    largest = torch.finfo(coarser).max
    return value.float().clamp(-largest, largest).to(coarser).float().to(value.dtype)


# what each is called in a line of the check
ANSWERS: dict[str, Callable[[Case], Outputs | None]] = {
    "zeros": zeros,
    "a constant": constant,
    "the mean": mean,
    "a copied input": copied_input,
    "half of the work": half_done,
    "another call's answer": other_call,
    "NaN": not_a_number,
    "lower precision": lower_precision,
}

# it may not show at a tiny shape, so that one shape of each kind must refuse it, and not every one
NEED_NOT_SHOW_EVERYWHERE = frozenset({"lower precision"})
