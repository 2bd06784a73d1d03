"""Messages between a session's parent and its child: frames of JSON over a socket pair, with descriptors beside them.

A frame is a head (length of the text, number of descriptors) and a JSON object. The child's end can be written by
candidate code: whatever does not read as a frame raises `NotAFrame`, and nothing else can come of it. What a frame says
is for its reader to doubt, and so are its descriptors: `read_descriptor` copies what one holds.
"""

from __future__ import annotations

import array
import json
import os
import select
import socket
import stat
import struct
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

HEAD = struct.Struct("!IH")
FRAME_BYTES = 16 << 20
FDS_MAX = 64
CHUNK_BYTES = 256 << 10
MS = 1000
# beyond it, poll cannot be told how long
FOREVER_S = 86400.0
_FD_BYTES = array.array("i").itemsize


class NotAFrame(Exception):
    """What arrived is no frame; the message says why."""


class Closed(Exception):
    """The other end is closed."""


class TimedOut(Exception):
    """Nothing, or not all of it, arrived or left in time."""


class Channel:
    """One end. It calls what it captured when it was made: patching modules later has no effect on it."""

    folder: Path
    """The child's own writable folder, in the child; the parent has the session's."""

    def __init__(self, end: socket.socket, folder: Path) -> None:
        end.setblocking(False)
        self.folder = folder
        self._fd = end.fileno()
        self._end = end
        self._sendmsg, self._recvmsg = end.sendmsg, end.recvmsg
        self._encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
        self._decode = json.JSONDecoder().decode
        self._clock = time.monotonic
        self._wait: Callable[[int, float], None] = self._wait_alone
        self._poll = select.poll
        self._close_fd = os.close

    def wait_with(self, wait: Callable[[int, float], None]) -> None:
        """Wait for readiness through a function of poll events and deadline, which may watch other things too."""
        self._wait = wait

    def send(self, message: dict[str, Any], fds: Sequence[int] = (), *, timeout_s: float | None = None) -> None:
        """Send one frame; the descriptors are duplicated, the sender's stay open.

        Raises:
            ValueError: the message is too long, or has too many descriptors.
            Closed: the other end is closed.
            TimedOut: it was not taken in time; None waits for ever.
        """
        text = self._encode(message).encode("utf-8")
        if len(text) > FRAME_BYTES or len(fds) > FDS_MAX:
            raise ValueError(f"a message has at most {FRAME_BYTES} bytes and {FDS_MAX} descriptors")
        deadline = self._deadline(timeout_s)
        rest = memoryview(HEAD.pack(len(text), len(fds)) + text)
        beside = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        while rest:
            try:
                sent = self._sendmsg([rest[:CHUNK_BYTES]], beside)
            except BlockingIOError:
                self._wait(select.POLLOUT, deadline)
                continue
            except OSError as error:
                raise Closed from error
            rest, beside = rest[sent:], []

    def receive(self, timeout_s: float | None = None) -> tuple[dict[str, Any], list[int]]:
        """The next frame and its descriptors, which are the caller's to close.

        Raises:
            NotAFrame: something else arrived.
            Closed: the other end is closed.
            TimedOut: no whole frame arrived in time; None waits for ever.
        """
        deadline = self._deadline(timeout_s)
        fds: list[int] = []
        whole = False
        try:
            head = self._read(HEAD.size, fds, deadline)
            length, count = HEAD.unpack(head)
            if length > FRAME_BYTES or count > FDS_MAX:
                raise NotAFrame(f"a message of {length} bytes with {count} descriptors")
            text = self._read(length, fds, deadline)
            if len(fds) != count:
                raise NotAFrame(f"{len(fds)} descriptors where {count} were said to come")
            message = self._parse(text)
            whole = True
        finally:
            if not whole:
                for descriptor in fds:
                    self._close_fd(descriptor)
        return message, fds

    def close(self) -> None:
        """Close this end."""
        self._end.close()

    def fileno(self) -> int:
        """Its descriptor."""
        return self._fd

    def _read(self, size: int, fds: list[int], deadline: float) -> bytes:
        """Exactly so many bytes; the descriptors that come with them are appended."""
        parts: list[bytes] = []
        while size:
            try:
                part, beside, flags, _ = self._recvmsg(
                    min(size, CHUNK_BYTES), socket.CMSG_SPACE(FDS_MAX * _FD_BYTES), socket.MSG_CMSG_CLOEXEC
                )
            except BlockingIOError:
                self._wait(select.POLLIN, deadline)
                continue
            except OSError as error:
                raise Closed from error
            for level, kind, data in beside:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    arrived = array.array("i")
                    arrived.frombytes(data[: len(data) - len(data) % _FD_BYTES])
                    fds.extend(arrived)
            if flags & socket.MSG_CTRUNC or len(fds) > FDS_MAX:
                raise NotAFrame("too many descriptors")
            if not part:
                raise Closed
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def _parse(self, text: bytes) -> dict[str, Any]:
        try:
            message = self._decode(text.decode("utf-8"))
            if b"\\ud" in text.lower():  # an escape that makes half a character, which nothing could write down
                self._encode(message).encode("utf-8")
        except (ValueError, RecursionError) as error:
            raise NotAFrame(f"no JSON: {type(error).__name__}") from error
        if not isinstance(message, dict):
            raise NotAFrame("JSON that is no object")
        return message

    def _deadline(self, timeout_s: float | None) -> float:
        return float("inf") if timeout_s is None else self._clock() + timeout_s

    def _wait_alone(self, events: int, deadline: float) -> None:
        """Wait until the socket is ready. Raises TimedOut at the deadline."""
        waiting = self._poll()
        waiting.register(self._fd, events)
        rest = deadline - self._clock()
        if rest <= 0 or not waiting.poll(None if rest > FOREVER_S else rest * MS):
            raise TimedOut


def read_descriptor(descriptor: int, limit_bytes: int) -> bytearray | None:
    """A copy of what a memfd or file holds; None where it is neither, or larger than the limit.

    A copy, since a mapping would follow what the child does to it, and end the reader where it is cut short.
    """
    try:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode) or about.st_size > limit_bytes:
            return None
        held, done = bytearray(about.st_size), 0
        with memoryview(held) as room:
            while done < len(held):
                count = os.preadv(descriptor, [room[done:]], done)
                if count == 0:  # it was cut short meanwhile
                    return None
                done += count
    except OSError:
        return None
    return held
