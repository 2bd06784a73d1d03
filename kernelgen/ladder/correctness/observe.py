"""What the called process can say of itself beside its tensors: flags, clocks and helpers changed, threads, operators.

Candidate code runs in the same process and can forge all of it. So each finding is one more way to fail; none is a
reason to pass.
"""

from __future__ import annotations

import _thread
import hashlib
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

# helpers that a judge, a clock or another kernel relies on
HELPERS = {
    "builtins": ("open", "print", "isinstance", "type", "len", "getattr", "exec", "compile", "__import__"),
    "ctypes": ("memmove", "memset"),
    "json": ("dumps", "loads"),
    "os": ("_exit", "read", "write", "kill"),
    "sys": ("exit", "getrefcount"),
    "time": ("perf_counter", "perf_counter_ns", "monotonic", "time", "sleep"),
    "torch": ("empty", "empty_like", "zeros", "full", "allclose", "equal", "isclose", "frombuffer", "manual_seed"),
    "torch.Tensor": (
        "copy_",
        "clone",
        "to",
        "cpu",
        "view",
        "reshape",
        "equal",
        "data_ptr",
        "untyped_storage",
        "tolist",
    ),
    "torch.cuda": ("synchronize", "current_stream", "Event", "Stream", "is_available", "empty_cache"),
    "torch.cuda.Event": ("elapsed_time", "record", "synchronize"),
    "torch.testing": ("assert_close",),
    "triton.testing": ("do_bench",),
}
FLAGS: dict[str, Callable[[], Any]] = {
    "torch's default dtype": torch.get_default_dtype,
    "torch's default device": torch.get_default_device,
    "torch's number of threads": torch.get_num_threads,
    "gradients": torch.is_grad_enabled,
    "deterministic algorithms": torch.are_deterministic_algorithms_enabled,
    "float32_matmul_precision": torch.get_float32_matmul_precision,
    "cuda.matmul.allow_tf32": lambda: torch.backends.cuda.matmul.allow_tf32,
    "fp16 reduced-precision reduction": lambda: torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction,
    "bf16 reduced-precision reduction": lambda: torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction,
    "cudnn.allow_tf32": lambda: torch.backends.cudnn.allow_tf32,
    "cudnn.benchmark": lambda: torch.backends.cudnn.benchmark,
    "torch's random state": lambda: hashlib.sha256(torch.get_rng_state().numpy().tobytes()).hexdigest(),
    "Python's random state": lambda: hash(random.getstate()),
    "the environment": lambda: dict(os.environ),
    "the trace function": sys.gettrace,
    "the profile function": sys.getprofile,
}
# looking for whoever calls, or for what else lives in the process
LOOKS = frozenset(
    {"sys._getframe", "sys._current_frames", "gc.get_objects", "gc.get_referrers", "gc.get_referents", "sys.settrace"}
)
WALKERS = ("inspect.py", "traceback.py")
# each gives Python every number of a tensor, and is no operator
WHOLE_READS = (torch.Tensor.tolist, torch.Tensor.numpy, torch.Tensor.__array__, torch.Tensor.__dlpack__)


def state() -> dict[str, Any]:
    """Flags and helpers as they are now, by name."""
    values = {name: read() for name, read in FLAGS.items()}
    for owner, names in HELPERS.items():
        holder = _find(owner)
        values.update({f"{owner}.{name}": getattr(holder, name, None) for name in names if holder is not None})
    return values


def changed(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Names of what is no longer the same: objects by identity, flags by value."""
    return [
        name
        for name, value in before.items()
        if (after[name] is not value if name not in FLAGS else after[name] != value)
    ]


def running() -> int:
    """Threads of Python and child processes there are now."""
    tasks = Path("/proc/self/task")
    children = 0
    try:
        for listing in tasks.glob("*/children"):
            children += len(listing.read_text(encoding="ascii").split())
    except OSError:  # nothing of /proc to be seen: the threads alone
        children = 0
    return _thread._count() + children


class Watch:
    """An audit hook, which cannot be taken away: notes candidate code that walks frames or asks the collector."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._seen: list[str] = []
        self._looking = False
        sys.addaudithook(self._heard)

    def taken(self) -> list[str]:
        """What was noted since the last time, each once."""
        seen, self._seen = self._seen, []
        return list(dict.fromkeys(seen))

    def _heard(self, event: str, _: Any, looks: frozenset[str] = LOOKS) -> None:
        if event not in looks or self._looking:
            return
        self._looking = True  # asking for a frame is such an event itself
        frame = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename.endswith(WALKERS):
            frame = frame.f_back  # type: ignore[assignment]
        self._looking = False
        if frame is not None and frame.f_code.co_filename == self._file:
            self._seen.append(f"{event} in line {frame.f_lineno}")


class Reads(TorchFunctionMode):  # type: ignore[misc]
    """Counts the numbers that whole tensors give to Python, and lets `Operators` add those read one by one."""

    def __init__(self) -> None:
        super().__init__()
        self.floats = 0
        self.others = 0

    def note(self, tensor: torch.Tensor) -> None:
        """Count a tensor's numbers."""
        if tensor.is_floating_point() or tensor.is_complex():
            self.floats += tensor.numel()
        else:
            self.others += tensor.numel()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in WHOLE_READS and args and isinstance(args[0], torch.Tensor):
            self.note(args[0])
        return func(*args, **(kwargs or {}))


class Operators(TorchDispatchMode):  # type: ignore[misc]
    """Counts torch's operators around a call, but for the judge's own, which `paused` says are under way."""

    def __init__(self, paused: Callable[[], bool], reads: Reads | None = None) -> None:
        super().__init__()
        self._paused = paused
        self._reads = reads
        self.counts: dict[str, int] = {}

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Not: hiding this mode from torch.compile imports all of it, a second for each process."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if not self._paused():
            if self._reads is not None and "_local_scalar_dense" in func.name():
                self._reads.note(args[0])
            whole = _only_whole(args) and _only_whole((result,))
            cast = f">{result.dtype}" if "_to_copy" in func.name() and isinstance(result, torch.Tensor) else ""
            name = f"{func.name()}{cast}{'/whole' if whole else ''}"
            self.counts[name] = self.counts.get(name, 0) + 1
        return result


def _only_whole(values: Any) -> bool:
    """Whether all tensors among some values hold whole numbers or truth values."""
    return all(
        not value.is_floating_point() and not value.is_complex() for value in values if isinstance(value, torch.Tensor)
    )


def _find(owner: str) -> Any:
    """The module or class of that name as far as it is loaded; None where it is not."""
    if owner in sys.modules:
        return sys.modules[owner]
    module, _, name = owner.rpartition(".")
    return getattr(sys.modules.get(module), name, None)
