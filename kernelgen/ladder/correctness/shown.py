"""What a call works on in the called process: inputs as tensors, unwritten memory that is poison, a library's outputs.

On a CPU inputs are the shared memory itself, on a GPU a copy with the same margins. Contents can change under the same
tensors: same objects, same addresses, same version counters.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from kernelgen.ladder.correctness.tensors import POISON, Memory, Placed, margins, place
from kernelgen.ladder.cuda import calling

# glibc's mallopt(M_PERTURB, value): malloc fills with the complement of the value's lowest byte, 0 switches it off
PERTURB = -6
BYTE = 0xFF
# a GPU's cached memory is poisoned in blocks of these sizes, below and above torch's limit for small ones
CACHED_BYTES = (1 << 10, 1 << 14, 1 << 18, 1 << 20, 1 << 24)
BLOCKS = 8


class Inputs:
    """The inputs of a call."""

    def __init__(self, memory: Memory, placed: Sequence[Placed], message: dict[str, Any], device: str) -> None:
        self.scalars: dict[str, Any] = message["scalars"]
        self.dims: dict[str, int] = message["dims"]
        self.outputs: list[tuple[str, str, list[int]]] = message["outputs"]
        self.device = device
        self._memory = memory
        self._copy = None if device == "cpu" else memory.bytes.to(device)
        self.tensors = {one.name: self._tensor(one) for one in placed}

    def change(self, scalars: dict[str, Any]) -> None:
        """Take over what the memory holds now, and these numbers."""
        self.scalars = scalars
        if self._copy is not None:
            self._copy.copy_(self._memory.bytes)

    def show(self) -> None:
        """Let the memory hold what the call left."""
        if self._copy is not None:
            self._memory.bytes.copy_(self._copy)

    def overlapping(self, tensor: torch.Tensor) -> str | None:
        """Name of an input that shares memory with a tensor, or None."""
        return next((name for name, own in self.tensors.items() if overlap(own, tensor)), None)

    def _tensor(self, placed: Placed) -> torch.Tensor:
        if self._copy is None:
            return self._memory.tensor(placed)
        dtype = getattr(torch, placed.dtype)
        tensor = torch.empty(0, dtype=dtype, device=self.device)
        # not a view: a view would share the copy's version counter
        return tensor.set_(self._copy.untyped_storage(), placed.offset // dtype.itemsize, placed.shape)


class Library:
    """A CUDA C++ launcher as a function of inputs, with outputs allocated here between poisoned margins."""

    def __init__(self, path: Path, entry_point: str) -> None:
        launcher = getattr(ctypes.CDLL(str(path)), entry_point)
        launcher.restype = ctypes.c_int
        self._launch: Callable[..., None] = calling(launcher, entry_point)
        self.written_beside: list[str] = []

    def __call__(self, inputs: Inputs) -> tuple[torch.Tensor, ...]:
        """Launch on new outputs."""
        placed, size = place(inputs.outputs)
        memory = torch.full((size,), POISON, dtype=torch.uint8, device=inputs.device)
        outputs = []
        for one in placed:
            dtype = getattr(torch, one.dtype)
            output = torch.empty(0, dtype=dtype, device=inputs.device)
            outputs.append(output.set_(memory.untyped_storage(), one.offset // dtype.itemsize, one.shape))
        dims = [extent for _, extent in sorted(inputs.dims.items())]  # a launcher takes them by name
        self._launch(*inputs.tensors.values(), *inputs.scalars.values(), *dims, *outputs)
        self._memory, self._placed = memory, placed
        return tuple(outputs)

    def look_beside(self) -> None:
        """Note the outputs of the last call beside which something was written."""
        names = [one.name for one in self._placed]
        stretches = margins(self._placed, len(self._memory))
        beside = [bool((self._memory[begin:end] != POISON).any()) for begin, end in stretches]
        self.written_beside = [f"before {name}" for name, hit in zip(names, beside, strict=False) if hit]
        self.written_beside += [f"after {names[-1]}"] if beside[-1] else []


def poison(byte: int, inputs: Inputs) -> None:
    """Make memory that nobody wrote read as this byte: what malloc gives, or what a GPU's allocator has in store."""
    if inputs.device == "cpu":
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
        if mallopt is not None:  # glibc has it
            mallopt(PERTURB, (BYTE - byte) or BYTE + 1)
        return
    placed, _ = place(inputs.outputs)
    sizes = [*CACHED_BYTES, *(one.nbytes for one in placed if one.nbytes)]
    held = [torch.full((size,), byte, dtype=torch.uint8, device=inputs.device) for size in sizes for _ in range(BLOCKS)]
    torch.cuda.synchronize()
    del held


def overlap(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two contiguous tensors have a byte in common."""
    if not one.numel() or not other.numel():
        return False
    first, second = sorted((one, other), key=lambda tensor: int(tensor.data_ptr()))
    return bool(second.data_ptr() < first.data_ptr() + first.nbytes)
