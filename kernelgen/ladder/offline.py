"""Compiles every Triton kernel that an unmodified host wrapper launches, for a card that is not here.

`install` makes a stand-in the active driver of this process: a launch compiles the kernel with Triton's own
specialisation, records it and runs nothing, so tensors may be on the CPU or meta device and keep their contents.
Autotuned kernels compile every configuration that their pruning leaves; one that needs more shared memory or threads
than the card has raises Triton's OutOfResources, as there. For a process of its own, never beside the interpreter;
nothing is put back. It does not say that a kernel computes anything right, or that a launch would succeed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from kernelgen.errors import HarnessError
from kernelgen.ladder import binary, stand_in
from kernelgen.ladder.reasons import explain

# after stand_in, which says how to install it where it is missing
import triton  # isort: skip
from triton.runtime.jit import JITFunction  # isort: skip


@dataclass(frozen=True)
class Build:
    """One kernel compiled, or not, in one configuration."""

    kernel: str
    """Name of the `@triton.jit` function."""
    kwargs: dict[str, Any]
    """Compile-time arguments as resolved: numbers, flags and texts."""
    num_warps: int | None
    """Warps of a block; None where the compiler did not come that far and the launch named none."""
    num_stages: int | None
    """Pipeline stages; None likewise."""
    registers: int | None = None
    """32-bit registers of a thread; None where it did not compile."""
    spills: int | None = None
    """32-bit words of stack of a thread; None where it did not compile."""
    shared_bytes: int | None = None
    """Shared memory of a block; None where it did not compile."""
    instructions: dict[str, int] = field(default_factory=dict)
    """How often the telling instructions stand in it, where they were asked for."""
    error: str | None = None
    """Why it cannot run; None where it can."""

    def describe(self) -> str:
        """The configuration in one line: `gather_kernel[BLOCK=256, num_warps=4, num_stages=3]`."""
        options = {"num_warps": self.num_warps, "num_stages": self.num_stages}
        stated = self.kwargs | {name: value for name, value in options.items() if value is not None}
        return f"{self.kernel}[{', '.join(f'{name}={value}' for name, value in stated.items())}]"


@dataclass(frozen=True)
class Launch:
    """One launch that would have run."""

    build: Build
    """What was launched."""
    grid: tuple[int, int, int] | None
    """Blocks along x, y and z; None for `kernel.warmup`, which launches nothing."""


@dataclass
class CompileLog:
    """What a process compiled and would have launched, in order."""

    launches: list[Launch] = field(default_factory=list)
    """Every launch."""
    failures: list[Build] = field(default_factory=list)
    """Every launch that raised before it ran."""
    _grid: tuple[int, int, int] | None = None
    _known: dict[str, Build] = field(default_factory=dict)

    def builds(self) -> list[Build]:
        """The configurations that can run, each once, in the order they were met.

        Those that differ only in the specialisation of their arguments count once, as the one with most registers.
        """
        largest: dict[str, Build] = {}
        for launch in self.launches:
            name = launch.build.describe()
            held = largest.get(name)
            if held is None or (launch.build.registers or 0) > (held.registers or 0):
                largest[name] = launch.build
        return list(largest.values())


class _Utils:
    """The part of a driver that loads binaries: reads the resources and loads nothing."""

    def __init__(self, card: stand_in.Card) -> None:
        self._card = card

    def get_device_properties(self, device: int) -> dict[str, int]:
        return stand_in.device_properties(self._card)

    def load_binary(self, name: str, kernel: bytes, shared: int, device: int, *_: Any) -> tuple[Any, ...]:
        used = _only(kernel, None)
        return None, None, used.registers, used.stack_bytes // binary.WORD_BYTES, stand_in.MAX_THREADS_PER_BLOCK

    def unload_module(self, *_: Any) -> None:
        """Nothing was loaded."""


def _only(kernel: bytes, further: Sequence[str] | None) -> binary.Used:
    """What the one kernel of a cubin uses. Raises HarnessError where the tools cannot read what the compiler made."""
    try:
        (used,) = binary.read(kernel, further)
    except ValueError as error:
        raise HarnessError(f"The compiler's binary cannot be read: {error}") from error
    return used


class _Launcher:
    """In place of the launcher that Triton compiles: notes the grid."""

    def __init__(self, log: CompileLog, src: Any, metadata: Any) -> None:
        self._log = log

    def __call__(self, grid_x: int, grid_y: int, grid_z: int, *_: Any) -> None:
        self._log._grid = (grid_x, grid_y, grid_z)


def install(
    compute_capability: int = 90, *, shared_bytes_per_block: int | None = None, instructions: bool = False
) -> CompileLog:
    """Compile from now on for a card that is not here, and record it.

    Args:
        compute_capability: as Triton counts it; 90 compiles for sm_90a.
        shared_bytes_per_block: limit in bytes; None takes the architecture's.
        instructions: also count the telling machine instructions of each build.

    Raises:
        HarnessError: this process interprets kernels (TRITON_INTERPRET).
        BadInput: the compute capability is not known.
    """
    if triton.knobs.runtime.interpret or os.environ.get("TRITON_INTERPRET", "0") not in ("", "0"):
        raise HarnessError("Compiling offline needs a process of its own: TRITON_INTERPRET is set here.")
    known = stand_in.card(compute_capability)
    limit = known.shared_bytes_per_block if shared_bytes_per_block is None else shared_bytes_per_block
    card = stand_in.Card(compute_capability, known.sm_count, limit)
    log = CompileLog()
    driver = stand_in.StandInDriver(card, torch_device="meta")
    driver.utils = _Utils(card)
    driver.launcher_cls = partial(_Launcher, log)
    stand_in.answer_for(card)
    triton.runtime.driver.set_active(driver)
    JITFunction.run = _recording(log, JITFunction.run, instructions)
    return log


def _recording(log: CompileLog, run: Callable[..., Any], instructions: bool) -> Callable[..., Any]:
    """`JITFunction.run`, with what came of it appended to the log."""

    def recorded(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        constants = constants_of(self, args, kwargs)
        log._grid = None
        try:
            kernel = run(self, *args, grid=grid, warmup=warmup, **kwargs)
            if warmup and kernel is not None:
                kernel._init_handles()  # a warm-up only compiles: this reads the resources and holds them to the limit
        except Exception as error:
            warps, stages = kwargs.get("num_warps"), kwargs.get("num_stages")
            log.failures.append(Build(self.__name__, constants, warps, stages, error=explain(error)))
            raise
        if kernel is not None:
            log.launches.append(Launch(_build(log, self, constants, kernel, instructions), log._grid))
        return kernel

    return recorded


def _build(log: CompileLog, function: Any, constants: dict[str, Any], kernel: Any, instructions: bool) -> Build:
    """The record of a compiled kernel, made once for each binary."""
    if kernel.hash not in log._known:
        log._known[kernel.hash] = Build(
            kernel=function.__name__,
            kwargs=constants,
            num_warps=kernel.metadata.num_warps,
            num_stages=kernel.metadata.num_stages,
            registers=kernel.n_regs,
            spills=kernel.n_spills,
            shared_bytes=kernel.metadata.shared,
            instructions=_only(kernel.asm["cubin"], ()).instructions if instructions else {},
        )
    return log._known[kernel.hash]


def constants_of(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The compile-time arguments of a launch, defaults included, in the kernel's order."""
    given = {**dict(zip(function.arg_names, args, strict=False)), **kwargs}
    constants = {}
    for parameter in function.params:
        if parameter.is_constexpr and (parameter.name in given or parameter.has_default):
            value = given.get(parameter.name, parameter.default if parameter.has_default else None)
            value = getattr(value, "value", value)  # tl.constexpr
            constants[parameter.name] = value if isinstance(value, bool | int | float | str | None) else str(value)
    return constants
