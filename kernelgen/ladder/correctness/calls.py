"""The judge's end of the call protocol: requests to a contained process, answers that are not trusted.

    prepare   for a device, before any candidate code
    load      the candidate, once a session
    reveal    inputs in shared memory; `change` tells that their contents are others now
    call      the entry point, whose answer the other side keeps by a name
    collect   a kept answer, into fresh memory of the judge's: tensors to compare
    show      what the call left of its inputs, in the shared memory

Each request bears a ticket that its answer must repeat. Whatever ends the other side, is no answer or comes too late,
raises `Stopped` with the fault. Values of an answer are read through `Answer`, which takes no form for granted.
"""

from __future__ import annotations

import os
import secrets
import time
from dataclasses import dataclass
from typing import Any

import torch

from kernelgen.errors import HarnessError
from kernelgen.ladder.correctness.raising import own_output
from kernelgen.ladder.correctness.tensors import Memory, Placed, bytes_of, margins, place
from kernelgen.ladder.results import Fault
from kernelgen.ladder.server import ChildEnded, Session

Spec = tuple[str, str, tuple[int, ...]]
OUTPUT_END = 4000
# the file that candidate code is loaded from, in its own folder
KERNEL_FILE = "kernel.py"
HUNG = "process.hung"
# getting ready is the judge's own work: it has its own time
PREPARE_S = 120.0
# a call that takes more than this share of all the time there is hangs; less, and the candidate is slow
HANGS_SHARE = 0.5


class Stopped(Exception):
    """The called process ended or answers no more; `fault` says how, `slow` that its time alone was up."""

    def __init__(self, fault: Fault, *, slow: bool = False) -> None:
        super().__init__(fault.reason)
        self.fault = fault
        self.slow = slow


class Answer:
    """What the other side answered, which candidate code may have written."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self._fields = fields

    def text(self, name: str) -> str | None:
        """A text, or None."""
        value = self._fields.get(name)
        return value if isinstance(value, str) else None

    def number(self, name: str, otherwise: int = 0) -> int:
        """A whole number."""
        value = self._fields.get(name)
        return value if type(value) is int else otherwise

    def texts(self, name: str) -> list[str]:
        """A list of texts."""
        value = self._fields.get(name)
        return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []

    def flag(self, name: str) -> bool:
        """True only where it was said."""
        return self._fields.get(name) is True

    def counts(self, name: str) -> dict[str, int]:
        """Numbers by name."""
        value = self._fields.get(name)
        pairs = value.items() if isinstance(value, dict) else ()
        return {key: count for key, count in pairs if isinstance(key, str) and type(count) is int}

    def records(self, name: str) -> list[dict[str, Any]]:
        """A list of records."""
        value = self._fields.get(name)
        return [record for record in value if isinstance(record, dict)] if isinstance(value, list) else []


@dataclass(frozen=True)
class Shared:
    """Inputs in memory that both sides see."""

    name: str
    """What requests call them."""
    memory: Memory
    """The memory."""
    placed: tuple[Placed, ...]
    """Where the tensors are in it."""

    def write(self, inputs: dict[str, Any]) -> None:
        """Put these contents there, in place."""
        for one in self.placed:
            if one.nbytes:
                self.memory.raw(one).copy_(bytes_of(inputs[one.name].contiguous()))

    def differing(self, inputs: dict[str, Any]) -> list[str]:
        """Names of the inputs whose bytes are no longer these."""
        return [
            one.name
            for one in self.placed
            if one.nbytes and not torch.equal(self.memory.raw(one), bytes_of(inputs[one.name].cpu().contiguous()))
        ]

    def written_beside(self, poison: int) -> str | None:
        """The input beside which something was written, in words, or None."""
        names = [f"before {one.name}" for one in self.placed] + [f"after {self.placed[-1].name}"]
        for where, (begin, end) in zip(names, margins(self.placed, self.memory.size), strict=True):
            if bool((self.memory.bytes[begin:end] != poison).any()):
                return where
        return None


class Patience:
    """How long candidate code may take in all its sessions together: the judge's own work does not count."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.left_s = seconds

    def spend(self, seconds: float) -> None:
        """Take away what a request took."""
        self.left_s = max(0.0, self.left_s - seconds)


class Calls:
    """One session with a candidate."""

    def __init__(self, session: Session, patience: Patience, lines_above: int = 0) -> None:
        self._session = session
        self._patience = patience
        self._lines_above = lines_above
        self.doing = "before its import"

    def ask(self, request: str, descriptors: tuple[int, ...] = (), **fields: Any) -> Answer:
        """Send a request and wait for its answer. Raises Stopped."""
        ticket = secrets.token_hex(8)
        began = time.monotonic()
        try:
            self._session.send({"do": request, "ticket": ticket, **fields}, descriptors)
            answer, received = self._session.receive(self._patience.left_s)
        except ChildEnded as end:
            was = "was " if end.sentence.startswith("killed by") else ""
            detail = own_output(end.output[-OUTPUT_END:], KERNEL_FILE, self._lines_above)
            took_s = time.monotonic() - began
            slow = end.cause == HUNG and took_s < HANGS_SHARE * self._patience.seconds
            fault = Fault(end.cause, f"{self.doing}: the process {was}{end.sentence}", detail=detail)
            raise Stopped(fault, slow=slow) from end
        finally:
            self._patience.spend(time.monotonic() - began)
        for descriptor in received:
            os.close(descriptor)
        if answer.get("ticket") != ticket:
            reason = f"{self.doing}: something other than the judge's code wrote on the judge's channel"
            raise Stopped(Fault("process.reached_out", reason))
        return Answer(answer)

    def prepare(self, dsl: str, device: str, compute_capability: int) -> bool:
        """Let the other side get ready, before any candidate code; whether it counts launches. Raises HarnessError."""
        patience, self._patience = self._patience, Patience(PREPARE_S)
        try:
            return self.ask("prepare", dsl=dsl, device=device, compute_capability=compute_capability).flag("counted")
        except Stopped as stopped:
            detail = stopped.fault.detail.strip().splitlines()[-1:]
            why = f" ({detail[0]})" if detail else ""
            raise HarnessError(f"Nothing can be called on {device} here: {stopped.fault.reason}{why}.") from stopped
        finally:
            self._patience = patience

    def reveal(self, name: str, inputs: dict[str, Any], dims: dict[str, int], outputs: list[Spec]) -> Shared:
        """Show inputs: tensors in shared memory, numbers beside them."""
        tensors = {key: value for key, value in inputs.items() if isinstance(value, torch.Tensor)}
        placed, size = place((key, _dtype(value), tuple(value.shape)) for key, value in tensors.items())
        shared = Shared(name, Memory.create(size), placed)
        shared.write(inputs)
        described = {"scalars": _scalars(inputs), "dims": dims, "outputs": [list(spec) for spec in outputs]}
        where = {"size": size, "tensors": [one.as_list() for one in placed]}
        try:
            self.ask("reveal", (shared.memory.descriptor,), inputs=name, **described, **where)
        finally:
            shared.memory.close()
        return shared

    def change(self, shared: Shared, inputs: dict[str, Any]) -> None:
        """Put other contents under the same tensors, and other numbers beside them."""
        shared.write(inputs)
        self.ask("change", inputs=shared.name, scalars=_scalars(inputs))

    def call(self, shared: Shared, keep: str, poison: int | None) -> Answer:
        """Call the entry point; its answer is kept by a name. Unwritten memory reads as `poison`."""
        return self.ask("call", inputs=shared.name, keep=keep, poison=poison)

    def collect(self, shared: Shared, keep: str, outputs: list[Spec], unwritten: int) -> tuple[Answer, Any]:
        """What is said of a kept answer, and its tensors on the CPU, copied: private, and `unwritten` where it gave
        nothing.
        """
        placed, size = place(outputs)
        memory = Memory.create(size, unwritten)
        try:
            fields = {"size": size, "outputs": [one.as_list() for one in placed]}
            answer = self.ask("collect", (memory.descriptor,), inputs=shared.name, keep=keep, **fields)
        finally:
            memory.close()
        return answer, tuple(memory.tensor(one).clone() for one in placed)


def _scalars(inputs: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in inputs.items() if not isinstance(value, torch.Tensor)}


def _dtype(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
