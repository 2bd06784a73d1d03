"""The job of a child that compiles TileLang kernels: `kernelgen.ladder.compile.tilelang:job`.

TileLang's own pipeline lowers each kernel for the card that stands in, and compiles the device code with nvcc; but a
compiled kernel, when called, gives empty outputs and runs nothing. It is reported when it is called first, and refused
as on the card where a block has not so much shared memory. Imports torch and TileLang.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from kernelgen.ladder import stand_in
from kernelgen.ladder.channel import Channel
from kernelgen.ladder.compile.calling import FILE, Message, Reporter, own_traceback, serve

from tilelang.contrib import nvcc  # isort: skip
from tilelang.cuda.backend import tilelang_callback_cuda_compile  # isort: skip
from tilelang.jit import JITImpl  # isort: skip
from tilelang.jit.kernel import JITKernel  # isort: skip
from tilelang.profiler import Profiler  # isort: skip
from tvm import arith, tirx  # isort: skip

SHARED, THREADS = "dyn_shared_memory_buf", "thread_extent"


class OutOfResources(RuntimeError):
    """More shared memory than a block has: named and worded as Triton's."""


@dataclass(frozen=True)
class _Made:
    """A kernel compiled."""

    name: str
    arguments: dict[str, Any]
    binary: bytes
    shared_bytes: int
    threads: int
    params: list[Any]


def job(channel: Channel) -> None:
    """Compile as the parent asks, until it closes."""
    folder = str(channel.folder)
    tempfile.tempdir = folder
    os.environ |= {"TILELANG_CACHE_DIR": folder, "TILELANG_DISABLE_CACHE": "1", "TILELANG_PRINT_ON_COMPILATION": "0"}
    serve(channel, partial(_install, channel.folder / FILE))


def _install(file: Path, task: Message, reporter: Reporter) -> None:
    """From now on kernels compile for the card that stands in, are reported, and do not run."""
    known = stand_in.card(task["compute_capability"])
    limit = task["shared_bytes_per_block"]
    stand_in.answer_for(stand_in.Card(known.compute_capability, known.sm_count, limit))
    # TileLang looks for a card at compile time too
    torch.cuda.is_available = lambda: True
    underway = _Underway()
    nvcc.compile_cuda = underway.keeping_binary(nvcc.compile_cuda)
    JITImpl.compile = underway.noting_arguments(JITImpl.compile)
    JITKernel._compile_artifact = _reporting(reporter, underway, file, JITKernel._compile_artifact)
    JITKernel._create_adapter_from_artifact = _adapting(reporter, limit)
    Profiler.do_bench = _trial


class _Underway(threading.local):
    """What this thread is compiling: the arguments of the kernel's maker, and the device code that nvcc made last."""

    arguments: dict[str, Any] = {}  # noqa: RUF012 - never changed, replaced
    binary: bytes | None = None

    def noting_arguments(self, compile_kernel: Callable[..., Any]) -> Callable[..., Any]:
        """`JITImpl.compile`, with its plain arguments and defaults noted while it lasts."""

        def compiled(maker: Any, *args: Any, **kwargs: Any) -> Any:
            bound = maker.signature.bind_partial(*args, **kwargs)
            bound.apply_defaults()
            given = bound.arguments.items()
            self.arguments = {name: value for name, value in given if isinstance(value, bool | int | float | str)}
            try:
                return compile_kernel(maker, *args, **kwargs)
            finally:
                self.arguments = {}

        return compiled

    def keeping_binary(self, compile_cuda: Callable[..., Any]) -> Callable[..., Any]:
        """nvcc's driver, with what it makes kept."""

        def compiled(*args: Any, **kwargs: Any) -> Any:
            made = compile_cuda(*args, **kwargs)
            self.binary = bytes(made)
            return made

        return compiled


def _reporting(
    reporter: Reporter, underway: _Underway, file: Path, compile_artifact: Callable[..., Any]
) -> Callable[..., Any]:
    """TileLang's compile of one kernel, with a refusal reported and the binary kept beside the artifact."""

    def compiled(self: Any, function: Any, pass_configs: dict[str, Any], metadata: dict[str, Any]) -> Any:
        name = str(metadata["kernel"])
        begun: Message = {"kernel": name, "kwargs": underway.arguments, "num_warps": None, "num_stages": None}
        reporter.begin(begun)
        underway.binary = None
        try:
            artifact = compile_artifact(self, function, pass_configs, metadata)
            if underway.binary is None:  # some of TileLang's backends leave the device code for later
                tilelang_callback_cuda_compile(artifact.kernel_source, self.target, pass_configs)
        except Exception as error:
            reporter.refused(begun, error, own_traceback(error, file)[1])
            raise
        self.kernelgen_made = _made(name, underway, artifact)
        return artifact

    return compiled


def _made(name: str, underway: _Underway, artifact: Any) -> _Made:
    attributes = [dict(function.attrs) for function in artifact.device_mod.functions.values()]
    extents = [told.get(THREADS, {}) for told in attributes]
    threads = [
        int(extent.get("threadIdx.x", 1)) * int(extent.get("threadIdx.y", 1)) * int(extent.get("threadIdx.z", 1))
        for extent in extents
    ]
    return _Made(
        name=name,
        arguments=underway.arguments,
        binary=underway.binary or b"",
        shared_bytes=max((int(told.get(SHARED, 0)) for told in attributes), default=0),
        threads=max(threads, default=0),
        params=list(artifact.params),
    )


def _trial(self: Any, *_: Any, **__: Any) -> float:
    """A tuner's timing of one configuration: it is launched, and as fast as any other."""
    self.adapter.report()
    return 1.0


@dataclass(frozen=True)
class _Adapter:
    """What a compiled kernel is asked for beside a call."""

    func: Callable[..., Any]
    params: list[Any]
    result_idx: list[int]
    mod: Any
    source: str
    report: Callable[[], None]

    def get_kernel_source(self, kernel_only: bool = True) -> str:
        """The device code."""
        return self.source


def _adapting(reporter: Reporter, limit: int) -> Callable[..., _Adapter]:
    """In place of what would launch a kernel: reports it, and gives outputs that hold nothing."""

    def adapter(self: Any, function: Any, outputs: Any, artifact: Any, *_: Any) -> _Adapter:
        made: _Made = self.kernelgen_made
        places = _places(outputs, len(made.params))
        report = partial(_report, reporter, made, limit)

        def called(*inputs: Any) -> Any:
            if len(inputs) != len(made.params) - len(places):
                wanted = len(made.params) - len(places)
                raise ValueError(f"Kernel expected {wanted} inputs, but {len(inputs)} are provided.")
            report()
            return _outputs(made.params, places, inputs)

        return _Adapter(called, made.params, places, artifact.device_mod, str(artifact.kernel_source), report)

    return adapter


def _report(reporter: Reporter, made: _Made, limit: int) -> None:
    """Report a launch. Raises OutOfResources where the card would refuse it."""
    warps = made.threads // stand_in.WARP_SIZE
    build = {"kernel": made.name, "kwargs": made.arguments, "num_warps": warps, "num_stages": None}
    if made.shared_bytes > limit:
        needed = f"Required: {made.shared_bytes}, Hardware limit: {limit}"
        error = OutOfResources(f"out of resource: shared memory, {needed}. Reducing block sizes or stages may help.")
        reporter.refused(build, error, None)
        raise error
    key = f"{made.name}:{made.arguments}:{hashlib.sha256(made.binary).hexdigest()}"
    reporter.built(key, {**build, "shared_bytes": made.shared_bytes}, made.binary)


def _places(outputs: Any, count: int) -> list[int]:
    """Which parameters are outputs, counted from the first."""
    listed = [] if outputs is None else [outputs] if isinstance(outputs, int) else list(outputs)
    return [int(place) % count for place in listed]


def _outputs(params: list[Any], places: list[int], inputs: tuple[Any, ...]) -> Any:
    """New tensors for the outputs, their symbolic extents taken from the inputs'."""
    known: dict[Any, int] = {}
    given = iter(inputs)
    device: Any = None
    for place, param in enumerate(params):
        if place in places:
            continue
        value = next(given)
        if isinstance(value, torch.Tensor):
            device = device or value.device
            known |= {wanted: size for wanted, size in zip(param.shape, value.shape, strict=False)
                      if isinstance(wanted, tirx.Var)}  # fmt: skip
    made = []
    for place in places:
        shape = [_extent(size, known) for size in params[place].shape]
        made.append(torch.empty(shape, dtype=params[place].torch_dtype(), device=device))
    if not made:
        return None
    return made[0] if len(made) == 1 else made


def _extent(size: Any, known: dict[Any, int]) -> int:
    """An extent as a number."""
    if isinstance(size, int):
        return size
    replaced = tirx.stmt_functor.substitute(
        size, {name: tirx.const(value, name.dtype) for name, value in known.items()}
    )
    return int(arith.Analyzer().simplify(replaced))
