"""What an answer's tensors say: form, then values, each fault with shape, kind, place and figures. Pure functions.

Everything here works on private copies in the judge's process. The target's own comparison decides values, in its own
sentences; besides, nothing may be NaN or infinite where the reference is not, and exact kinds must match to the bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from kernelgen.errors import BadInput
from kernelgen.ladder.correctness.plan import Case
from kernelgen.ladder.results import Fault
from kernelgen.targets.code import MODULE_FAULTS, TargetCode
from kernelgen.targets.findings import raised
from kernelgen.targets.trivial import equal

Spec = tuple[str, str, tuple[int, ...]]
Outputs = tuple[torch.Tensor, ...]
Tolerance = dict[str, tuple[float, float]]
# an answer with errors nearly everywhere, none of them large, is the right computation in too low a precision
SPREAD_SHARE = 0.5
SPREAD_LARGEST = 0.25


@dataclass(frozen=True)
class Expected:
    """A case with what the reference says of it."""

    case: Case
    """The case."""
    inputs: dict[str, Any]
    """Private inputs, on the judge's device."""
    outputs: Outputs
    """The reference's answer."""
    specs: list[Spec]
    """Name, dtype and shape of each output."""


def form_faults(expected: Expected, returned: str | None, forms: Sequence[dict[str, Any]], device: str) -> list[Fault]:
    """What is wrong with the form of an answer, as the called process describes it; overlaps after the rest."""
    names = [name for name, _, _ in expected.specs]
    place = expected.case.place
    if returned != "tuple":
        reason = f"{place}: returned {returned or 'nothing'}, expected a tuple of {', '.join(names)}"
        return [Fault("correctness.structure", reason)]
    if len(forms) != len(names):
        count = f"{len(forms)} output{'' if len(forms) == 1 else 's'}"
        reason = f"{place}: returned {count}, expected {len(names)}: {', '.join(names)}"
        return [Fault("correctness.structure", reason)]
    faults = []
    for spec, form in zip(expected.specs, forms, strict=True):
        wrong = _form_fault(spec, form, device)
        if wrong is not None:
            faults.append(Fault("correctness.structure", f"{place}: {spec[0]} {wrong}"))
        elif isinstance(form.get("overlaps"), str):
            faults.append(Fault("correctness.overlap", f"{place}: {spec[0]} shares memory with {form['overlaps']}"))
    return faults


def _form_fault(spec: Spec, form: dict[str, Any], device: str) -> str | None:
    """What is wrong with one output, as the end of a sentence; None for nothing."""
    _, dtype, shape = spec
    if form.get("type") != "torch.Tensor":
        return f"is a {form.get('type')}, expected a plain torch.Tensor"
    wanted = {"dtype": dtype, "shape": list(shape), "device": device, "layout": "strided"}
    for aspect, want in wanted.items():
        if form.get(aspect) != want:
            return f"has {aspect} {form.get(aspect)}, expected {want}"
    if form.get("contiguous") is not True:
        return f"is not contiguous: strides {form.get('strides')}"
    if form.get("storage") is not True:
        return "has no storage"
    return None


def value_faults(code: TargetCode, tolerance: Tolerance, expected: Expected, got: Outputs, exact: bool) -> list[Fault]:
    """What is wrong with the values of an answer of the right form, on the CPU."""
    here = tuple(tensor.to(want.device) for tensor, want in zip(got, expected.outputs, strict=True))
    try:
        wrong = code.compare(expected.inputs, expected.outputs, here, tolerance)
    except MODULE_FAULTS as error:
        raise BadInput(f"The target's compare raised on an answer of the right form: {raised(error)}") from error
    place = expected.case.place
    not_finite = _not_finite(expected, here)
    if not_finite is not None:
        return [Fault("correctness.not_finite", f"{place}: {not_finite}", detail="\n".join(wrong))]
    if exact:
        inexact = _inexact(expected, here)
        if inexact is not None:
            return [Fault("correctness.exact", f"{place}: {inexact}", detail="\n".join(wrong))]
    if not wrong:
        return []
    detail = "\n".join([*wrong, *(_figures(expected, here))])
    if _is_coarse(expected.outputs, here):
        reason = f"{place}: {wrong[0]}; errors are small and everywhere, as of a computation in too low a precision"
        return [Fault("correctness.error_budget", reason, detail=detail)]
    check = {"rescaled": "scaled_inputs", "edge": "shapes", "tune": "shapes"}.get(expected.case.group, "values")
    return [Fault(f"correctness.{check}", f"{place}: {wrong[0]}", detail=detail)]


def unwritten(expected: Expected, got: Outputs, poison: Sequence[int]) -> str | None:
    """The first place of an output that still reads as unwritten memory though the answer does not, or None."""
    for (name, _, _), want, have in zip(expected.specs, expected.outputs, got, strict=True):
        for byte in poison:
            left = _all_bytes(have, byte) & ~_all_bytes(want.cpu(), byte)
            if bool(left.any()):
                first = _at(left)
                count = int(left.sum())
                return f"{name}{first} was never written: {count} of {have.numel()} elements hold unwritten memory"
    return None


def differing(specs: Sequence[Spec], one: Outputs, other: Outputs) -> str | None:
    """The first place where two answers differ in a bit, with both values; None where they are the same."""
    for (name, _, _), first, second in zip(specs, one, other, strict=True):
        wrong = _bits(first) != _bits(second)
        if bool(wrong.any()):
            elements = wrong.any(dim=-1).reshape(first.shape)
            place = tuple(elements.nonzero()[0].tolist())
            values = f"{first[place].item():.7g}, then {second[place].item():.7g}"
            return f"{name}{list(place)} is {values} ({int(elements.sum())} of {first.numel()} elements differ)"
    return None


def errors(expected: Expected, got: Outputs) -> dict[str, tuple[float, float]]:
    """By floating-point output: the worst absolute error, and the error's norm over the answer's, in float64."""
    found = {}
    for (name, _, _), want, have in zip(expected.specs, expected.outputs, got, strict=True):
        if want.is_floating_point() and want.numel():
            right = want.double()
            distance = (have.to(want.device).double() - right).nan_to_num(posinf=0.0, neginf=0.0)
            size = right.nan_to_num(posinf=0.0, neginf=0.0).norm().item()
            found[name] = (distance.abs().max().item(), distance.norm().item() / size if size else 0.0)
    return found


def _figures(expected: Expected, got: Outputs) -> list[str]:
    return [
        f"{name}: worst element off by {worst:.3g}, error over answer {norm:.3g} in the 2-norm"
        for name, (worst, norm) in errors(expected, got).items()
    ]


def _not_finite(expected: Expected, got: Outputs) -> str | None:
    for (name, _, _), want, have in zip(expected.specs, expected.outputs, got, strict=True):
        if not want.is_floating_point():
            continue
        bad = ~have.float().isfinite() & want.float().isfinite()
        if bool(bad.any()):
            place = _at(bad)
            values = f"{have[tuple(place)].item()}, expected {want[tuple(place)].item():.7g}"
            return f"{name}{place} is {values} ({int(bad.sum())} of {have.numel()} are not finite)"
    return None


def _inexact(expected: Expected, got: Outputs) -> str | None:
    for (name, _, _), want, have in zip(expected.specs, expected.outputs, got, strict=True):
        if not equal(want, have):
            wrong = want.double() != have.double()
            place = _at(wrong)
            values = f"{have[tuple(place)].item():.9g}, expected exactly {want[tuple(place)].item():.9g}"
            return f"{name}{place} is {values}: this kind of inputs leaves no rounding ({int(wrong.sum())} differ)"
    return None


def _is_coarse(want: Outputs, got: Outputs) -> bool:
    """Whether every wrong output is off nearly everywhere and nowhere by much."""
    wrong = [(right, have) for right, have in zip(want, got, strict=True) if not equal(right, have)]
    return bool(wrong) and all(_off_everywhere(right, have) for right, have in wrong)


def _off_everywhere(want: torch.Tensor, have: torch.Tensor) -> bool:
    if not want.is_floating_point():
        return False
    right = want.double()
    distance = (have.double() - right).abs()
    share = (distance > 0).double().mean().item()
    return share > SPREAD_SHARE and bool(distance.max() <= SPREAD_LARGEST * right.abs().max())


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    """The bytes of a tensor, a row for each element."""
    return tensor.contiguous().reshape(-1).view(torch.uint8).reshape(tensor.numel(), tensor.itemsize)


def _all_bytes(tensor: torch.Tensor, byte: int) -> torch.Tensor:
    return (_bits(tensor) == byte).all(dim=-1).reshape(tensor.shape)


def _at(mask: torch.Tensor) -> list[int]:
    return list(mask.nonzero()[0].tolist())
