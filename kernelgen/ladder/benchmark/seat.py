"""The judge's side of one timed process: what it is asked, what it hands over, and the clock around a block.

The clock starts before a block is asked for. Where both sides map the same memory, it stops when the judge has its own
copy of one answer: whatever was left for later has not happened by then, or has been timed.
"""

from __future__ import annotations

import gc
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from kernelgen.errors import HarnessError
from kernelgen.ladder.benchmark.driver import MEMORIES, DeviceMemory, DriverError
from kernelgen.ladder.benchmark.said import NOTHING_SOURCE, Block, Failing, NotCapturable, Outputs, Role, Said
from kernelgen.ladder.containment.limits import Limits
from kernelgen.ladder.correctness import suspicion
from kernelgen.ladder.correctness.calls import Calls, Patience, Shared, Stopped, _dtype, _scalars
from kernelgen.ladder.correctness.checks import Expected
from kernelgen.ladder.correctness.tensors import POISON, Memory, place
from kernelgen.ladder.results import Fault
from kernelgen.ladder.server import Server
from kernelgen.ladder.subject import Subject

JOB = "kernelgen.ladder.benchmark.side:serve"
INPUTS = "inputs"
CALL, NOTHING = "call", "nothing"
# without a flush
WARM_CALL, WARM_NOTHING = "warm call", "warm nothing"
PROBE_BYTES = 1 << 10


class Seat:
    """One timed process; a context manager. Without a subject it has an empty kernel, and no call at all."""

    def __init__(
        self,
        role: Role,
        subject: Subject | None,
        template: Subject,
        server: Server,
        *,
        device: str,
        limits: Limits,
        library: Path | None = None,
    ) -> None:
        """Start the process; `template` is any subject of the same goal. Raises HarnessError."""
        self.role, self.device = role, device
        self.memory = "host"
        blank = replace(template, name="nothing", language="python", dsl="triton", source=NOTHING_SOURCE, preamble="")
        self.subject = subject or replace(blank, entry_point="nothing")
        self.patience = Patience(0.0)
        self.session = server.open(JOB, limits=limits)
        self.calls = Calls(self.session, self.patience)
        self._library = library
        self.suspicions: dict[str, Fault] = {}
        self.notes: list[str] = []
        self.chosen = ""

    def __enter__(self) -> Seat:
        return self

    def __exit__(self, *_: object) -> None:
        self.session.close()

    def prepare(self) -> None:
        """Let it get ready for what it times. Raises HarnessError."""
        self.calls.prepare(self.subject.dsl, self.device, self.subject.goal.compute_capability)

    def load(self) -> None:
        """Load what it times. Raises Failing."""
        library = self._library
        if library is not None:
            shutil.copy(library, self.session.folder / library.name)
        self.calls.doing = "at its import"
        answer = self._ask(
            "load",
            source=self.subject.source if library is None else "",
            preamble=self.subject.preamble,
            entry_point=self.subject.entry_point,
            library=library.name if library else "",
            dsl=self.subject.dsl,
        )
        self._ran(answer, "at its import")

    def try_sharing(self) -> str:
        """Whether it can map the judge's GPU memory: empty, or why not."""
        try:
            memory = DeviceMemory.create(PROBE_BYTES, fill=0)
        except DriverError as error:
            return str(error)
        number = torch.arange(PROBE_BYTES, device="cuda") % (POISON + 1)
        memory.bytes.copy_(number.to(torch.uint8))
        torch.cuda.synchronize()
        try:
            answer = self._ask("share", (memory.descriptor,), size=PROBE_BYTES)
        finally:
            memory.close()
        if answer.text("why"):
            return str(answer.text("why"))
        return "" if answer.numbers("bytes") == number.tolist() else "it read something else there"

    def reveal(self, expected: Expected) -> None:
        """Begin a shape: show it inputs, and where its answers go."""
        self.calls.doing = expected.case.place
        tensors = {name: value for name, value in expected.inputs.items() if isinstance(value, torch.Tensor)}
        placed, size = place((name, _dtype(value), tuple(value.shape)) for name, value in tensors.items())
        create = MEMORIES[self.memory].create
        self.shared = Shared(INPUTS, create(size), placed)
        self.shared.write(expected.inputs)
        self.settle()
        outputs = [list(spec) for spec in expected.specs]
        described = {"scalars": _scalars(expected.inputs), "dims": expected.case.dims, "outputs": outputs}
        where = {"memory": self.memory, "size": size, "tensors": [one.as_list() for one in placed]}
        self._hand_memory("reveal", self.shared.memory, inputs=INPUTS, **described, **where)
        self._placed, size = place(expected.specs)
        self._answers = create(size)
        self._held = torch.empty_like(self._answers.bytes)
        places = [one.as_list() for one in self._placed]
        self._hand_memory("outputs", self._answers, memory=self.memory, size=size, outputs=places)

    def _hand_memory(self, request: str, shown: Memory, **fields: Any) -> None:
        try:
            self._ask(request, (shown.descriptor,), **fields)
        finally:
            shown.close()

    def warm(self, expected: Expected) -> tuple[Said, Outputs]:
        """The first calls: what is said of the answer, and the answer. Raises Failing."""
        answer = self._ask("warm", inputs=INPUTS)
        self._ran(answer, f"{expected.case.place}, first call")
        self._copy()
        return answer, self._copied()

    def capture(self, name: str, steps: list[list[Any]], flush_bytes: int, *, graph: bool) -> None:
        """Prepare its rounds by a name. Raises NotCapturable."""
        failure = self._ask(
            "capture",
            name=name,
            steps=steps,
            flush_bytes=0 if name in (WARM_CALL, WARM_NOTHING) else flush_bytes,
            graph=graph,
            calls=name in (CALL, WARM_CALL),
            keeps_answers=self.role != "blank",
        ).text("failure")
        if failure is not None:
            raise NotCapturable(f"the {self.role}: {failure}")

    def block(self, name: str, rounds: int, answer: int, *, delta: int) -> Block:
        """Time some rounds of calls and take one answer of the last. Inputs are written before. Raises Failing."""
        self._answers.bytes.fill_(POISON)
        self.settle()
        ready = self._ask("ready", name=name, delta=delta)
        if ready.text("unreset"):
            self.notes.append(f"lines may stay in the L2 cache between calls: {ready.text('unreset')}")
        if ready.flag("persisting"):
            reason = f"{self.calls.doing}: the {self.role} set aside L2 cache for lines that stay between calls"
            self.suspicions.setdefault("benchmark.persisting", Fault("benchmark.persisting", reason))
        in_time = self.memory == "device" or self.device == "cpu"
        gc.disable()
        try:
            began = time.perf_counter()
            said = self._ask("block", name=name, rounds=rounds, answer=answer, hand=in_time)
            if in_time:
                self._copy()
            wall_s = time.perf_counter() - began
        finally:
            gc.enable()
        self._ran(said, self.calls.doing)
        return Block(wall_s, said.figure("us"), self._copied() if in_time else self.again(name, answer))

    def again(self, name: str, answer: int) -> Outputs:
        """An answer of the last block, or of the first calls before any was prepared, handed over again."""
        self._answers.bytes.fill_(POISON)
        self.settle()
        self._ask("hand", name=name, answer=answer)
        self._copy()
        return self._copied()

    def twice(self) -> None:
        """Have it called twice on contents that were written before, which must not be remembered. Raises Failing."""
        said = self._ask("twice")
        self._ran(said, self.calls.doing)
        once, again = said.texts("once"), said.texts("again")
        if once != again:
            reason = (
                f"{self.calls.doing}: on contents that it has just been called on it launches "
                f"{', '.join(again) or 'nothing'} in place of {', '.join(once) or 'nothing'}: it keeps results"
            )
            self.suspicions.setdefault("benchmark.remembered", Fault("benchmark.remembered", reason))

    def look(self) -> None:
        """Ask what speaks against it by now."""
        answer = self._ask("look")
        self.chosen = answer.text("chosen") or self.chosen
        self._note(answer, self.calls.doing)

    def _copy(self) -> None:
        """Copy what was handed over to where no other process sees it, in memory that is there already."""
        self._held.copy_(self._answers.bytes)
        self.settle()

    def _copied(self) -> Outputs:
        """The last copy, as tensors that stay."""
        held = self._held.clone()
        tensors = []
        for one in self._placed:
            raw = held[one.offset : one.offset + one.nbytes]
            tensors.append(raw.view(getattr(torch, one.dtype)).view(one.shape))
        return tuple(tensors)

    def _ran(self, answer: Said, where: str) -> None:
        """Note what speaks against it. Raises Failing where it raised."""
        failure = answer.text("failure")
        if failure is None:
            self._note(answer, where)
            return
        line = answer.number("line") or None
        at = f" (line {line})" if line else ""
        fault = Fault("benchmark.raised", f"{where}: raised {failure}{at}", answer.text("detail") or "", line)
        raise Failing(self.role, fault)

    def _note(self, answer: Said, where: str) -> None:
        for fault in suspicion.against(answer, where, self.subject.goal, launches_count=False).faults:
            check = fault.check.replace("correctness.", "benchmark.")
            self.suspicions.setdefault(check, replace(fault, check=check))

    def _ask(self, request: str, descriptors: tuple[int, ...] = (), **fields: Any) -> Said:
        try:
            return Said(self.calls.ask(request, descriptors, **fields)._fields)
        except Stopped as stopped:
            if self.role == "blank":
                raise HarnessError(f"The empty kernel could not be timed: {stopped.fault.reason}.") from stopped
            raise Failing(self.role, self._ended(stopped.fault)) from stopped

    def _ended(self, fault: Fault) -> Fault:
        """A process that was out of time did not do its fixed number of blocks."""
        if fault.check == "process.hung":
            reason = f"{self.calls.doing}: it did not end its fixed number of calls in time"
            return Fault("benchmark.incomplete", reason, detail=fault.reason)
        return fault

    def settle(self) -> None:
        """Let the judge's own work on the GPU end."""
        if self.device != "cpu":
            torch.cuda.synchronize()
