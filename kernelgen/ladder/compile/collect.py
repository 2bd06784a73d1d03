"""The parent's side of a compile in a child: sends the task, and makes findings of what comes back.

What a child reports is the candidate's word: names and refusals are taken as such, figures never. Every binary comes
as an open file, and what it uses is read here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache, partial
from typing import Any

from kernelgen.errors import HarnessError
from kernelgen.ladder.compile import events, words
from kernelgen.ladder.compile.calls import Call, shapes_alone, target_code, with_values
from kernelgen.ladder.compile.events import Event
from kernelgen.ladder.compile.report import Build, Called, Findings, Refusal, described, read_builds
from kernelgen.ladder.results import Fact, Fault
from kernelgen.ladder.server import ChildEnded, Limits, Server, Session
from kernelgen.ladder.subject import Subject

MIB = 1 << 20
MEMORY_BYTES = 6144 * MIB
FILE_BYTES = 2048 * MIB
PROCESSES = 64
READERS = 2
READY_S = 120.0
MOST_EVENTS = 100_000


def limits(timeout_s: float) -> Limits:
    """What a compile may use: compilers start assemblers and write files."""
    return Limits(
        memory_bytes=MEMORY_BYTES, processes=PROCESSES, seconds=timeout_s, file_bytes=FILE_BYTES, exec_allowed=True
    )


def compile_in_child(subject: Subject, server: Server, job: str, timeout_s: float) -> Findings:
    """Compile every kernel that the entry point launches at the tune shapes, in a child of the server.

    Where host code needs values of its inputs, the smoke shapes are called too, with real tensors.
    """
    deadline = time.monotonic() + timeout_s
    code = target_code(subject.goal)
    calls, left_out = shapes_alone(subject.goal, code)
    with ThreadPoolExecutor(READERS) as pool, server.open(job, limits=limits(timeout_s)) as session:
        session.send(task(subject, calls))
        listener = Listener(pool, deadline, subject.goal.instructions)
        wait_until_ready(session)
        listener.listen(session)
        needs_values = [
            called for called in listener.found.raised if called.call is not None and not called.from_kernel
        ]
        if (needs_values or left_out) and not listener.ended:
            _again_with_values(subject, code, session, listener, needs_values)
        return listener.findings()


def task(subject: Subject, calls: Sequence[Call], **further: Any) -> Event:
    """What a child is told of a candidate."""
    return {
        "source": subject.source,
        "preamble": subject.preamble,
        "entry_point": subject.entry_point,
        "compute_capability": subject.goal.compute_capability,
        "arch": subject.goal.arch,
        "shared_bytes_per_block": subject.goal.shared_bytes_per_block,
        "calls": calls,
        **further,
    }


def wait_until_ready(session: Session) -> None:
    """Wait until the child has its compiler ready, before it has seen the candidate. Raises HarnessError if it dies."""
    try:
        event, _ = session.receive(READY_S)
    except ChildEnded as ended:
        raise HarnessError(f"The process that compiles did not start: {ended}: {ended.output[-500:]}") from ended
    if event != {"event": "ready"}:
        raise HarnessError(f"The process that compiles began with {event}.")


def _again_with_values(
    subject: Subject, code: Any, session: Session, listener: Listener, needs_values: Sequence[Called]
) -> None:
    """The smoke shapes' calls; where they return, what was raised on shapes alone is a note."""
    calls, memories = with_values(subject.goal, code)
    session.send({"calls": calls}, [memory.descriptor for memory in memories])
    for memory in memories:
        memory.close()
    listener.listen(session)
    if not any(called.call in subject.goal.smoke for called in listener.found.raised):
        why = needs_values[0].failure if needs_values else "the target cannot make its inputs as shapes alone"
        listener.found.raised = [called for called in listener.found.raised if called not in needs_values]
        listener.found.notes.append(f"compiled at the smoke shapes, since at the tune shapes: {why}")


class Listener:
    """Makes findings of a child's events; binaries are read beside, in a pool of threads."""

    def __init__(self, pool: ThreadPoolExecutor | None, deadline: float, instructions: Sequence[str] | None) -> None:
        """Binaries are read in the pool, or else when findings are asked for; `instructions` as in `binary.read`."""
        self.found = Findings()
        self.ended = False
        """Whether the child is gone."""
        self._pool = pool
        self._deadline = deadline
        self._instructions = instructions
        self._begun: Event = {}
        self._pending: list[tuple[Build, str]] = []
        self._read: dict[str, Callable[[], list[Build]]] = {}
        self._events = 0

    def listen(self, session: Session) -> None:
        """Take events until the child is done or gone."""
        try:
            while True:
                event, files = session.receive(max(self._deadline - time.monotonic(), 0.0))
                self._events += 1
                if self._take(event, files):
                    return
        except ChildEnded as ended:
            self.ended = True
            what = described(**events.config(self._begun)) if self._begun else "the file"
            constants = self._begun.get("kwargs", {})
            self.found.faults.append(early_end(ended, what, constants, timed_out=time.monotonic() >= self._deadline))
        except (KeyError, TypeError, ValueError) as error:
            self.ended = True
            reason = f"the candidate's process sent a report that kernelgen does not send: {error}"
            self.found.faults.append(Fault("process.reached_out", reason))

    def findings(self) -> Findings:
        """Everything found, once all binaries are read."""
        for told, key in self._pending:
            try:
                read = self._read[key]()
            except ValueError as error:
                self.found.faults.append(Fault("compile.other", f"{told.describe()} is {error}"))
                continue
            if not read:
                self.found.faults.append(Fault("compile.other", f"{told.describe()} is a binary without a kernel"))
            for build in read:
                self.found.add(_merged(told, build, single=len(read) == 1))
        self._pending.clear()
        return self.found

    def _take(self, event: Event, files: list[int]) -> bool:
        """Note one event; whether it was the last."""
        if self._events > MOST_EVENTS:
            raise ValueError(f"more than {MOST_EVENTS} events")
        kind = event["event"]
        if kind == "compiling":
            self._begun = event
        elif kind == "built":
            self._built(event, files)
        elif kind == "refused":
            error, said, line = events.text(event["error"]), events.text(event["words"]), events.line(event["line"])
            self.found.refusals.append(
                Refusal(**events.config(event), error=error, said=said, line=line, call=events.call(event))
            )
        elif kind == "called" and event["failure"] is not None:
            failure, said, line = events.text(event["failure"]), events.text(event["words"]), events.line(event["line"])
            self.found.raised.append(Called(events.call(event), failure, said, line, event["from_kernel"] is True))
        elif kind not in ("called", "done"):
            raise ValueError(f"an event '{kind}'")
        return bool(kind == "done")

    def _built(self, event: Event, files: list[int]) -> None:
        key, call, shared = events.text(event["key"]), events.call(event), event["shared_bytes"]
        if type(shared) is not int or shared < 0:
            raise ValueError("shared memory that is no number")
        told = Build(**events.config(event), shared_bytes=shared, calls=() if call is None else (call,))
        if files:
            (content,) = events.contents(files)
            reading = partial(read_builds, content, self._instructions)
            self._read[key] = cache(reading) if self._pool is None else self._pool.submit(reading).result
        elif key not in self._read:
            raise ValueError("a binary that was not sent")
        self._pending.append((told, key))


def early_end(ended: ChildEnded, what: str, constants: dict[str, Any], *, timed_out: bool) -> Fault:
    """What the end of a child before it was done says about the candidate."""
    if timed_out:
        facts: dict[str, Fact] = {f"block.{name}": value for name, value in words.extents(constants).items()}
        return Fault("compile.timeout", f"{what} did not compile within the time limit", ended.output, facts=facts)
    return Fault(ended.cause, f"the process {ended.sentence} while {what} was compiled", ended.output)


def _merged(told: Build, read: Build, *, single: bool) -> Build:
    """The configuration as the child told it, with figures as they were read."""
    name = told.kernel if single else read.kernel
    return replace(
        read,
        kernel=name,
        kwargs=told.kwargs,
        num_warps=told.num_warps,
        num_stages=told.num_stages,
        # what a launch asks for on top of it is known to the compiler alone
        shared_bytes=max(told.shared_bytes, read.shared_bytes),
        calls=told.calls,
    )
