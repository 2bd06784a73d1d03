"""The child's side of a compile: loads a candidate, calls its entry point on stand-in inputs, reports as it goes.

`serve` is the loop of a child: a task comes in (source, entry point, calls), events go out, `done` last; then further
calls, until the parent closes. Inputs are shapes alone on the meta device, or tensors on the CPU where the parent sent
their bytes. Nothing reported here is believed by the parent but as the candidate's own word. It has never seen a
target: neither reference nor tolerance nor how inputs are made. Imports torch.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from kernelgen.ladder.channel import Channel
from kernelgen.ladder.correctness.tensors import Memory, Placed
from kernelgen.ladder.placement import on_stand_in
from kernelgen.ladder.reasons import Attempt, explain

MODULE = "candidate"
FILE = f"{MODULE}.py"
PACKAGE = str(Path(__file__).resolve().parents[2])

Message = dict[str, Any]


class Reporter:
    """Tells the parent what is compiled, and what came of it."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._sent: set[str] = set()
        self.call: str | None = None
        """Which call is being made; None while the file is loaded."""
        self.refusal: BaseException | None = None
        """What the last compile that failed raised."""
        self.space: dict[str, list[Message]] | None = None
        """By kernel, the configurations to compile in place of its own; None for its own."""

    def answer(self, task: Message) -> None:
        """A further request begins."""
        self.space = task.get("space")
        self._sent.clear()

    def begin(self, build: Message) -> None:
        """A compile begins; `build` says of what."""
        self._channel.send({"event": "compiling", "call": self.call, **build})

    def built(self, key: str, build: Message, binary: bytes) -> None:
        """A binary was made; the same `key` is sent once a call, its bytes once."""
        if f"{self.call}:{key}" in self._sent:
            return
        descriptors = () if key in self._sent else (_memory_file(binary),)
        self._sent |= {key, f"{self.call}:{key}"}
        self._channel.send({"event": "built", "call": self.call, "key": key, **build}, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)

    def refused(self, build: Message, error: BaseException, line: int | None) -> None:
        """A compile failed."""
        self.refusal = error
        words = without_folder(explain_whole(error), self._channel.folder)
        said = {"error": type(error).__name__, "words": words, "line": line}
        self._channel.send({"event": "refused", "call": self.call, **build, **said})

    def called(self, attempt: Attempt, file: Path) -> None:
        """A call, or the loading of the file, is over."""
        said: Message = {"event": "called", "call": self.call, "failure": attempt.failure}
        if attempt.error is not None:
            said["from_kernel"] = _came_from(attempt.error, self.refusal)
            said["words"], said["line"] = own_traceback(attempt.error, file)
        self._channel.send(said)


def serve(channel: Channel, install: Callable[[Message, Reporter], None]) -> None:
    """Do what the parent asks until it closes; `install` prepares the process to compile and not to run."""
    task, descriptors = channel.receive()
    reporter = Reporter(channel)
    install(task, reporter)
    # from here on an end is the candidate's
    channel.send({"event": "ready"})
    file = channel.folder / FILE
    with Attempt(file) as loading:
        module = _load(file, task["preamble"], task["source"])
        entry_point = getattr(module, task["entry_point"])
    reporter.called(loading, file)
    while True:
        memories = iter(descriptors)
        reporter.answer(task)
        for call in task["calls"] if loading.error is None else ():
            reporter.call = call["name"]
            memory = Memory(next(memories), call["size"]) if "size" in call else None
            with Attempt(file) as made, on_stand_in(call["place"]):
                entry_point(**_arguments(call, memory))
            reporter.called(made, file)
        channel.send({"event": "done"})
        task, descriptors = channel.receive()


def explain_whole(error: BaseException) -> str:
    """An error with its causes; an assertion without words is told by its source, which is all it says."""
    link: BaseException | None = error
    said = explain(error)
    while link is not None:
        if isinstance(link, AssertionError) and not str(link):
            frames = traceback.extract_tb(link.__traceback__)
            said += f"\nAssertionError: {frames[-1].line}" if frames else ""
        link = link.__cause__
    return said


def without_folder(text: str, folder: Path) -> str:
    """A text without the folder that differs from run to run."""
    return text.replace(f"{folder}{os.sep}", "")


def own_traceback(error: BaseException, file: Path) -> tuple[str, int | None]:
    """An error with the candidate's frames of its traceback and the innermost one, and the line it left its file at."""
    told = traceback.TracebackException.from_exception(error)
    own = [frame for frame in told.stack if frame.filename == str(file)]
    foreign = [frame for frame in told.stack if not frame.filename.startswith(PACKAGE)]
    told.stack[:] = [frame for frame in told.stack if frame in own or (own and frame is foreign[-1])]
    text = without_folder("".join(told.format(chain=False)), file.parent)
    if isinstance(error, SyntaxError) and error.filename == str(file):
        return text, error.lineno
    return text, own[-1].lineno if own else None


def _load(file: Path, preamble: str, source: str) -> ModuleType:
    """The candidate as a module: its own lines in a file, which compilers read, kernelgen's before them."""
    file.write_text(source, encoding="utf-8")
    module = ModuleType(MODULE)
    module.__file__ = str(file)
    sys.modules[MODULE] = module
    exec(compile(preamble, "preamble", "exec"), module.__dict__)
    exec(compile(source, str(file), "exec"), module.__dict__)
    return module


def _arguments(call: Message, memory: Memory | None) -> dict[str, Any]:
    """What the entry point is called with."""
    if memory is not None:
        placed = [Placed.of_list(fields) for fields in call["tensors"]]
        return {**{one.name: memory.tensor(one) for one in placed}, **call["scalars"]}
    tensors = {
        name: torch.empty_strided(shape, stride, dtype=getattr(torch, dtype), device=call["place"])
        for name, (dtype, shape, stride) in call["tensors"].items()
    }
    return {**tensors, **call["scalars"]}


def _memory_file(content: bytes) -> int:
    """An anonymous file that holds the content, as an open descriptor."""
    descriptor = os.memfd_create("binary", os.MFD_CLOEXEC)
    with open(descriptor, "wb", closefd=False) as file:
        file.write(content)
    return descriptor


def _came_from(error: BaseException, refusal: BaseException | None) -> bool:
    """Whether an error is, or was caused by, a compile that failed."""
    link: BaseException | None = error
    while link is not None and refusal is not None:
        if link is refusal or explain(link) == explain(refusal):
            return True
        link = link.__cause__ or link.__context__
    return False
