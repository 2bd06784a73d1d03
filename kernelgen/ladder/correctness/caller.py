"""The called side: loads a candidate, calls it on inputs it is shown, and hands its outputs over. Runs contained.

A loop over requests, a frame each and a frame in answer: prepare, load, reveal, change, call, show, collect, forget,
launches, choose. It never sees a reference or a tolerance, and what it answers is believed only where it speaks against
the candidate. Candidate code runs in this very process and may change any of it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from kernelgen.ladder.correctness import observe
from kernelgen.ladder.correctness.faults import Launches
from kernelgen.ladder.correctness.raising import told
from kernelgen.ladder.correctness.shown import Inputs, Library, overlap, poison
from kernelgen.ladder.correctness.tensors import Memory, Placed, bytes_of
from kernelgen.ladder.placement import on_stand_in

Message = dict[str, Any]
# a name that says nothing of who calls, or why
MODULE = "kernel"


def serve(channel: Any) -> None:
    """Answer requests until the channel is closed: the job of a session."""
    sys.argv = [""]
    torch.set_num_threads(1)
    side = _Side(Path(channel.folder))
    while True:
        message, descriptors = channel.receive()
        answer = side.requests[message["do"]](message, descriptors)
        channel.send({**answer, "ticket": message["ticket"]})


class _Side:
    """What this side holds between requests."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = folder / f"{MODULE}.py"
        self._launches = Launches()
        self._inputs: dict[str, Inputs] = {}
        self._kept: dict[str, Any] = {}
        self._tuning: Any = None
        self._place: AbstractContextManager[Any] = nullcontext()
        self._lines_above = 0
        self.requests: dict[str, Callable[[Message, list[int]], Message]] = {
            "prepare": self._prepare,
            "load": self._load,
            "reveal": self._reveal,
            "change": self._change,
            "call": self._call,
            "show": self._show,
            "collect": self._collect,
            "forget": self._forget,
            "launches": self._set_launches,
            "choose": self._choose,
        }

    def _prepare(self, message: Message, _: list[int]) -> Message:
        """Get ready for candidate code: whatever fails here is not its doing."""
        self._device = message["device"]
        if self._device == "cpu" and message["dsl"] == "triton":
            from kernelgen.ladder import interpreter

            self._tuning = interpreter.install(message["compute_capability"])
        counted = self._launches.install(message["dsl"])
        _warm_up(self._device)
        if self._device == "cpu":  # host code that says `cuda` is as good as any
            self._place = on_stand_in("cpu")
        self._state, self._running = observe.state(), observe.running()
        self._watch = observe.Watch(str(self._file))
        return {"counted": counted}

    def _load(self, message: Message, _: list[int]) -> Message:
        """Run the candidate's module, or open its library, and find the entry point."""
        try:
            with self._place:
                self._entry_point = self._find(message)
        except BaseException as error:  # noqa: BLE001 whatever a candidate raises is a result, SystemExit too
            return self._failure(error)
        return {"failure": None, **self._observed()}

    def _find(self, message: Message) -> Callable[[Inputs], Any]:
        """The candidate as a function of inputs."""
        if message["library"]:
            return Library(self._folder / message["library"], message["entry_point"])
        above = f"{message['preamble']}\n" if message["preamble"] else ""
        self._lines_above = above.count("\n")
        self._file.write_text(above + message["source"], encoding="utf-8")
        module = ModuleType(MODULE)
        module.__file__ = str(self._file)
        sys.modules[MODULE] = module  # where dataclasses and pickle look for it
        exec(compile(above + message["source"], str(self._file), "exec"), module.__dict__)
        entry_point = getattr(module, message["entry_point"])
        return lambda inputs: entry_point(**inputs.tensors, **inputs.scalars)

    def _reveal(self, message: Message, descriptors: list[int]) -> Message:
        """Map the inputs of the next calls, in place of earlier ones of that name."""
        memory = Memory(descriptors[0], message["size"])
        memory.close()
        placed = [Placed.of_list(fields) for fields in message["tensors"]]
        self._inputs[message["inputs"]] = Inputs(memory, placed, message, self._device)
        return {}

    def _change(self, message: Message, _: list[int]) -> Message:
        self._inputs[message["inputs"]].change(message["scalars"])
        return {}

    def _call(self, message: Message, _: list[int]) -> Message:
        """Call the entry point once and keep the very object it returned."""
        inputs, launches = self._inputs[message["inputs"]], self._launches
        launches.kept, launches.count = list(inputs.tensors.values()), 0
        if message["poison"] is not None:
            poison(message["poison"], inputs)
        reads = observe.Reads()
        operators = observe.Operators(lambda: launches.own_work > 0, reads)
        try:
            with operators, self._place, reads:
                answer = self._entry_point(inputs)
            if self._device != "cpu":
                torch.cuda.synchronize()
            if isinstance(self._entry_point, Library):
                self._entry_point.look_beside()
        except BaseException as error:  # noqa: BLE001 whatever a candidate raises is a result, SystemExit too
            return {**self._failure(error), "launches": launches.count}
        self._kept[message["keep"]] = answer
        said = {"operators": operators.counts, "read_floats": reads.floats, "read_others": reads.others}
        return {"failure": None, "launches": launches.count, **said, **self._observed()}

    def _show(self, message: Message, _: list[int]) -> Message:
        """Bring what a call left of its inputs to where the other side sees it."""
        self._inputs[message["inputs"]].show()
        return {}

    def _collect(self, message: Message, descriptors: list[int]) -> Message:
        """Copy a kept answer into the other side's memory, as far as it has the form asked for, and describe it."""
        memory = Memory(descriptors[0], message["size"])
        memory.close()
        answer = self._kept[message["keep"]]
        if type(answer) is not tuple:
            return {"returned": _type_name(answer), "forms": []}
        placed = [Placed.of_list(fields) for fields in message["outputs"]]
        forms = [self._form(output, answer, message) for output in answer]
        for one, output, form in zip(placed, answer, forms, strict=False):
            fits = form["type"] == "torch.Tensor" and form["dtype"] == one.dtype and form["shape"] == list(one.shape)
            if fits and form["contiguous"] and form["storage"] and one.nbytes:
                memory.raw(one).copy_(bytes_of(output.detach()))
        return {"returned": "tuple", "forms": forms, **self._observed()}

    def _form(self, output: Any, answer: tuple[Any, ...], message: Message) -> Message:
        """What an output is."""
        if type(output) is not torch.Tensor:
            return {"type": _type_name(output)}
        form: Message = {
            "type": "torch.Tensor",
            "dtype": str(output.dtype).removeprefix("torch."),
            "shape": list(output.shape),
            "strides": list(output.stride()) if output.layout is torch.strided else [],
            "device": output.device.type,
            "layout": str(output.layout).removeprefix("torch."),
        }
        form["contiguous"] = form["layout"] == "strided" and output.is_contiguous()
        form["storage"] = not output.numel() or (form["layout"] == "strided" and output.data_ptr() != 0)
        form["overlaps"] = self._overlap(output, answer, message) if form["contiguous"] else None
        return form

    def _overlap(self, output: torch.Tensor, answer: tuple[Any, ...], message: Message) -> str | None:
        """What else an output shares memory with, in words; None for nothing."""
        shared = self._inputs[message["inputs"]].overlapping(output)
        if shared is not None:
            return f"the input {shared}"
        if any(other is not output and _is_plain(other) and overlap(output, other) for other in answer):
            return "another output"
        if sum(other is output for other in answer) > 1:
            return "another output"
        earlier = [other for name, held in self._kept.items() if name != message["keep"] for other in _tensors(held)]
        return "an output of an earlier call" if any(overlap(output, other) for other in earlier) else None

    def _forget(self, message: Message, _: list[int]) -> Message:
        self._kept.pop(message["keep"], None)
        return {}

    def _set_launches(self, message: Message, _: list[int]) -> Message:
        self._launches.mode = message["mode"]
        return {}

    def _choose(self, message: Message, _: list[int]) -> Message:
        self._tuning.choose(message["choice"])
        return {}

    def _observed(self) -> Message:
        """What speaks against the candidate beside its answers, and how many configurations it has."""
        now = observe.running()
        return {
            "changed": observe.changed(self._state, observe.state()),
            "started": max(0, now - self._running),
            "looked": self._watch.taken(),
            "beside": getattr(getattr(self, "_entry_point", None), "written_beside", []),
            "choices": self._tuning.choices if self._tuning is not None else 1,
            "chosen": self._tuning.chosen() if self._tuning is not None else "",
        }

    def _failure(self, error: BaseException) -> Message:
        """What a candidate raised."""
        return {**told(error, str(self._file), self._lines_above), **self._observed()}


def _warm_up(device: str) -> None:
    """Let torch start what it starts once, so that it is not taken for the candidate's doing."""
    with observe.Operators(lambda: True):
        ones = torch.ones(4, 4, device=device)
        torch.mm(ones, ones)


def _type_name(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")


def _is_plain(value: Any) -> bool:
    return type(value) is torch.Tensor and value.layout is torch.strided and value.is_contiguous()


def _tensors(answer: Any) -> list[torch.Tensor]:
    return [value for value in answer if _is_plain(value)] if type(answer) is tuple else []
