"""Lets host code that says `cuda` run where there is none: its tensors lie on the meta device, or on the CPU.

Inside `on_stand_in(place)` tensors at `place` say that they are on `cuda:0`, and whatever is asked for on CUDA is made
at `place`; `torch.cuda` answers as for one card whose stream is the default one. For a process of its own that ends
with its check: what it sets in `torch.cuda` is not put back. Imports torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from types import SimpleNamespace
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

CUDA = torch.device("cuda", 0)
DEFAULT_STREAM = SimpleNamespace(cuda_stream=0, device=CUDA, synchronize=lambda: None, wait_stream=lambda other: None)


def on_stand_in(place: str) -> TorchFunctionMode:
    """A context in which `place`, `meta` or `cpu`, passes for `cuda:0`."""
    torch.cuda.is_available = lambda: True
    torch.cuda.is_initialized = lambda: True
    torch.cuda.init = lambda: None
    torch.cuda.device_count = lambda: 1
    torch.cuda.current_device = lambda: 0
    torch.cuda.synchronize = lambda device=None: None
    torch.cuda.current_stream = lambda device=None: DEFAULT_STREAM
    torch.cuda.default_stream = lambda device=None: DEFAULT_STREAM
    torch.cuda.set_device = lambda device: None
    torch.cuda.device = _same_device
    torch.cuda.device_of = _same_device
    return _StandIn(place)


def _same_device(_: Any = None) -> AbstractContextManager[None]:
    """`torch.cuda.device(…)`: there is only one."""
    return nullcontext()


class _StandIn(TorchFunctionMode):  # type: ignore[misc]
    """Translates between `cuda` and the place that stands in for it, both ways."""

    def __init__(self, place: str) -> None:
        super().__init__()
        self._place = torch.device(place)
        self._reads: dict[Any, Callable[[torch.device], Any]] = {
            torch.Tensor.is_cuda.__get__: lambda device: device.type == place,
            torch.Tensor.is_cpu.__get__: lambda device: device.type == "cpu" != place,
            torch.Tensor.device.__get__: lambda device: CUDA if device.type == place else device,
            torch.Tensor.get_device: lambda device: 0 if device.type == place else -1,
        }

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        read = self._reads.get(func)
        if read is not None:
            return read(torch.Tensor.device.__get__(args[0]))
        if func is torch.Tensor.cuda:
            return args[0].to(self._place)
        if func is torch.Tensor.cpu and self._place.type == "cpu":
            return args[0].clone()
        if func is torch.device:
            return func(*args, **(kwargs or {}))
        placed = {name: self._placed(value) for name, value in (kwargs or {}).items()}
        if type(placed.get("device")) is int:  # the number of a card
            placed["device"] = self._place
        return func(*(self._placed(value) for value in args), **placed)

    def _placed(self, value: Any) -> Any:
        """A device that is CUDA as the place that stands in for it; anything else as it is."""
        if isinstance(value, torch.device):
            return self._place if value.type == "cuda" else value
        is_name = isinstance(value, str) and (value == "cuda" or value.startswith("cuda:"))
        return self._place if is_name else value
