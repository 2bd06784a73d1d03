"""The keeper of a session: forks the child, watches what it uses, says how it ended, and takes everything with it.

Where there are pid namespaces, the keeper is the first process of one: with its end the kernel ends the rest, however
they hid. Else it adopts whatever the child leaves behind and kills that. It ends when the parent closes the session or
dies. The child's process has none of its descriptors, and cannot signal it.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import time
import traceback
from types import FrameType, TracebackType
from typing import Any

from kernelgen.ladder.containment import applying, libc, notes, view
from kernelgen.ladder.containment.child import become, die_with
from kernelgen.ladder.containment.mechanisms import PID, VIEW, holds
from kernelgen.ladder.containment.order import OUT_OF_MEMORY_CODE, READY, Order
from kernelgen.ladder.containment.usage import Passed, Usage, descendants

TICK_MS = 50
GRACE_MS = 1000
SETUP_BYTES = 4096
ATTEMPTS_MAX = 16
NOTE_S = 0.2
RETRY_S = 0.005


class Process:
    """A `with` block after a fork: no way leads out of it but the end of the process."""

    def __init__(self) -> None:
        self._leave = os._exit

    def __enter__(self) -> Process:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        code = 0
        try:
            if isinstance(error, SystemExit):
                code = error.code if isinstance(error.code, int) else int(error.code is not None)
            elif error is not None:
                code = OUT_OF_MEMORY_CODE if isinstance(error, MemoryError) else 1
                traceback.print_exception(error)
        finally:  # even where candidate code broke the printing
            self._leave(code & 0xFF)


def keep(order: Order, server: int) -> None:
    """In a process forked for it from the server of this pid: keep one session to its end. Does not return."""
    with Process():
        die_with(server)
        if not (order.contained and holds(order.record, PID)):
            libc.prctl(libc.PR_SET_CHILD_SUBREAPER, 1)
            _watch_over(order)
            _kill_descendants()
            return
        applying.prepare_keeper(order.record)
        wakes = _wake_on_children()
        alive, held = os.pipe()
        first = os.fork()
        if first == 0:
            with Process():
                libc.prctl(libc.PR_SET_PDEATHSIG, signal.SIGKILL)
                os.close(held)
                _end_if_closed(alive)  # its parent's pid says nothing in a pid namespace of its own
                _watch_over(order)
        for descriptor in (order.channel, order.output):
            os.close(descriptor)
        poll = select.poll()
        for descriptor in (wakes, order.life):
            poll.register(descriptor, select.POLLIN)
        poll.poll()
        poll.unregister(order.life)
        poll.poll(GRACE_MS)  # the keeper sees the session's end too, and says what it knows
        os.kill(first, signal.SIGKILL)
        os.waitpid(first, 0)  # only now nothing of the session is left, and the status's last holder ends


def _watch_over(order: Order) -> None:
    """Start the child, watch it to its end and write how that was."""
    wakes = _wake_on_children()
    here, there = socket.socketpair()
    try:
        if order.contained:
            applying.contain_keeper(order.record, order.paths, folder=order.folder, allowed=order.limits)
    except OSError as error:
        _tell(order, {"error": f"its own view could not be made: {error.strerror}"})
        return
    keeper = os.getpid()
    child = os.fork()
    if child == 0:
        with Process():
            die_with(keeper)
            become(order, there)
    for descriptor in (order.channel, order.output):
        os.close(descriptor)
    there.close()
    said, descriptors, _, _ = socket.recv_fds(here, SETUP_BYTES, 1)
    if said != READY:
        _tell(order, {"error": said.decode("utf-8", "replace") or "it ended while it was set up"})
        return
    shared_memory = view.SHARED_MEMORY if order.contained and holds(order.record, VIEW) else None
    usage = Usage(order.limits, order.folder, shared_memory)
    _tell(order, _Watch(order, child, usage, wakes, descriptors[0] if descriptors else None).until_end())


class _Watch:
    """The loop that waits for a child's end, a limit passed, or the session's end."""

    def __init__(self, order: Order, child: int, usage: Usage, wakes: int, listener: int | None) -> None:
        self._child = child
        self._usage = usage
        self._wakes, self._life, self._listener = wakes, order.life, listener
        self._seconds = order.limits.seconds
        self._attempts: list[str] = []
        self._poll = select.poll()
        for descriptor in (wakes, order.life, *([] if listener is None else [listener])):
            self._poll.register(descriptor, select.POLLIN)

    def until_end(self) -> dict[str, Any]:
        """How it ended: `code`, `limit` or neither, and what it attempted."""
        deadline = time.monotonic() + self._seconds
        while True:
            ready = dict(self._poll.poll(TICK_MS))
            if self._listener is not None and self._listener in ready:
                self._note(ready[self._listener])
            code = self._reap() if self._wakes in ready else None
            if code is not None:
                return {"code": code, "attempts": self._attempts}
            if self._life in ready:
                return {"attempts": self._attempts}
            passed = self._usage.passed()
            if time.monotonic() > deadline:
                passed = Passed("process.hung", f"did not end within {self._seconds:g} s")
            if passed is not None:
                return {"limit": [passed.cause, passed.sentence], "attempts": self._attempts}

    def _note(self, events: int) -> None:
        assert self._listener is not None
        signal.signal(signal.SIGALRM, _too_late)
        signal.setitimer(signal.ITIMER_REAL, NOTE_S)  # a call that was broken off leaves nothing to receive
        attempt = notes.refuse_next(self._listener) if events & select.POLLIN else None
        signal.setitimer(signal.ITIMER_REAL, 0)
        if attempt is not None and attempt not in self._attempts and len(self._attempts) < ATTEMPTS_MAX:
            self._attempts.append(attempt)
        if not events & select.POLLIN:
            self._poll.unregister(self._listener)

    def _reap(self) -> int | None:
        """Reap what has ended; the child's code, where it has."""
        os.read(self._wakes, SETUP_BYTES)
        code = None
        try:
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return code
                if pid == self._child:
                    code = os.waitstatus_to_exitcode(status)
        except ChildProcessError:
            return code


def _end_if_closed(descriptor: int) -> None:
    """End this process if the other end of a pipe is closed."""
    poll = select.poll()
    poll.register(descriptor, 0)
    if poll.poll(0):
        raise SystemExit(1)


def _too_late(number: int, frame: FrameType | None) -> None:
    raise TimeoutError


def _wake_on_children() -> int:
    """A descriptor that is readable when a child has ended."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    return reading


def _tell(order: Order, ending: dict[str, Any]) -> None:
    os.write(order.status, json.dumps(ending).encode())


def _kill_descendants() -> None:
    """Kill whatever is below this process, which adopts what loses its parent, until nothing is left."""
    while True:
        for pid in descendants():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                continue
        except ChildProcessError:
            return
        time.sleep(RETRY_S)
