"""What torch has no call for: GPU memory that two processes map by a file descriptor, and persisting L2 cache lines.

Descriptors, unlike CUDA's own handles between processes, need neither a common pid or ipc namespace nor a path. A
mapping lives as long as tensors of it. Everything here works in torch's current context, which must exist already.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from typing import Any

import torch

from kernelgen.ladder.correctness.tensors import POISON, Memory

LIBRARY = "libcuda.so.1"
_PINNED, _DESCRIPTOR, _ON_DEVICE, _READ_WRITE, _LEAST_GRANULARITY = 1, 1, 1, 3, 0
_PERSISTING_LIMIT = 6
_U64, _SIZE = ctypes.c_uint64, ctypes.c_size_t


class DriverError(Exception):
    """The driver refused a call."""


class _Location(ctypes.Structure):
    _fields_ = (("type", ctypes.c_int), ("id", ctypes.c_int))


class _Properties(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_int),
        ("handle_types", ctypes.c_int),
        ("location", _Location),
        ("windows", ctypes.c_void_p),
        ("flags", ctypes.c_ubyte * 8),
    )


class _Access(ctypes.Structure):
    _fields_ = (("location", _Location), ("flags", ctypes.c_int))


class _Mapped:
    """A stretch of this process' addresses on an allocation, as torch's `as_tensor` takes it."""

    def __init__(self, handle: int, size: int) -> None:
        """Map an allocation, which its own handle need not outlive."""
        whole, place, address = _rounded(size), _Location(_ON_DEVICE, torch.cuda.current_device()), _U64()
        try:
            _call("cuMemAddressReserve", ctypes.byref(address), _SIZE(whole), _SIZE(0), _U64(0), _U64(0))
            _call("cuMemMap", address, _SIZE(whole), _SIZE(0), _U64(handle), _U64(0))
            _call("cuMemSetAccess", address, _SIZE(whole), ctypes.byref(_Access(place, _READ_WRITE)), _SIZE(1))
        finally:
            _call("cuMemRelease", _U64(handle))
        self.__cuda_array_interface__ = {
            "shape": (size,),
            "typestr": "|u1",
            "data": (address.value, False),
            "version": 3,
        }
        weakref.finalize(self, _unmap, address.value, whole).atexit = False


class DeviceMemory(Memory):
    """GPU memory that two processes share; `descriptor` is what the other one maps."""

    def __init__(self, descriptor: int, size: int, handle: int | None = None) -> None:
        """Map what another process made, or what this one made and has the `handle` of, which is used up."""
        self.descriptor = descriptor
        self.size = size
        if handle is None:
            imported = _U64()
            _call("cuMemImportFromShareableHandle", ctypes.byref(imported), ctypes.c_void_p(descriptor), _DESCRIPTOR)
            handle = imported.value
        self.bytes = torch.as_tensor(_Mapped(handle, size), device="cuda")

    @classmethod
    def create(cls, size: int, fill: int = POISON) -> DeviceMemory:
        """New memory, every byte `fill`.

        Raises:
            DriverError: the driver gives no such memory.
        """
        torch.cuda.synchronize()  # makes a context where there is none yet
        handle, descriptor = _U64(), ctypes.c_int()
        properties = _properties()
        _call("cuMemCreate", ctypes.byref(handle), _SIZE(_rounded(size)), ctypes.byref(properties), _U64(0))
        try:
            _call("cuMemExportToShareableHandle", ctypes.byref(descriptor), handle, _DESCRIPTOR, _U64(0))
        except DriverError:
            _call("cuMemRelease", handle)
            raise
        memory = cls(descriptor.value, size, handle.value)
        memory.bytes.fill_(fill)
        torch.cuda.synchronize()
        return memory

    def close(self) -> None:
        """Close the descriptor; the mapping lives as long as tensors of it."""
        os.close(self.descriptor)


MEMORIES: dict[str, type[Memory]] = {"host": Memory, "device": DeviceMemory}
"""What both sides map, by the word that requests have for it."""


def persisting_bytes() -> int:
    """How much of the L2 cache is set aside for lines that stay."""
    value = _SIZE()
    _call("cuCtxGetLimit", ctypes.byref(value), _PERSISTING_LIMIT)
    return value.value


def forget_persisting() -> None:
    """Let no line stay in the L2 cache, and set nothing aside for any."""
    _call("cuCtxSetLimit", _PERSISTING_LIMIT, _SIZE(0))
    _call("cuCtxResetPersistingL2Cache")


def _properties() -> _Properties:
    return _Properties(_PINNED, _DESCRIPTOR, _Location(_ON_DEVICE, torch.cuda.current_device()))


def _rounded(size: int) -> int:
    """The size in whole units of allocation."""
    unit, properties = _SIZE(), _properties()
    _call("cuMemGetAllocationGranularity", ctypes.byref(unit), ctypes.byref(properties), _LEAST_GRANULARITY)
    return -(-max(size, 1) // unit.value) * unit.value


def _unmap(address: int, whole: int) -> None:
    _call("cuMemUnmap", _U64(address), _SIZE(whole))
    _call("cuMemAddressFree", _U64(address), _SIZE(whole))


def _call(name: str, *arguments: Any) -> None:
    """A call of the driver. Raises DriverError where it fails."""
    try:
        code = getattr(ctypes.CDLL(LIBRARY), name)(*arguments)
    except (OSError, AttributeError) as error:
        raise DriverError(f"{name}: {error}") from error
    if code != 0:
        raise DriverError(f"{name} returned CUDA error {code}")
