"""The child's side of a compile: loads a candidate, calls its entry point on stand-in inputs, reports as it goes.

`serve` is the loop of a child: a task comes in (source, entry point, calls), events go out, `done` last; then further
calls, until the parent closes. Inputs are shapes alone on the meta device, or tensors on the CPU where the parent sent
their bytes. Nothing reported here is believed by the parent but as the candidate's own word. It has never seen a
target: neither reference nor tolerance nor how inputs are made. Imports torch.
"""

from __future__ import annotations

import mmap
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import torch

from kernelgen.ladder.compile.placement import on_stand_in
from kernelgen.ladder.reasons import Attempt, explain

MODULE = "candidate"
FILE = f"{MODULE}.py"

Message = dict[str, Any]


class Channel(Protocol):
    """The child's end of its connection with the parent."""

    folder: Path

    def send(self, message: Message, fds: tuple[int, ...] = ()) -> None:
        """Send a frame, with open files."""

    def receive(self) -> tuple[Message, list[int]]:
        """The next frame, with the files that came with it."""


class Reporter:
    """Tells the parent what is compiled, and what came of it."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._sent: set[str] = set()
        self.call: str | None = None
        """Which call is being made; None while the file is loaded."""
        self.refusal: BaseException | None = None
        """What the last compile that failed raised."""

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
    file = channel.folder / FILE
    with Attempt(file) as loading:
        module = _load(file, task["preamble"], task["source"])
        entry_point = getattr(module, task["entry_point"])
    reporter.called(loading, file)
    while True:
        for call in task["calls"] if loading.error is None else ():
            reporter.call = call["name"]
            with Attempt(file) as made, on_stand_in(call["place"]):
                entry_point(**_arguments(call, descriptors))
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
    """An error's traceback from the candidate's first frame on, and the line it left the candidate's file at."""
    told = traceback.TracebackException.from_exception(error)
    own = [index for index, frame in enumerate(told.stack) if frame.filename == str(file)]
    del told.stack[: own[0] if own else len(told.stack)]
    numbers = [frame.lineno for frame in told.stack if frame.filename == str(file)]
    text = without_folder("".join(told.format(chain=False)), file.parent)
    if isinstance(error, SyntaxError) and error.filename == str(file):
        return text, error.lineno
    return text, numbers[-1] if numbers else None


def _load(file: Path, preamble: str, source: str) -> ModuleType:
    """The candidate as a module: its own lines in a file, which compilers read, kernelgen's before them."""
    file.write_text(source, encoding="utf-8")
    module = ModuleType(MODULE)
    module.__file__ = str(file)
    sys.modules[MODULE] = module
    exec(compile(preamble, "preamble", "exec"), module.__dict__)
    exec(compile(source, str(file), "exec"), module.__dict__)
    return module


def _arguments(call: Message, descriptors: list[int]) -> dict[str, Any]:
    """What the entry point is called with."""
    arguments: dict[str, Any] = {}
    content = mmap.mmap(descriptors[call["file"]], 0, access=mmap.ACCESS_COPY) if call["file"] is not None else None
    for name, told in call["arguments"].items():
        if "shape" not in told:
            arguments[name] = told["value"]
            continue
        dtype = getattr(torch, told["dtype"])
        if content is None:
            tensor = torch.empty_strided(told["shape"], told["stride"], dtype=dtype, device=call["place"])
        else:
            tensor = _tensor(content, told, dtype)
        arguments[name] = tensor
    return arguments


def _tensor(content: mmap.mmap, told: Message, dtype: torch.dtype) -> torch.Tensor:
    """A tensor with the bytes that the parent sent, in memory of its own."""
    held = torch.empty(told["shape"], dtype=dtype)
    size = held.numel() * held.element_size()
    if size:
        held.view(-1).view(torch.uint8).copy_(torch.frombuffer(content, dtype=torch.uint8, count=size, offset=told["at"]))
    return torch.empty_strided(told["shape"], told["stride"], dtype=dtype).copy_(held)


def _memory_file(content: bytes) -> int:
    """An anonymous file that holds the content, as an open descriptor."""
    descriptor = os.memfd_create("binary", os.MFD_CLOEXEC)
    with suppress(InterruptedError):
        written = 0
        while written < len(content):
            written += os.write(descriptor, content[written:])
    return descriptor


def _came_from(error: BaseException, refusal: BaseException | None) -> bool:
    """Whether an error is, or was caused by, a compile that failed."""
    link: BaseException | None = error
    while link is not None and refusal is not None:
        if link is refusal or explain(link) == explain(refusal):
            return True
        link = link.__cause__ or link.__context__
    return False
