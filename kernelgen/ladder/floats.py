"""Bit patterns of the float formats numpy lacks: bfloat16, float8_e4m3fn and float8_e5m2.

`encode` rounds to nearest, ties to even, as the GPU's `cvt.rn` does; `decode` is exact. The two 8-bit formats saturate
at their largest finite value, infinities included, as `cvt.rn.satfinite` does (PTX ISA, "cvt"): torch gives NaN or
infinity there. The payload of a NaN is not kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class FloatFormat:
    """A binary floating-point format of at most 16 bits."""

    mantissa_bits: int
    """Bits after the binary point."""
    bias: int
    """What is subtracted from the exponent field."""
    largest: int
    """Bit pattern of the largest finite value."""
    nan: int
    """Bit pattern of a quiet NaN."""
    infinity: int | None
    """Bit pattern of infinity; None where the format has none."""
    saturates: bool
    """Whether a value too large becomes the largest finite one."""
    dtype: type[np.unsignedinteger[Any]]
    """Unsigned integer of the format's width."""

    @property
    def sign(self) -> int:
        """Bit pattern of the sign."""
        return 1 << (np.dtype(self.dtype).itemsize * 8 - 1)


BFLOAT16 = FloatFormat(7, 127, largest=0x7F7F, nan=0x7FC0, infinity=0x7F80, saturates=False, dtype=np.uint16)
FLOAT8_E4M3 = FloatFormat(3, 7, largest=0x7E, nan=0x7F, infinity=None, saturates=True, dtype=np.uint8)
FLOAT8_E5M2 = FloatFormat(2, 15, largest=0x7B, nan=0x7F, infinity=0x7C, saturates=True, dtype=np.uint8)


def encode(values: NDArray[Any], form: FloatFormat) -> NDArray[Any]:
    """The bit patterns nearest to numbers of any numpy type, in the shape of `values`."""
    exact = np.asarray(values, dtype=np.float64)
    magnitude = np.abs(exact)
    finite = np.where(np.isfinite(magnitude), magnitude, 0.0)
    smallest = 1 - form.bias
    # numpy gives zero the exponent of a half
    exponent = np.where(finite > 0, np.maximum(np.frexp(finite)[1] - 1, smallest), smallest)
    quanta = np.rint(np.ldexp(finite, form.mantissa_bits - exponent)).astype(np.int64)
    # a mantissa that rounds up to two carries into the exponent field by itself
    bits = ((exponent - smallest).astype(np.int64) << form.mantissa_bits) + quanta
    too_large = form.largest if form.saturates or form.infinity is None else form.infinity
    bits = np.where((bits > form.largest) | np.isinf(magnitude), too_large, bits)
    bits = np.where(np.isnan(magnitude), form.nan, bits)
    return np.where(np.signbit(exact), bits | form.sign, bits).astype(form.dtype)


def decode(bits: NDArray[Any], form: FloatFormat) -> NDArray[np.float32]:
    """The numbers behind bit patterns, exact, in the shape of `bits`."""
    if form is BFLOAT16:
        # the upper half of a float32
        return (bits.astype(np.uint32) << 16).view(np.float32)
    magnitude = bits.astype(np.int64) & (form.sign - 1)
    field = magnitude >> form.mantissa_bits
    fraction = magnitude & ((1 << form.mantissa_bits) - 1)
    significand = np.where(field > 0, fraction + (1 << form.mantissa_bits), fraction).astype(np.float32)
    values = np.ldexp(significand, np.maximum(field, 1) - form.bias - form.mantissa_bits)
    if form.infinity is not None:
        values = np.where(magnitude == form.infinity, np.inf, values)
    values = np.where((magnitude > form.largest) & (magnitude != form.infinity), np.nan, values)
    return np.where(bits & form.sign, -values, values).astype(np.float32)
