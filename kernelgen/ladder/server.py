"""A clean process that has a DSL imported and forks a contained child for each session with candidate code.

    with Server("interpreter") as server, server.open("kernelgen.ladder.x:function") as session:
        session.send({...})
        answer, descriptors = session.receive(10.0)

The child calls `function(channel)`. Nothing that comes from a child is believed; how it ended is known from outside it.
Killing this process kills the server and every child. A server that died is started again by the next `open`.
"""

from __future__ import annotations

import contextlib
import json
import os
import site
import socket
import subprocess
import threading
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kernelgen.errors import BadInput, HarnessError, KernelgenError
from kernelgen.ladder.channel import Channel, Closed, NotAFrame, TimedOut
from kernelgen.ladder.containment import DEFAULT, Limits, broken, clean_command, environment, summary
from kernelgen.ladder.ending import ChildEnded, Ended
from kernelgen.ladder.install import KERNELS_LINE, TILELANG_LINE
from kernelgen.ladder.kinds import KINDS
from kernelgen.ladder.scratch import Scratch
from kernelgen.ladder.session import Session

__all__ = ["DEFAULT", "KINDS", "ChildEnded", "Ended", "Limits", "Server", "Session"]

SERVING = "kernelgen.ladder.serving"
ROOT = Path(__file__).resolve().parents[2]
# for trying what holds, for importing torch and a DSL from a cold disk, and for one fork
PROBE_S, IMPORT_S, START_S = 60.0, 300.0, 60.0
LOG_TAIL = 600


class Server:
    """A server process and the sessions it starts; use it as a context manager."""

    def __init__(
        self,
        kind: str,
        *,
        contained: bool = True,
        variables: Mapping[str, str] | None = None,
        without: Sequence[str] = (),
    ) -> None:
        """Start the process; it imports while this one goes on.

        Args:
            kind: `plain` (torch), `compiler` (and Triton, no driver), `interpreter` (Triton with TRITON_INTERPRET=1),
                `tilelang`, or `gpu` (torch and Triton with the GPU's devices in view, CUDA not yet initialised).
            contained: whether children are contained; without, they have limits, a scrubbed environment and an end.
            variables: set in its environment and its children's; PYTHONPATH names folders to import from.
            without: mechanisms of `containment.mechanisms` to do without, as on a kernel that lacks them.

        Raises:
            BadInput: containment is asked for, and this machine lacks what it needs.
        """
        if kind not in KINDS:
            raise HarnessError(f"There is no server of kind '{kind}'.")
        self._kind = kind
        self._contained = contained
        self._without = list(without)
        self._variables = dict(variables or {})
        self._lock = threading.Lock()
        self._count = 0
        self._scratch = Scratch()
        self._base = self._scratch.folder
        self._sessions = self._base / "work"
        self._versions: dict[str, str] | None = None
        self._holds: dict[str, str] = {}
        self._open: weakref.WeakSet[Session] = weakref.WeakSet()
        self._closed = False
        try:
            self._start()
        except KernelgenError:
            self.close()
            raise

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def environment(self) -> dict[str, str]:
        """Versions of what is imported, and `containment`: what contains the children."""
        with self._lock:
            versions = self._ready()
        return {**versions, "containment": summary(self._holds) if self._contained else "none (asked for)"}

    @property
    def holds(self) -> dict[str, str]:
        """Each mechanism with `holds`, or why it does not; empty where containment was not asked for."""
        return dict(self._holds)

    def open(self, job: str, *, limits: Limits = DEFAULT) -> Session:
        """Start a child that does a job.

        Args:
            job: `module:function` of kernelgen; it is called in the child with its `channel.Channel`.
            limits: what the child may use.

        Raises:
            HarnessError: the server cannot start it, or is closed.
        """
        with self._lock:
            if self._closed:
                raise HarnessError("A session was asked of a server that is closed.")
            if self._process.poll() is not None:
                self._stop()
                self._start()
            self._ready()
            self._count += 1
            folder = self._sessions / str(self._count)
            folder.mkdir(mode=0o700)
            return self._begin(job, folder, limits)

    def close(self) -> None:
        """End every session, and the server."""
        with self._lock:
            if not self._closed:
                self._closed = True
                for session in list(self._open):
                    with contextlib.suppress(HarnessError):  # the server's end takes what is left of it
                        session.close()
                self._stop()
                self._scratch.close()

    def _start(self) -> None:
        for folder in (self._base, self._base / "root", self._sessions):
            folder.mkdir(exist_ok=True)
        here, there = socket.socketpair()
        settings = {
            "kind": self._kind,
            "contained": self._contained,
            "control": there.fileno(),
            "parent": os.getpid(),
            "root": str(self._base / "root"),
            "sessions": str(self._sessions),
            "path": self._path(),
            "hidden": [os.getcwd(), str(Path.home())],
            "without": self._without,
        }
        variables = {name: value for name, value in self._variables.items() if name != "PYTHONPATH"}
        scrubbed = {**environment.scrubbed(os.environ), **environment.of_folder(str(self._sessions)), **variables}
        with there, open(self._log, "wb") as log:
            self._process = subprocess.Popen(
                clean_command(SERVING, json.dumps(settings)),
                cwd=self._sessions,
                env=scrubbed,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[there.fileno()],
                start_new_session=True,
            )
        self._versions = None
        self._control = Channel(here, self._sessions)
        self._holds = self._hear(PROBE_S)["holds"]
        missing = broken(self._holds) if self._contained else []
        if missing:
            raise BadInput(
                f"Candidates cannot be contained on this machine: {'; '.join(missing)}. `kernelgen doctor` says what "
                "holds; containment=off judges without, and the verdict says so."
            )

    def _ready(self) -> dict[str, str]:
        """Wait until the server has imported; the versions."""
        if self._versions is None:
            heard = self._hear(IMPORT_S)
            if "error" in heard:
                line = TILELANG_LINE if heard["missing"] == "tilelang" else KERNELS_LINE
                what = f"{heard['missing']} is not installed: {line}" if heard["missing"] else heard["error"]
                raise HarnessError(f"A '{self._kind}' server cannot start: {what}")
            self._versions = heard["versions"]
        return self._versions

    def _begin(self, job: str, folder: Path, limits: Limits) -> Session:
        """Have the server start a session, and keep this side's ends of it."""
        here, there = socket.socketpair()
        output, printing = os.pipe()
        status, telling = os.pipe()
        ending, life = os.pipe()
        with there:
            request = {"job": job, "folder": str(folder), "limits": asdict(limits)}
            self._control.send(request, [there.fileno(), printing, telling, ending], timeout_s=START_S)
        for descriptor in (printing, telling, ending):
            os.close(descriptor)
        session = Session(Channel(here, folder), output=output, status=status, life=life, limits=limits)
        self._open.add(session)
        answer = self._hear(START_S)
        if "error" in answer:
            session.abandon()
            raise HarnessError(f"The job {job} cannot be started: {answer['error']}")
        return session

    def _hear(self, timeout_s: float) -> dict[str, Any]:
        """The server's next word."""
        try:
            heard, _ = self._control.receive(timeout_s)
        except (Closed, TimedOut, NotAFrame) as error:
            self._process.kill()
            self._process.wait()
            tail = self._log.read_text(encoding="utf-8", errors="replace").strip()[-LOG_TAIL:]
            raise HarnessError(
                f"The '{self._kind}' server ended, or did not answer ({type(error).__name__}): {tail}"
            ) from None
        return heard

    def _stop(self) -> None:
        """End the process; keepers end their sessions when it is gone."""
        self._process.kill()
        self._process.wait()
        self._control.close()

    @property
    def _log(self) -> Path:
        """What the server itself prints: its own troubles."""
        return self._base / "log"

    def _path(self) -> list[str]:
        """Folders that were named on purpose to import from; never the working folder, which holds who knows what."""
        named = self._variables.get("PYTHONPATH", os.environ.get("PYTHONPATH", "")).split(os.pathsep)
        if site.ENABLE_USER_SITE:
            named.append(site.getusersitepackages())
        barred = {os.path.realpath(os.getcwd()), str(ROOT)}
        return [os.path.abspath(entry) for entry in named if entry and os.path.realpath(entry) not in barred]
