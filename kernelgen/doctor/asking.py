"""Questions that may hang or break, asked side by side: an answer, or the sentence why there is none.

Each runs in a daemon thread, which a process may leave behind when it ends: a tool stuck in the kernel cannot be waited
for. What a question runs besides is killed at its own limit.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, TypeVar

from kernelgen.doctor.privacy import shown
from kernelgen.errors import KernelgenError
from kernelgen.ladder import child

TOOL_S = 2.0
"""Limit of a tool that says its version."""
LONGEST_REASON = 200

T = TypeVar("T")


class NotTold(KernelgenError):
    """A question has no answer here; the message is the reason."""


@dataclass(frozen=True)
class Told(Generic[T]):
    """An answer, or why there is none."""

    value: T | None
    """The answer."""
    why_not: str | None = None
    """The reason where there is none."""


class Question(Generic[T]):
    """A question on its way; a context manager around its own asking, so that whatever is raised is its answer."""

    def __init__(self, ask: Callable[[], T]) -> None:
        self._ask = ask
        self._told: Told[T] | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def answer(self, deadline: float) -> Told[T]:
        """What came of it by `deadline`, a time of `time.monotonic`."""
        self._thread.join(max(deadline - time.monotonic(), 0))
        return self._told or Told(None, "no answer in time")

    def _run(self) -> None:
        with self:
            self._told = Told(self._ask())

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if error is not None:
            self._told = Told(None, reason(error))
        return True


def reason(error: BaseException) -> str:
    """An error as the reason for a missing answer, in one line."""
    text = " ".join(str(error).split())
    if not isinstance(error, KernelgenError):
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return shorten(shown(text))


def shorten(text: str) -> str:
    """A reason short enough for a line."""
    return text if len(text) <= LONGEST_REASON else f"{text[: LONGEST_REASON - 1]}…"


def say(command: Sequence[str | Path], *, timeout_s: float = TOOL_S) -> str:
    """What a tool prints. Raises NotTold where it fails or does not end in time."""
    with tempfile.TemporaryDirectory(prefix="kernelgen-", ignore_cleanup_errors=True) as folder:
        ended = child.run(command, timeout_s=timeout_s, folder=Path(folder), variables={"LC_ALL": "C"})
    if ended.failure is not None:
        words = " ".join(ended.output.split())
        raise NotTold(f"{Path(command[0]).name} {ended.failure}{f': {words}' if words else ''}")
    return ended.output


def ask_child(
    kind: str, arguments: Sequence[str] = (), *, timeout_s: float, variables: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """What a Python process of its own finds out: `children` with this kind.

    The record of one that did not end well has what it found until then, and the key `failure`.

    Raises:
        NotTold: it left no record.
    """
    ended = child.python(
        "kernelgen.doctor.children",
        [kind, *arguments],
        timeout_s=timeout_s,
        interpreter=sys.executable,
        variables=variables,
    )
    if ended.record is None:
        words = ended.output.strip().splitlines()[-1:]
        raise NotTold(": ".join([ended.failure or "ended without a word", *words]))
    found = {key: _all_shown(value) for key, value in ended.record.items()}
    return found if ended.failure is None else {**found, "failure": ended.failure}


def _all_shown(value: Any) -> Any:
    """A value of a record with all its texts fit to be shown."""
    if isinstance(value, str):
        return shorten(shown(value))
    if isinstance(value, list):
        return [_all_shown(item) for item in value]
    return {key: _all_shown(item) for key, item in value.items()} if isinstance(value, dict) else value
