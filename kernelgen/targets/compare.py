"""Comparing a candidate's outputs with the reference's: structure first, then values, a sentence for each fault.

Invariant: values are looked at only after `structure` found nothing, and no non-finite value ever compares as equal.
Every sentence names the output, the place (its index) and the figures. Nothing here trusts the candidate's objects:
only plain torch tensors are touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kernelgen.errors import ConfigError

if TYPE_CHECKING:
    from torch import Tensor

# formats with eight bits of exponent or more have their smallest normal number below this
SMALLEST_WITH_EIGHT_BITS = 1e-37

ToleranceTable = dict[str, tuple[float, float]]


def structure(names: Sequence[str], expected: Sequence[Tensor], got: Any) -> list[str]:
    """Faults of form: a tuple of as many plain contiguous tensors, with the dtypes, shapes and device expected."""
    import torch

    if type(got) is not tuple:
        return [f"returned {type(got).__name__}, expected a tuple of {', '.join(names)}"]
    if len(got) != len(names):
        return [f"returned {len(got)} outputs, expected {len(names)}: {', '.join(names)}"]
    faults = []
    for name, want, have in zip(names, expected, got, strict=True):
        if type(have) is not torch.Tensor:
            faults.append(f"{name} is a {type(have).__name__}, expected a plain torch.Tensor")
            continue
        for aspect in ("dtype", "shape", "device", "layout"):
            if getattr(have, aspect) != getattr(want, aspect):
                faults.append(f"{name} has {aspect} {_plain(have, aspect)}, expected {_plain(want, aspect)}")
                break
        else:
            if not have.is_contiguous():
                faults.append(f"{name} is not contiguous: strides {have.stride()}")
    return faults


def non_finite(name: str, got: Tensor) -> list[str]:
    """A fault where the output has a NaN or an infinity."""
    bad = ~got.isfinite()
    if not bad.any():
        return []
    place = _first(bad)
    return [f"{name}{list(place)} is {got[place].item()}: {int(bad.sum())} of {got.numel()} values are not finite"]


def element_distance(
    name: str, expected: Tensor, got: Tensor, tolerance: ToleranceTable, scale: Tensor | float = 1.0
) -> list[str]:
    """A fault where |got - expected| > atol * scale + rtol * |expected| in any element, in float64; underflow aside.

    `scale` broadcasts to the outputs: the size of what was summed, where sums may cancel.
    """
    faults = non_finite(name, got)
    if faults:
        return faults
    rtol, atol = bounds(tolerance, name)
    want, have = expected.double(), got.double()
    distance = (have - want).abs()
    limit = atol * scale + rtol * want.abs() + underflow(got)
    excess = distance - limit
    if excess.numel() == 0 or excess.max() <= 0:
        return []
    place = _largest(excess)
    allowed = limit[place].item()
    return [
        f"{name}{list(place)} is {have[place].item():.7g}, expected {want[place].item():.7g}: "
        f"off by {distance[place].item():.3g}, allowed {allowed:.3g}"
    ]


def vector_distance(
    name: str, expected: Tensor, got: Tensor, tolerance: ToleranceTable, *, by_size: bool = False
) -> list[str]:
    """Faults of vectors along the last axis, in float64: |got - expected| > rtol * |expected| in the 2-norm of any
    vector, so that a small one is not hidden by large ones; or any element off by more than atol, with `by_size` more
    than atol times the root mean square of its vector.
    """
    import torch

    faults = non_finite(name, got)
    if faults:
        return faults
    rtol, atol = bounds(tolerance, name)
    want, have = expected.double(), got.double()
    distance = have - want
    norms = distance.norm(dim=-1)
    excess = norms - rtol * want.norm(dim=-1) - underflow(got) * max(got.shape[-1], 1) ** 0.5
    if excess.numel() and excess.max() > 0:
        place = _largest(excess)
        size = want[place].norm().item()
        relative = norms[place].item() / size if size else float("inf")
        faults.append(f"{name}{list(place)}: relative error {relative:.3g} of the vector, allowed {rtol:.3g}")
    limit = torch.full_like(norms, atol)
    if by_size:
        limit *= want.square().mean(dim=-1).sqrt()
    limit += underflow(got)
    worst = distance.abs()
    excess = worst - limit[..., None]
    if excess.numel() and excess.max() > 0:
        place = _largest(excess)
        faults.append(
            f"{name}{list(place)} is {have[place].item():.7g}, expected {want[place].item():.7g}: "
            f"off by {worst[place].item():.3g}, allowed {limit[place[:-1]].item():.3g}"
        )
    return faults


def underflow(got: Tensor) -> float:
    """How far the format alone may push a tiny number: to zero where the format reaches 1e-38, as arithmetic that
    flushes subnormals does; by half a step between subnormals where it is coarser. 0 for integers.
    """
    import torch

    if not got.is_floating_point():
        return 0.0
    form = torch.finfo(got.dtype)
    normal = float(form.smallest_normal)
    return normal if normal < SMALLEST_WITH_EIGHT_BITS else normal * float(form.eps) / 2


def exact_distance(name: str, expected: Tensor, got: Tensor, why: str) -> list[str]:
    """A fault where two integer tensors differ; `why` ends the sentence."""
    wrong = expected != got
    if not wrong.any():
        return []
    place = _first(wrong)
    return [
        f"{name}{list(place)} is {got[place].item()}, expected {expected[place].item()}: {why} "
        f"({int(wrong.sum())} of {got.numel()} differ)"
    ]


def bounds(tolerance: ToleranceTable, name: str) -> tuple[float, float]:
    """(rtol, atol) of an output. Raises ConfigError where the target's config has none."""
    if name not in tolerance:
        raise ConfigError(f"the target's tolerance has no entry '{name}'; add rtol, atol and reason for it")
    return tolerance[name]


def require_exact(tolerance: ToleranceTable, names: Sequence[str]) -> None:
    """Raises ConfigError where the config promises a tolerance for outputs that are compared exactly."""
    for name in names:
        if any(tolerance.get(name, (0.0, 0.0))):
            raise ConfigError(f"tolerance of '{name}' must be 0: this output is compared exactly")


def _plain(tensor: Tensor, aspect: str) -> str:
    value = getattr(tensor, aspect)
    return str(list(value)) if aspect == "shape" else str(value)


def _first(mask: Tensor) -> tuple[int, ...]:
    return tuple(mask.nonzero()[0].tolist())


def _largest(values: Tensor) -> tuple[int, ...]:
    import torch

    flat = values.reshape(-1).argmax()
    return tuple(int(axis) for axis in torch.unravel_index(flat, values.shape))
