"""The parent's end of a session with a contained child: messages, limits of time and output, and how it ended.

What the child does, even to its own process, comes out here as a message, or as `ChildEnded`; how it ended is said by
its keeper, which it cannot reach. After `close` nothing of it is left, its folder included.
"""

from __future__ import annotations

import contextlib
import os
import select
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kernelgen.errors import HarnessError
from kernelgen.ladder.channel import MS, Channel, Closed, NotAFrame, TimedOut, read_descriptor
from kernelgen.ladder.containment.limits import Limits
from kernelgen.ladder.ending import EXITED, FLOODED, HUNG, ChildEnded, Ended, with_word
from kernelgen.ladder.scratch import remove

TAIL_BYTES = 16 << 10
READ_BYTES = 64 << 10
STATUS_BYTES = 64 << 10
# a child that takes no message in so long hangs
SEND_S = 30.0
# between the end of a channel and its keeper's word on why
NOTICE_S = 2.0
# for the kernel to end what was killed
GONE_S = 30.0
# how long poll can be told to wait
POLL_MAX_S = 86400.0


class Session:
    """A conversation with one child; use it as a context manager."""

    folder: Path
    """The child's own writable folder, the same path in both."""

    def __init__(self, channel: Channel, *, output: int, status: int, life: int, limits: Limits) -> None:
        """For `Server.open`: this side's ends."""
        self.folder = channel.folder
        self._channel = channel
        self._output, self._status, self._life = output, status, life
        self._limits = limits
        self._started = time.monotonic()
        self._tail, self._printed = b"", 0
        self._output_open = True
        self._ended: Ended | None = None
        os.set_blocking(output, False)
        channel.wait_with(self._wait)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def send(self, message: dict[str, Any], fds: Sequence[int] = ()) -> None:
        """Send one message; the descriptors are duplicated into the child.

        Raises:
            ChildEnded: it ended, or does not take it.
            ValueError: the message is too long.
        """
        self._talk(lambda: self._channel.send(message, fds, timeout_s=SEND_S), SEND_S)

    def receive(self, timeout_s: float) -> tuple[dict[str, Any], list[int]]:
        """The child's next message and the descriptors beside it, which are the caller's to close.

        Nothing in either is to be believed; `channel.read_descriptor` copies what a descriptor holds.

        Raises:
            ChildEnded: it ended, hung for `timeout_s`, printed too much, or sent what is no message.
        """
        received: list[tuple[dict[str, Any], list[int]]] = []
        self._talk(lambda: received.append(self._channel.receive(timeout_s)), timeout_s)
        return received[0]

    def read(self, name: str, limit_bytes: int) -> bytearray | None:
        """A copy of a file that the child left in its folder; None without such a plain file, or above the limit.

        Links are not followed: the child could point them at anything that the parent can read.
        """
        if os.path.basename(name) != name:
            raise ValueError(f"'{name}' is not the name of a file in the folder itself")
        try:
            descriptor = os.open(self.folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            return read_descriptor(descriptor, limit_bytes)
        finally:
            os.close(descriptor)

    def close(self) -> Ended:
        """Kill the child and everything it started, and say how it ended.

        Raises:
            HarnessError: it could not be contained, or cannot be killed.
        """
        return self._end(None, "ended with its session", NOTICE_S if self._is_over() else 0.0)

    def _talk(self, exchange: Callable[[], None], timeout_s: float) -> None:
        """An exchange over the channel; whatever goes wrong ends the session."""
        if self._ended is not None:
            raise ChildEnded(self._ended)
        try:
            exchange()
        except TimedOut:
            raise ChildEnded(self._end(HUNG, f"did not answer within {timeout_s:g} s")) from None
        except Closed:
            ended = self._end(EXITED, "closed its channel before it was done", NOTICE_S)
            if ended.cause is None:  # nothing wrong with its exit code: that it came is what is wrong
                ended = replace(ended, cause=EXITED, sentence=f"{ended.sentence} before it was done")
                self._ended = ended
            raise ChildEnded(ended) from None
        except NotAFrame as error:
            raise ChildEnded(self._end(FLOODED, f"sent what is no message: {error}")) from None
        except _Flooded:
            sentence = f"printed more than {self._limits.output_bytes} bytes"
            raise ChildEnded(self._end(FLOODED, sentence)) from None

    def _wait(self, events: int, deadline: float) -> None:
        """Until the channel is ready, while reading what is printed and listening for the keeper."""
        while True:
            poll = select.poll()
            poll.register(self._channel.fileno(), events)
            poll.register(self._status, select.POLLIN)
            if self._output_open:
                poll.register(self._output, select.POLLIN)
            rest = deadline - time.monotonic()
            ready = [descriptor for descriptor, _ in poll.poll(min(max(0.0, rest), POLL_MAX_S) * MS)]
            if self._output in ready:
                self._drain()
            if self._channel.fileno() in ready:
                return
            if self._status in ready:  # it ended, though somebody may hold its end of the channel
                raise Closed
            if rest <= 0:
                raise TimedOut

    def _drain(self) -> bool:
        """Take some of what was printed; whether there was any."""
        try:
            data = os.read(self._output, READ_BYTES)
        except BlockingIOError:
            return False
        self._tail = (self._tail + data)[-TAIL_BYTES:]
        self._printed += len(data)
        if self._printed > self._limits.output_bytes:
            raise _Flooded
        self._output_open = bool(data)
        return self._output_open

    def _is_over(self) -> bool:
        """Whether the child's end of the channel is closed already."""
        poll = select.poll()
        poll.register(self._channel.fileno(), select.POLLRDHUP)
        return self._ended is None and bool(poll.poll(0))

    def abandon(self) -> None:
        """Close this side's ends and remove the folder; the keeper, if there is one, ends the rest."""
        for descriptor in (self._life, self._status, self._output):
            os.close(descriptor)
        self._channel.close()
        remove(self.folder)
        self._ended = Ended(None, "was abandoned", "")

    def _end(self, cause: str | None, sentence: str, notice_s: float = 0.0) -> Ended:
        """End the session, for this cause unless its keeper knows of an earlier one."""
        if self._ended is None:
            try:
                said = self._end_processes(notice_s)
                output = self._output_at_end()
            finally:
                self.abandon()
            ended = Ended(cause, sentence, output, seconds=time.monotonic() - self._started)
            self._ended = with_word(ended, said, self._limits)
        return self._ended

    def _end_processes(self, notice_s: float) -> bytes:
        """Wait for the keeper's word, then tell it to end; its word, once nothing of the session is left."""
        said, is_gone = _read_to_end(self._status, notice_s)
        with contextlib.suppress(BrokenPipeError):
            os.write(self._life, b"x")
        if not is_gone:
            rest, is_gone = _read_to_end(self._status, GONE_S)
            said += rest
        if not said:
            raise HarnessError("A session's keeper ended without a word; its server may have been killed.")
        if not is_gone:
            raise HarnessError(f"A session's processes are still there {GONE_S:g} s after they were killed.")
        return said

    def _output_at_end(self) -> str:
        """The end of what was printed, once nothing of the session is left to print."""
        with contextlib.suppress(_Flooded):
            while self._drain():
                continue
        return self._tail.decode("utf-8", "replace")


class _Flooded(Exception):
    """More was printed than is allowed."""


def _read_to_end(descriptor: int, timeout_s: float) -> tuple[bytes, bool]:
    """What a pipe holds, and whether its other end was closed in time."""
    said, deadline = b"", time.monotonic() + timeout_s
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    while poll.poll(max(0.0, deadline - time.monotonic()) * MS):
        data = os.read(descriptor, STATUS_BYTES)
        if not data:
            return said, True
        said += data
    return said, False
