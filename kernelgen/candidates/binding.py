"""What a candidate's own test needs of its target, written into the file as constants."""

from __future__ import annotations

from kernelgen.config import Frozen


class TargetBinding(Frozen):
    """The target's code, its shapes and how far an output may lie from the reference."""

    module: str
    """Dotted name, or `file.py` in `folder`."""
    folder: str | None
    """Where that file is; None for a dotted name."""
    smoke: dict[str, dict[str, int]]
    """Tiny shapes, dimensions by name: what the test runs."""
    tune: dict[str, dict[str, int]]
    """Timed shapes, dimensions by name: what is compiled for."""
    kinds: tuple[str, ...]
    """Input makers."""
    tolerance: dict[str, tuple[float, float]]
    """rtol and atol by output."""
    compute_capability: int
    """Of the hardware, as Triton counts it: 90 for Hopper."""
