"""Launches counted, and kernels made to fail: the called process' side of fault injection.

`Launches` stands around every launch of a DSL, put there before candidate code is loaded. Broken launches show what an
answer owes to its kernels: one that raises must end the call, one that computes nothing must spoil the answer. What a
launch runs of the candidate's host code, its grid and its hooks, is no kernel's work: it runs in any case, and counts.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import torch

RUN, RAISE, SKIP, SPOIL = "run", "raise", "skip", "spoil"
# a broken kernel writes these bytes: NaN in every floating-point format, -2 in every integer but for its sign
SPOILED = 0xFE
LAUNCH_FAILED = "Triton Error [CUDA]: unspecified launch failure"


class Launches:
    """Every launch of this process from now on: how many there were, and what becomes of the next ones."""

    def __init__(self) -> None:
        self.mode = RUN
        self.count = 0
        self.own_work = 0
        self.kept: Sequence[torch.Tensor] = ()

    def install(self, dsl: str) -> bool:
        """Stand around the launches of a DSL; whether there is a place to stand."""
        if dsl == "triton":
            for owner in _triton_kernels():
                owner.run = self._around(owner.run)
            return True
        if dsl == "tilelang":
            from tilelang.jit.kernel import JITKernel

            JITKernel.__call__ = self._around(JITKernel.__call__, returns=True)
            return True
        return False

    def _around(self, launch: Callable[..., Any], *, returns: bool = False) -> Callable[..., Any]:
        """A launch, counted and done as the mode says; one that `returns` its outputs must run to have any."""

        @wraps(launch)
        def launched(kernel: Any, *args: Any, **kwargs: Any) -> Any:
            if kwargs.get("warmup"):
                return launch(kernel, *args, **kwargs)
            self.count += 1
            if self.mode == RUN and not returns:
                return launch(kernel, *args, **kwargs)
            if not returns:
                _host_part(kernel, args, kwargs)
            if self.mode == RAISE:
                raise RuntimeError(LAUNCH_FAILED)
            self.own_work += 1
            try:
                result = launch(kernel, *args, **kwargs) if returns else None
                if self.mode == SPOIL or (returns and self.mode == SKIP):
                    self._spoil([*args, *kwargs.values(), result])
            finally:
                self.own_work -= 1
            return result

        return launched

    def _spoil(self, values: Sequence[Any]) -> None:
        """Fill every tensor that is not an input of the call."""
        kept = {tensor.data_ptr() for tensor in self.kept}
        for value in values:
            if isinstance(value, tuple | list):
                self._spoil(value)
            tensor = getattr(value, "base", value)  # a tensor descriptor's
            if isinstance(tensor, torch.Tensor) and tensor.numel() and tensor.data_ptr() not in kept:
                torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage()).fill_(SPOILED)


def _host_part(kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """What a launch of Triton runs of the candidate's before the kernel: hooks, and the grid where it is a function."""
    passed = {name: value for name, value in kwargs.items() if name not in ("grid", "warmup")}
    for hook in kernel.pre_run_hooks:
        hook(*args, **passed)
    grid = kwargs.get("grid")
    if callable(grid):
        signature = inspect.signature(kernel.fn)
        named = {name: value for name, value in passed.items() if name in signature.parameters}
        bound = signature.bind(*args, **named)
        bound.apply_defaults()
        grid(dict(bound.arguments))


def _triton_kernels() -> list[Any]:
    """The classes of Triton whose `run` launches: compiled or interpreted kernels."""
    from triton.runtime.jit import JITFunction

    interpreted = sys.modules.get("triton.runtime.interpreter")
    return [JITFunction] if interpreted is None else [JITFunction, interpreted.InterpretedFunction]
