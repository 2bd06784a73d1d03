"""Tensors in memory that two processes share, each between poisoned margins.

The judge makes a `Memory`, an anonymous file that can neither grow nor shrink, and hands its descriptor over; both
sides map it, and on a CPU a call works on that very memory. Margins tell who writes beside a tensor. On a GPU the other
process keeps a copy with the same margins on the device (`caller`). Nothing here knows a target.
"""

from __future__ import annotations

import fcntl
import mmap
import os
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from typing import Any

import torch

# as torch's allocators align, and as TMA and vectorised loads may expect
ALIGNMENT = 512
MARGIN_BYTES = 4096
# NaN in every floating-point format, -1 in every integer
POISON = 0xFF
SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL


@dataclass(frozen=True)
class Placed:
    """Where a contiguous tensor lies in a memory."""

    name: str
    """Argument or output name."""
    dtype: str
    """torch's name of the dtype."""
    shape: tuple[int, ...]
    """Extents."""
    offset: int
    """First byte."""
    nbytes: int
    """Length in bytes."""

    def as_list(self) -> list[Any]:
        """The fields as JSON can hold them."""
        return list(astuple(self))

    @classmethod
    def of_list(cls, fields: Sequence[Any]) -> Placed:
        """What `as_list` gave."""
        name, dtype, shape, offset, nbytes = fields
        return cls(name, dtype, tuple(shape), offset, nbytes)


def place(tensors: Iterable[tuple[str, str, Sequence[int]]]) -> tuple[tuple[Placed, ...], int]:
    """Places for tensors by name, dtype and shape, margins around each, and the bytes they need together."""
    placed, end = [], MARGIN_BYTES
    for name, dtype, shape in tensors:
        nbytes = getattr(torch, dtype).itemsize
        for size in shape:
            nbytes *= size
        placed.append(Placed(name, dtype, tuple(shape), end, nbytes))
        end = -(-(end + nbytes + MARGIN_BYTES) // ALIGNMENT) * ALIGNMENT
    return tuple(placed), end


def margins(placed: Sequence[Placed], size: int) -> list[tuple[int, int]]:
    """First and past-the-last byte of every stretch that belongs to no tensor, in order."""
    begins = [0, *(one.offset + one.nbytes for one in placed)]
    ends = [*(one.offset for one in placed), size]
    return list(zip(begins, ends, strict=True))


class Memory:
    """Shared memory, mapped here; `descriptor` is what another process maps."""

    def __init__(self, descriptor: int, size: int) -> None:
        self.descriptor = descriptor
        self.size = size
        self._mapped = mmap.mmap(descriptor, size)
        # an owner of its own for the bytes: tensors made of it keep the mapping alive
        self.bytes = torch.frombuffer(self._mapped, dtype=torch.uint8)

    @classmethod
    def create(cls, size: int, fill: int = POISON) -> Memory:
        """New memory, every byte `fill`; its size cannot be changed by anyone, so that reading it is always safe."""
        descriptor = os.memfd_create("memory", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(descriptor, size)
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, SEALS)
        memory = cls(descriptor, size)
        memory.bytes.fill_(fill)
        return memory

    def close(self) -> None:
        """Close the descriptor; the mapping lives as long as tensors of it."""
        os.close(self.descriptor)

    def raw(self, placed: Placed) -> torch.Tensor:
        """The bytes of a tensor."""
        return self.bytes[placed.offset : placed.offset + placed.nbytes]

    def tensor(self, placed: Placed) -> torch.Tensor:
        """A tensor on this memory that looks like any other: its storage is its own, first byte to last."""
        dtype = getattr(torch, placed.dtype)
        if placed.nbytes == 0:
            return torch.empty(placed.shape, dtype=dtype)
        own = torch.frombuffer(self._mapped, dtype=torch.uint8, offset=placed.offset, count=placed.nbytes)
        return own.view(dtype).view(placed.shape) if placed.shape else own.view(dtype)[0]


def bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    """The bytes of a contiguous tensor, without a copy."""
    return tensor.reshape(-1).view(torch.uint8)
