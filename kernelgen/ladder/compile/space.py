"""Which configurations of an autotune space can run on the goal's card, and why the others cannot.

Each is compiled at every tune shape, by as many children at a time as there are cores; a child that dies or hangs costs
the one configuration it was at. Results come as they are made. Imports torch.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict

from kernelgen.ladder.compile.calls import Call, shapes_alone, target_code, with_values
from kernelgen.ladder.compile.collect import Listener, limits, task, wait_until_ready
from kernelgen.ladder.compile.report import Findings
from kernelgen.ladder.compile.tried import Config, Tried
from kernelgen.ladder.correctness.tensors import Memory
from kernelgen.ladder.reasons import shorten
from kernelgen.ladder.results import Fault
from kernelgen.ladder.server import Server, Session
from kernelgen.ladder.subject import Subject

JOB = "kernelgen.ladder.compile.triton:job"
CONFIG_TIMEOUT_S = 120.0
# of one child, which is replaced after so many configurations, and when one has ended it
CHILD_S, CONFIGS_PER_CHILD = 36_000.0, 200


def prune(
    subject: Subject, configs: Sequence[Config], *, server: Server, workers: int, timeout_s: float = CONFIG_TIMEOUT_S
) -> Iterator[Tried]:
    """Try every configuration, `workers` at a time, and give each result when it is there, in no order.

    Raises HarnessError where kernelgen or the target is at fault, and BadInput as the candidate's target does.
    """
    waiting: queue.SimpleQueue[Config] = queue.SimpleQueue()
    for config in configs:
        waiting.put(config)
    results: queue.SimpleQueue[Tried | None] = queue.SimpleQueue()
    stop = threading.Event()
    told = _Told(subject, server, timeout_s)
    with ThreadPoolExecutor(workers) as pool:
        working = [pool.submit(_work, told, waiting, results, stop) for _ in range(workers)]
        try:
            ended = 0
            while ended < workers:
                tried = results.get()
                if tried is None:
                    ended += 1
                else:
                    yield tried
        finally:
            stop.set()
        for one in working:
            one.result()


class _Told:
    """What every worker needs; the calls are made once."""

    def __init__(self, subject: Subject, server: Server, timeout_s: float) -> None:
        self.subject = subject
        self.server = server
        self.timeout_s = timeout_s
        code = target_code(subject.goal)
        self._calls, left_out = shapes_alone(subject.goal, code)
        self._memories: list[Memory] = []
        if left_out or not self._return(self._calls):
            self._calls, self._memories = with_values(subject.goal, code)

    def _return(self, calls: list[Call]) -> bool:
        """Whether the calls return when no kernel is compiled: host code may need values of its inputs."""
        with self.open() as session:
            listener = self.listener()
            session.send({"calls": calls, "space": {}})
            listener.listen(session)
            return not listener.findings().raised

    def open(self) -> Session:
        """A child that has loaded the candidate."""
        session = self.server.open(JOB, limits=limits(CHILD_S))
        session.send(task(self.subject, []))
        wait_until_ready(session)
        self.listener().listen(session)
        return session

    def listener(self) -> Listener:
        """For the answers to one request."""
        return Listener(None, time.monotonic() + self.timeout_s, None)

    def ask(self, session: Session, config: Config) -> tuple[Findings, bool]:
        """What came of one configuration, and whether the child is still there."""
        wanted = {name: value for name, value in asdict(config).items() if name != "kernel"}
        listener = self.listener()
        descriptors = [memory.descriptor for memory in self._memories]
        session.send({"calls": self._calls, "space": {config.kernel: [wanted]}}, descriptors)
        listener.listen(session)
        return listener.findings(), not listener.ended


def _work(
    told: _Told, waiting: queue.SimpleQueue[Config], results: queue.SimpleQueue[Tried | None], stop: threading.Event
) -> None:
    """Try configurations until none is left."""
    session: Session | None = None
    asked = 0
    try:
        while not stop.is_set():
            try:
                config = waiting.get_nowait()
            except queue.Empty:
                return
            started = time.monotonic()
            session = session or told.open()
            found, alive = told.ask(session, config)
            asked += 1
            if not alive or asked % CONFIGS_PER_CHILD == 0:
                session.close()
                session = None
            results.put(_tried(config, found, told.subject.goal.shared_bytes_per_block, time.monotonic() - started))
    finally:
        results.put(None)
        if session is not None:
            session.close()


def _tried(config: Config, found: Findings, shared_limit: int, seconds: float) -> Tried:
    """The result of one configuration."""
    fault = _decisive(config, found, shared_limit)
    return Tried(
        config=config,
        runs=fault is None,
        check="" if fault is None else fault.check,
        why="" if fault is None else fault.reason,
        detail="" if fault is None else fault.detail,
        registers=max((build.registers for build in found.builds), default=0),
        stack_bytes=max((build.stack_bytes for build in found.builds), default=0),
        shared_bytes=max((build.shared_bytes for build in found.builds), default=0),
        seconds=round(seconds, 3),
    )


def _decisive(config: Config, found: Findings, shared_limit: int) -> Fault | None:
    """Why a configuration cannot run; None where it can."""
    if found.refusals:
        fault = found.refusals[0].fault(None)
        return Fault(fault.check, shorten(found.refusals[0].said), fault.detail, fault.line, fault.facts)
    if found.faults:
        return found.faults[0]
    if found.raised:
        return Fault("compile.host", found.raised[0].failure, found.raised[0].said, found.raised[0].line)
    too_large = next((build for build in found.builds if build.shared_bytes > shared_limit), None)
    if too_large is not None:
        return Fault("compile.shared_memory", f"needs {too_large.shared_bytes} bytes of shared memory")
    if not found.builds:
        return Fault("compile.no_launch", f"{config.kernel} is launched at no tune shape")
    return None
