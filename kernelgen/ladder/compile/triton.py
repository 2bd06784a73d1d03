"""The job of a child that compiles Triton kernels: `kernelgen.ladder.compile.triton:job`.

Every launch compiles for a card that is not here and runs nothing; its cubin, or what the compiler said, goes to the
parent at once. A configuration that fails does not keep an autotuned kernel's others from being tried. Where the task
has a `space`, only the kernels named in it are compiled, in its configurations and not their own, and nothing raises.
Imports torch and Triton.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from kernelgen.ladder import offline
from kernelgen.ladder.channel import Channel
from kernelgen.ladder.compile.calling import Message, Reporter, serve

# after offline, which says how to install it where it is missing
import triton  # isort: skip
from triton.compiler.errors import CompilationError  # isort: skip
from triton.runtime.autotuner import Autotuner  # isort: skip
from triton.runtime.jit import JITFunction  # isort: skip

CACHE = "cache"
# imported at the first compile
LATE_IMPORTS = ("triton.experimental.gluon.nvidia.hopper", "triton.language.extra.cuda")
OPTIONS = ("num_warps", "num_stages")
INFINITE = [float("inf")] * 3


def _warm_up() -> None:
    """Do once what Triton does at its first compile: imports, and a digest of its own half a gigabyte."""
    for name in LATE_IMPORTS:
        with suppress(ImportError):  # not in every version
            importlib.import_module(name)
    for module in (triton.compiler.compiler, triton.runtime.cache):
        digest = getattr(module, "triton_key", None)
        if digest is not None:
            digest()


# in the server, which imports this module: its children are forked warm
_warm_up()


def job(channel: Channel) -> None:
    """Compile as the parent asks, until it closes."""
    triton.knobs.cache.dir = str(channel.folder / CACHE)
    serve(channel, _install)


def _install(task: Message, reporter: Reporter) -> None:
    """From now on launches compile, are reported and do not run."""
    offline.install(task["compute_capability"], shared_bytes_per_block=task["shared_bytes_per_block"])
    compiling = _Compiling(reporter, JITFunction.run, task["source"])
    JITFunction.run = _method(compiling.launch)
    Autotuner._bench = _trying_all(Autotuner._bench)
    Autotuner.run = _in_space(reporter, compiling, Autotuner.run)


def _method(function: Callable[..., Any]) -> Callable[..., Any]:
    """A bound method of ours as a method of another class, whose object is its first argument."""
    return lambda self, *args, **kwargs: function(self, *args, **kwargs)


def _trying_all(bench: Callable[..., Any]) -> Callable[..., Any]:
    """The tuner's trial of one configuration; one that fails is reported already, and counts as slowest."""

    def tried(self: Any, *args: Any, config: Any, **meta: Any) -> Any:
        try:
            return bench(self, *args, config=config, **meta)
        except Exception:  # noqa: BLE001 - whatever the compiler raises, the next configuration is tried
            return INFINITE

    return tried


def _in_space(reporter: Reporter, compiling: _Compiling, run: Callable[..., Any]) -> Callable[..., Any]:
    """The tuner's run; with a space, that of its configurations instead of the tuner's, hooks included."""

    def ran(self: Any, *args: Any, **kwargs: Any) -> Any:
        if reporter.space is None:
            return run(self, *args, **kwargs)
        own = self.configs[0]
        with compiling.as_they_come():
            for wanted in reporter.space.get(self.base_fn.__name__, ()):
                chosen = {**wanted["kwargs"], **{name: wanted[name] for name in OPTIONS}}
                current = {**kwargs, **own.all_kwargs(), **chosen}
                if own.pre_hook is not None:  # sets what descriptors are made for
                    own.pre_hook({**dict(zip(self.arg_names, args, strict=False)), **current})
                self.fn.run(*args, **current)
        return None

    return ran


class _Compiling:
    """In place of a launch: compiles and reports."""

    def __init__(self, reporter: Reporter, run: Callable[..., Any], source: str) -> None:
        self._reporter = reporter
        self._run = run
        self._source = source
        self._as_they_come = False

    def as_they_come(self) -> _Compiling:
        """A context in which a tuner has chosen the configuration of a launch already."""
        return self

    def __enter__(self) -> None:
        self._as_they_come = True

    def __exit__(self, *_: object) -> None:
        self._as_they_come = False

    def launch(self, function: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        """`JITFunction.run`, with each binary and each refusal sent to the parent."""
        space = self._reporter.space
        if space is None:
            return self._compile(function, args, grid, warmup, kwargs)
        given = {**dict(zip(function.arg_names, args, strict=False)), **kwargs}
        configs: Sequence[Message] = [{}] if self._as_they_come else space.get(function.__name__, ())
        for config in configs:
            chosen = {**config.get("kwargs", {}), **{name: config[name] for name in OPTIONS if name in config}}
            try:
                self._compile(function, (), grid, True, {**given, **chosen})
            except Exception:  # noqa: BLE001 - it is reported, and the next one is tried
                continue
        return None

    def _compile(self, function: Any, args: Any, grid: Any, warmup: bool, kwargs: dict[str, Any]) -> Any:
        build = {
            "kernel": function.__name__,
            "kwargs": offline.constants_of(function, args, kwargs),
            "num_warps": kwargs.get("num_warps"),
            "num_stages": kwargs.get("num_stages"),
        }
        self._reporter.begin(build)
        try:
            kernel = self._run(function, *args, grid=grid, warmup=warmup, **kwargs)
        except Exception as error:
            self._reporter.refused(build, error, _line(error, self._source))
            raise
        if kernel is not None:
            made = kernel.metadata
            options = {"num_warps": made.num_warps, "num_stages": made.num_stages, "shared_bytes": made.shared}
            self._reporter.built(kernel.hash, {**build, **options}, kernel.asm["cubin"])
        return kernel


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
