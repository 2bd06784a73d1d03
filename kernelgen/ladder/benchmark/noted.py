"""Which Triton kernels are launched, by name, as the called process itself sees it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kernelgen.ladder.correctness.faults import _triton_kernels


def noted_launches() -> list[str]:
    """The names of Triton kernels launched from now on, in order; whoever looks empties it."""
    names: list[str] = []
    for owner in _triton_kernels():
        owner.run = _noting(owner.run, names)
    return names


def _noting(launch: Callable[..., Any], names: list[str]) -> Callable[..., Any]:
    def launched(kernel: Any, *args: Any, **kwargs: Any) -> Any:
        names.append(str(kernel.fn.__name__))
        return launch(kernel, *args, **kwargs)

    return launched
