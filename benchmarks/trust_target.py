"""A target to measure the benchmark itself with: out = 2 * x[:N] for x [N + P] fp32, exactly; P is there to be read."""

from __future__ import annotations

from typing import Any

FACTOR = 2.0


def make_inputs(dims: dict[str, int], kind: str, seed: int, device: str) -> dict[str, Any]:
    """x [N + P] fp32, normal values."""
    import torch

    generator = torch.Generator(device=device).manual_seed(seed)
    return {"x": torch.randn(dims["N"] + dims["P"], generator=generator, device=device), "n": dims["N"]}


def reference(x: Any, n: int) -> tuple[Any, ...]:
    """(out [N] fp32,), to the bit."""
    return (FACTOR * x[:n],)


def compare(inputs: dict[str, Any], expected: Any, got: Any, tolerance: dict[str, tuple[float, float]]) -> list[str]:
    """Whether every element is the same."""
    import torch

    return [] if torch.equal(expected[0], got[0]) else ["out is not 2 * x"]


def flops(dims: dict[str, int]) -> float:
    """A product for each element."""
    return float(dims["N"])


def bytes_moved(dims: dict[str, int]) -> float:
    """N elements read and written."""
    return 8.0 * dims["N"]
