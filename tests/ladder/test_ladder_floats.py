"""Rounding is the GPU's: nearest even, as torch rounds too, and saturating where the hardware saturates."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from kernelgen.ladder.floats import BFLOAT16, FLOAT8_E4M3, FLOAT8_E5M2, FloatFormat, decode, encode  # noqa: E402

FORMATS = {"bfloat16": BFLOAT16, "float8_e4m3fn": FLOAT8_E4M3, "float8_e5m2": FLOAT8_E5M2}
# just under, on and just over each boundary that rounding to 16 or fewer bits has
OFFSETS = np.array([0x0000, 0x0001, 0x7FFF, 0x8000, 0x8001, 0xFFFF], dtype=np.uint32)


def float32_values() -> np.ndarray:
    """Every float32 with any upper half and one of the telling lower halves: 393,216 values, specials included."""
    upper = np.arange(1 << 16, dtype=np.uint32) << 16
    return (upper[:, None] | OFFSETS[None, :]).reshape(-1).view(np.float32)


@pytest.fixture(params=FORMATS)
def form(request: pytest.FixtureRequest) -> tuple[FloatFormat, torch.dtype]:
    return FORMATS[request.param], getattr(torch, request.param)


def test_every_bit_pattern_is_decoded_as_torch_decodes_it(form) -> None:
    ours, dtype = form
    bits = np.arange(1 << (8 * np.dtype(ours.dtype).itemsize), dtype=ours.dtype)
    theirs = torch.from_numpy(bits.copy()).view(dtype).float().numpy()
    np.testing.assert_array_equal(decode(bits, ours), theirs)


def test_rounding_equals_torchs_wherever_the_value_is_in_range(form) -> None:
    ours, dtype = form
    values = float32_values()
    largest = decode(np.array([ours.largest], dtype=ours.dtype), ours)[0]
    values = values[np.abs(values) <= largest]
    theirs = torch.from_numpy(values).to(dtype).view(torch.uint8 if ours.sign == 0x80 else torch.uint16).numpy()
    np.testing.assert_array_equal(encode(values, ours), theirs)


def test_a_value_too_large_saturates_in_fp8_and_overflows_in_bfloat16() -> None:
    values = np.array([464.0, 1e30, np.inf, -np.inf], dtype=np.float32)
    assert decode(encode(values, FLOAT8_E4M3), FLOAT8_E4M3).tolist() == [448.0, 448.0, 448.0, -448.0]
    assert decode(encode(values * 1000, FLOAT8_E5M2), FLOAT8_E5M2).tolist() == [57344.0, 57344.0, 57344.0, -57344.0]
    huge = np.array([3.4e38, np.inf, -np.inf], dtype=np.float32)
    assert decode(encode(huge, BFLOAT16), BFLOAT16).tolist() == [np.inf, np.inf, -np.inf]


def test_nan_stays_nan_and_zero_keeps_its_sign(form) -> None:
    ours, _ = form
    assert np.isnan(decode(encode(np.array([np.nan]), ours), ours)).all()
    assert np.signbit(decode(encode(np.array([-0.0, 0.0]), ours), ours)).tolist() == [True, False]
