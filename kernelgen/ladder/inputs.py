"""Inputs of a target as shapes alone: tensors on torch's meta device, which hold nothing however large they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kernelgen.ladder.reasons import Attempt
from kernelgen.targets.code import TargetCode

# made for real, where shapes cannot be had otherwise, only up to this size
REAL_BYTES = 1 << 30


def shapes_only(code: TargetCode, dims: dict[str, int], kind: str, seed: int) -> dict[str, Any] | None:
    """What `make_inputs` makes at these dimensions, its tensors on the meta device; None where that needs values.

    A target may support `device="meta"` itself; else it runs under torch's fake tensors; else, where it moves at most
    `REAL_BYTES`, for real on the CPU.
    """
    where = Path(code.module)
    # whatever a target's code raises where it meets tensors without values, the next way is tried
    with Attempt(where):
        return _on_meta(code.make_inputs(dims, kind, seed, "meta"))
    # only now: it costs a second to import
    from torch._subclasses.fake_tensor import FakeTensorMode

    inputs = None
    with Attempt(where), FakeTensorMode():
        inputs = code.make_inputs(dims, kind, seed, "cpu")
    if inputs is None and code.bytes_moved(dims) <= REAL_BYTES:
        inputs = code.make_inputs(dims, kind, seed, "cpu")
    return None if inputs is None else _on_meta(inputs)


def _on_meta(inputs: dict[str, Any]) -> dict[str, Any]:
    """The same arguments, tensors as empty ones of their shape, strides and type."""
    import torch

    return {
        name: torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
        if isinstance(value, torch.Tensor)
        else value
        for name, value in inputs.items()
    }
