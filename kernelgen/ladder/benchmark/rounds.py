"""The calls of a round: as a CUDA graph or plain, on contents that change before each, with the L2 cache emptied.

Runs in the called process. What it needs of torch it takes at its import, before candidate code is loaded.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

from kernelgen.ladder.correctness.caller import _is_plain
from kernelgen.ladder.correctness.shown import Inputs, poison
from kernelgen.ladder.correctness.tensors import POISON, bytes_of, place

INTEGERS = {2: torch.int16, 4: torch.int32, 8: torch.int64}
_clock = time.perf_counter
_sum = torch.sum
_synchronise = torch.cuda.synchronize


class Round:
    """The calls of a round, and their answers."""

    def __init__(
        self,
        inputs: Inputs,
        steps: list[tuple[str, int]],
        flush_bytes: int,
        device: str,
        call: Callable[[Inputs], Any],
        *,
        keeps_answers: bool,
    ) -> None:
        """Prepare calls.

        Args:
            inputs: what they work on.
            steps: input and element to change before each call.
            flush_bytes: what is read before each call.
            device: `cpu` or `cuda`.
            call: what is called.
            keeps_answers: whether it gives answers; else there are some that nobody has written.
        """
        self._inputs, self._device = inputs, device
        self._call = call
        self._instead = None if keeps_answers else unwritten(inputs.outputs, device)
        self._flushed = torch.zeros(flush_bytes // 4, device=device) if flush_bytes else None
        self._total = torch.zeros((), device=device)
        self._elements = [self._element(*step) for step in steps if step[0]]
        self._deltas = {size: torch.zeros(1, dtype=dtype, device=device) for size, dtype in INTEGERS.items()}
        self.answers: list[Any] = [None] * len(steps)
        """Of the last round."""
        self.error: BaseException | None = None
        """What a call raised in a capture; the end of the capture then raises what tells less."""
        self._graph: Any = None
        self._apart = False

    def prepare(self, *, as_graph: bool) -> None:
        """Capture the round in a CUDA graph, if asked to; else nothing runs beside a call on a GPU."""
        self._apart = not as_graph and self._device != "cpu"
        if not as_graph:
            return
        torch.cuda.synchronize()  # the inputs may still be in the making on another stream
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            self._one(0)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            try:
                self._all()
            except BaseException as error:
                self.error = error
                raise
        self._graph = graph

    def ready(self, delta: int) -> None:
        """Change elements by `delta` from now on, and spoil what an answer may be taken from."""
        for tensor in self._deltas.values():
            tensor.fill_(delta)
        if self._graph is None:
            self.answers = [None] * len(self.answers)
            poison(POISON, self._inputs)
            return
        for answer in self.answers:
            for output in answer if type(answer) is tuple else ():
                if _is_plain(output) and output.numel():
                    bytes_of(output).fill_(POISON)

    def run(self, rounds: int) -> Callable[[], float]:
        """Start the rounds; a function that tells, once they have ended, how many microseconds they took."""
        if self._device == "cpu":
            begun = _clock()
            self._repeat(rounds)
            ended = _clock()
            return lambda: 1e6 * (ended - begun)
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        self._repeat(rounds)
        end.record()
        return lambda: float(1e3 * begin.elapsed_time(end))

    def _repeat(self, rounds: int) -> None:
        again = self._all if self._graph is None else self._graph.replay
        for _ in range(rounds):
            again()

    def _all(self) -> None:
        for number in range(len(self.answers)):
            self._one(number)

    def _one(self, number: int) -> None:
        """Change an element, empty the L2 cache, call."""
        if self._elements:
            element = self._elements[number]
            element.add_(self._deltas[element.itemsize])
        if self._flushed is not None:
            _sum(self._flushed, dim=0, out=self._total)
        if self._apart:
            _synchronise()
        answer = self._call(self._inputs)
        if self._apart:
            _synchronise()
        self.answers[number] = answer if self._instead is None else self._instead

    def _element(self, name: str, position: int) -> torch.Tensor:
        """One element of an input, as a whole number of its size."""
        tensor = self._inputs.tensors[name]
        flat = torch.empty(0, dtype=tensor.dtype, device=tensor.device).set_(tensor)  # a version counter of its own
        return flat.view(-1).view(INTEGERS[tensor.itemsize])[position : position + 1]


def unwritten(outputs: list[tuple[str, str, list[int]]], device: str) -> tuple[torch.Tensor, ...]:
    """Outputs that nobody has written."""
    placed, _ = place(outputs)
    return tuple(torch.empty(one.shape, dtype=getattr(torch, one.dtype), device=device) for one in placed)
