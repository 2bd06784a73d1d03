"""The timed side: a candidate, the champion or nothing at all, called in blocks on inputs it is shown. Runs contained.

Beside the requests of `correctness.caller`: share, outputs, warm, capture, ready, block, hand, twice, look. A block is
some rounds of the same calls; before each call one element of one input is changed and the L2 cache emptied, and at its
end one answer is copied to where the judge's clock waits for it. Candidate code runs in this very process and may
change any of it.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from kernelgen.ladder.benchmark.driver import (
    MEMORIES,
    DeviceMemory,
    DriverError,
    forget_persisting,
    persisting_bytes,
)
from kernelgen.ladder.benchmark.noted import noted_launches
from kernelgen.ladder.benchmark.rounds import Round, unwritten
from kernelgen.ladder.correctness.caller import MODULE, Message, _is_plain, _Side
from kernelgen.ladder.correctness.shown import Inputs, Library
from kernelgen.ladder.correctness.tensors import Memory, Placed, bytes_of

_clock = time.perf_counter


def serve(channel: Any) -> None:
    """Answer requests until the channel is closed: the job of a session."""
    sys.argv = [""]
    torch.set_num_threads(1)
    side = TimedSide(Path(channel.folder))
    while True:
        message, descriptors = channel.receive()
        answer = side.requests[message["do"]](message, descriptors)
        channel.send({**answer, "ticket": message["ticket"]})


class TimedSide(_Side):
    """What this side holds between requests."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._rounds: dict[str, Round] = {}
        self._aside = 0
        self._launched: list[str] = []
        self._first: list[Any] = []
        self._answers: Memory | None = None
        self.requests |= {
            "share": self._share,
            "outputs": self._outputs,
            "warm": self._warm,
            "capture": self._capture,
            "ready": self._ready,
            "block": self._block,
            "hand": self._hand,
            "twice": self._twice,
            "look": self._look,
        }

    def _prepare(self, message: Message, descriptors: list[int]) -> Message:
        """Get ready for candidate code; note the names of Triton kernels that are launched."""
        answer = super()._prepare(message, descriptors)
        if message["dsl"] == "triton":
            self._launched = noted_launches()
        return answer

    def _share(self, message: Message, descriptors: list[int]) -> Message:
        """Try whether GPU memory of the other side's can be mapped here."""
        try:
            self._aside = persisting_bytes()
            memory = DeviceMemory(descriptors[0], message["size"])
            memory.close()
            return {"bytes": memory.bytes.tolist(), "why": ""}
        except DriverError as error:
            return {"bytes": [], "why": str(error)}

    def _find(self, message: Message) -> Callable[[Inputs], Any]:
        """The candidate as a function of inputs; a library's outputs are not filled beforehand."""
        found = super()._find(message)
        return _Unfilled(found) if isinstance(found, Library) else found

    def _reveal(self, message: Message, descriptors: list[int]) -> Message:
        """Map the inputs of a shape, in place of all that was there of an earlier one."""
        self._rounds.clear()
        self._inputs.clear()
        self._kept.clear()
        self._answers = None
        if self._device != "cpu":
            torch.cuda.synchronize()
            torch.cuda.empty_cache()
        memory = MEMORIES[message["memory"]](descriptors[0], message["size"])
        memory.close()
        placed = [Placed.of_list(fields) for fields in message["tensors"]]
        self._shown = self._inputs[message["inputs"]] = Inputs(memory, placed, message, self._device)
        return {}

    def _outputs(self, message: Message, descriptors: list[int]) -> Message:
        """Map the memory that answers are handed over in."""
        self._answers = MEMORIES[message["memory"]](descriptors[0], message["size"])
        self._answers.close()
        self._places = [Placed.of_list(fields) for fields in message["outputs"]]
        return {}

    def _warm(self, message: Message, _: list[int]) -> Message:
        """Call for the first time, which compiles and tunes, and once more; describe the answer and hand it over."""
        began = _clock()
        try:
            self._entry_point(self._shown)
            self._synchronise()
            seconds = _clock() - began
            answer = self._entry_point(self._shown)
            self._synchronise()
        except BaseException as error:  # noqa: BLE001 whatever a candidate raises is a result, SystemExit too
            return self._failure(error)
        self._kept["warm"] = answer
        plain = answer if type(answer) is tuple else ()
        forms = [self._form(output, plain, {"inputs": message["inputs"], "keep": "warm"}) for output in plain]
        del self._kept["warm"]
        self._first = [answer]
        self._copy(answer)
        self._synchronise()
        described = {"returned": "tuple" if type(answer) is tuple else type(answer).__name__, "forms": forms}
        return {"failure": None, "seconds": seconds, **described, **self._observed()}

    def _capture(self, message: Message, _: list[int]) -> Message:
        """Prepare a round by a name: as a CUDA graph, or as plain calls."""
        self._first.clear()
        call = self._entry_point if message["calls"] else _no_call
        one = Round(
            self._shown,
            message["steps"],
            message["flush_bytes"],
            self._device,
            call,
            keeps_answers=message["keeps_answers"],
        )
        try:
            one.prepare(as_graph=message["graph"])
        except BaseException as error:  # noqa: BLE001 whatever a candidate raises is a result, SystemExit too
            return self._failure(one.error or error)
        self._rounds[message["name"]] = one
        return {"failure": None}

    def _ready(self, message: Message, _: list[int]) -> Message:
        """Take the new contents over, spoil earlier answers, and leave nothing in the L2 cache on purpose."""
        self._shown.change(self._shown.scalars)
        self._rounds[message["name"]].ready(message["delta"])
        held, unreset = False, ""
        if self._device != "cpu":
            try:
                held = persisting_bytes() > self._aside
                forget_persisting()
                self._aside = persisting_bytes()
            except DriverError as error:
                unreset = str(error)
        self._launched.clear()
        gc.collect(0)
        self._synchronise()
        return {"persisting": held, "unreset": unreset}

    def _block(self, message: Message, _: list[int]) -> Message:
        """Some rounds, then one answer handed over, as soon as possible."""
        one = self._rounds[message["name"]]
        try:
            time_us = one.run(message["rounds"])
            if message["hand"]:
                self._copy(one.answers[message["answer"]])
            self._synchronise()
            return {"failure": None, "us": time_us()}
        except BaseException as error:  # noqa: BLE001 whatever a candidate raises is a result, SystemExit too
            return self._failure(error)

    def _hand(self, message: Message, _: list[int]) -> Message:
        """Hand an answer of the last block, or of the first call, over again."""
        self._synchronise()
        answers = self._rounds[message["name"]].answers if message["name"] in self._rounds else self._first
        self._copy(answers[message["answer"]])
        self._synchronise()
        return {}

    def _twice(self, _: Message, __: list[int]) -> Message:
        """Call twice on the same new contents; the kernels that each call launched."""
        self._shown.change(self._shown.scalars)
        launched = []
        try:
            for _time in range(2):
                self._launched.clear()
                self._entry_point(self._shown)
                self._synchronise()
                launched.append(sorted(set(self._launched)))
        except BaseException as error:  # noqa: BLE001 whatever a candidate raises is a result, SystemExit too
            return self._failure(error)
        return {"failure": None, "once": launched[0], "again": launched[1]}

    def _look(self, _: Message, __: list[int]) -> Message:
        """What speaks against the candidate by now, and which configurations it chose."""
        known = vars(sys.modules[MODULE]) if MODULE in sys.modules else {}
        tuned = {
            name: getattr(value, "best_config", None) for name, value in known.items() if hasattr(value, "configs")
        }
        chosen = [f"{name}[{config}]" for name, config in tuned.items() if config is not None]
        observed = self._observed()
        return {**observed, "chosen": observed["chosen"] or ", ".join(chosen)}

    def _copy(self, answer: Any) -> None:
        """Copy an answer as far as it has the form asked for."""
        assert self._answers is not None
        for one, output in zip(self._places, answer if type(answer) is tuple else (), strict=False):
            dtype = str(output.dtype).removeprefix("torch.") if _is_plain(output) else None
            if dtype == one.dtype and tuple(output.shape) == one.shape and one.nbytes:
                self._answers.raw(one).copy_(bytes_of(output.detach()))

    def _synchronise(self) -> None:
        if self._device != "cpu":
            torch.cuda.synchronize()


class _Unfilled(Library):
    """A CUDA C++ launcher whose outputs are as the allocator gives them, as a Python candidate's are."""

    def __init__(self, library: Library) -> None:
        self._launch = library._launch
        self.written_beside: list[str] = []

    def __call__(self, inputs: Inputs) -> tuple[torch.Tensor, ...]:
        outputs = unwritten(inputs.outputs, inputs.device)
        dims = [extent for _, extent in sorted(inputs.dims.items())]  # as `Library` passes them
        self._launch(*inputs.tensors.values(), *inputs.scalars.values(), *dims, *outputs)
        return outputs


def _no_call(_: Inputs) -> None:
    """What is called where nothing is to be."""
