"""Outputs quantised to e4m3 with a scale for every 128 values: the rounding, and how an answer is compared.

Values and scales are judged apart. A value is its code times the scale that came with it, in units of the expected
group's largest value (scale * 448), so that a small group is not hidden by a large one. Codes are judged besides, but
not on CPU tensors: those come out of Triton's interpreter, whose casts to e4m3 are wrong by a factor of two where
rounding carries into the exponent (2% of values), unless `kernelgen.ladder.interpreter` mended it. There the values
are held to the wider tolerance `y_interpreted`, and the codes are inconclusive.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelgen.targets.compare import ToleranceTable, bounds, element_distance, non_finite, vector_distance

if TYPE_CHECKING:
    from torch import Tensor

GROUP = 128
E4M3_LARGEST = 448.0
# smallest largest value that a scale is made of: a group of zeros has a scale too
SMALLEST_LARGEST = 1e-10
# entries of the tolerance table beside those of the outputs y and scales
CODES = "y_codes"
INTERPRETED = "y_interpreted"
SIGN_BIT = 0x80


def quantise_groups(values: Tensor) -> tuple[Tensor, Tensor]:
    """Values [R, n] float64 as codes [R, n] e4m3 and scales [R, n/128] fp32: scale = max(|group|, 1e-10) / 448.

    Codes are rounded to nearest even and saturate at 448.
    """
    import torch

    groups = values.unflatten(-1, (-1, GROUP))
    scales = (groups.abs().amax(dim=-1).clamp(min=SMALLEST_LARGEST) / E4M3_LARGEST).float()
    quotients = (groups / scales.double()[:, :, None]).clamp(-E4M3_LARGEST, E4M3_LARGEST)
    # no float64 cast to e4m3 rounds once; fp32 has bits to spare
    return quotients.float().to(torch.float8_e4m3fn).flatten(-2), scales


def group_faults(
    expected: tuple[Tensor, Tensor], got: tuple[Tensor, Tensor], tolerance: ToleranceTable, *, interpreted: bool
) -> list[str]:
    """What is wrong with (y [R, n] e4m3, scales [R, n/128] fp32), a sentence each; forms are equal already.

    Entries of the table: scales, elementwise; y, the relative error of a row and the worst element, a share of its
    group's largest value; y_codes: at most a share rtol of the codes lies more than atol steps of e4m3 away;
    y_interpreted, where the tensors come out of the interpreter, in place of y and y_codes.

    Raises ConfigError where one is missing.
    """
    (want, want_scales), (have, have_scales) = expected, got
    held_to = {entry: bounds(tolerance, entry) for entry in ("y", CODES, INTERPRETED)}
    faults = non_finite("y", have.float()) + element_distance("scales", want_scales, have_scales, tolerance)
    if faults:
        return faults
    unit = want_scales.double() * E4M3_LARGEST
    values = _values(want, want_scales, unit), _values(have, have_scales, unit)
    if interpreted:
        return vector_distance("y", *values, {"y": held_to[INTERPRETED]})
    return vector_distance("y", *values, {"y": held_to["y"]}) or _code_faults(want, have, *held_to[CODES])


def _values(codes: Tensor, scales: Tensor, unit: Tensor) -> Tensor:
    """Values [R, n] float64, in units [R, n/128] of their group."""
    groups = codes.float().double().unflatten(-1, (-1, GROUP))
    return (groups * (scales.double() / unit)[:, :, None]).flatten(-2)


def _code_faults(want: Tensor, have: Tensor, share: float, steps: float) -> list[str]:
    """A fault where more than `share` of the codes lie more than `steps` steps away."""
    distance = (_steps(have) - _steps(want)).abs()
    far = distance > steps
    count = int(far.sum())
    if count <= share * far.numel():
        return []
    place = tuple(far.nonzero()[0].tolist())
    return [
        f"y{list(place)} lies {int(distance[place])} steps of e4m3 from the expected code: {count} of {far.numel()} "
        f"codes lie more than {steps:g} away, allowed {share:.3g} of them"
    ]


def _steps(codes: Tensor) -> Tensor:
    """Codes as integers that count the steps of e4m3 from zero."""
    import torch

    bits = codes.view(torch.uint8).int()
    size = bits & (SIGN_BIT - 1)
    return torch.where(bits >= SIGN_BIT, -size, size)


def group_bytes(rows: int, columns: int) -> float:
    """Bytes of y [rows, columns] and its scales: a byte a code, 4 bytes for each 128."""
    return rows * columns * (1.0 + 4.0 / GROUP)
