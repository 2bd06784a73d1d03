"""The job of a child that compiles Triton kernels: `kernelgen.ladder.compile.triton:job`.

Every launch compiles for a card that is not here and runs nothing; its cubin, or what the compiler said, goes to the
parent at once. A configuration that fails does not keep an autotuned kernel's others from being tried. Where the task
has a `space`, kernels named in it are compiled in those configurations instead of their own. Imports torch and Triton.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from kernelgen.ladder import offline
from kernelgen.ladder.compile.calling import Channel, Message, Reporter, serve

# after offline, which says how to install it where it is missing
import triton  # isort: skip
from triton.compiler.errors import CompilationError  # isort: skip
from triton.runtime.autotuner import Autotuner  # isort: skip
from triton.runtime.jit import JITFunction  # isort: skip

CACHE = "cache"
INFINITE = [float("inf")] * 3


def job(channel: Channel) -> None:
    """Compile as the parent asks, until it closes."""
    triton.knobs.cache.dir = str(channel.folder / CACHE)
    serve(channel, partial(_install, channel))


def _install(channel: Channel, task: Message, reporter: Reporter) -> None:
    """From now on launches compile, are reported and do not run."""
    log = offline.install(task["compute_capability"], shared_bytes_per_block=task["shared_bytes_per_block"])
    JITFunction.run = _reporting(log, reporter, JITFunction.run, task["source"])
    Autotuner._bench = _trying_all(Autotuner._bench)


def _trying_all(bench: Callable[..., Any]) -> Callable[..., Any]:
    """The tuner's trial of one configuration; one that fails is reported already, and counts as slowest."""

    def tried(self: Any, *args: Any, config: Any, **meta: Any) -> Any:
        try:
            return bench(self, *args, config=config, **meta)
        except Exception:  # noqa: BLE001 - whatever the compiler raises, the next configuration is tried
            return INFINITE

    return tried


def _reporting(
    log: offline.CompileLog, reporter: Reporter, run: Callable[..., Any], source: str
) -> Callable[..., Any]:
    """`JITFunction.run`, with each binary and each refusal sent to the parent."""

    def reported(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        build = {
            "kernel": self.__name__,
            "kwargs": offline._constants(self, args, kwargs),
            "num_warps": kwargs.get("num_warps"),
            "num_stages": kwargs.get("num_stages"),
        }
        reporter.begin(build)
        try:
            kernel = run(self, *args, grid=grid, warmup=warmup, **kwargs)
        except Exception as error:
            reporter.refused(build, error, _line(error, source))
            raise
        if kernel is not None:
            made = kernel.metadata
            options = {"num_warps": made.num_warps, "num_stages": made.num_stages, "shared_bytes": made.shared}
            reporter.built(kernel.hash, {**build, **options}, kernel.asm["cubin"])
        return kernel

    return reported


def _line(error: BaseException, source: str) -> int | None:
    """The line of the candidate's source that the compiler points at, the innermost where it names several."""
    line = None
    link: BaseException | None = error
    while link is not None:
        number = getattr(getattr(link, "node", None), "lineno", None)
        if isinstance(link, CompilationError) and link.src and number is not None:
            before, found, _ = source.partition(link.src.rstrip("\n"))
            line = before.count("\n") + number if found else line
        link = link.__cause__
    return line
