"""The server process: finds out what contains, enters it, imports the DSL, and forks a keeper for each session.

Started clean by `server.Server` as `python -m kernelgen.ladder.serving SETTINGS`, with a socket to its parent. It runs
no candidate code: only modules of kernelgen, torch and the DSL. It ends when its parent does.
"""

from __future__ import annotations

import gc
import importlib
import importlib.metadata
import json
import os
import signal
import socket
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelgen.errors import KernelgenError
from kernelgen.ladder.channel import Channel, Closed, TimedOut
from kernelgen.ladder.containment import applying, mechanisms, paths, probe
from kernelgen.ladder.containment.keeper import keep
from kernelgen.ladder.containment.limits import Limits
from kernelgen.ladder.containment.order import Order
from kernelgen.ladder.kinds import KINDS, Kind

# how often it looks whether its parent is still there
LOOK_S = 1.0
# where Triton has had it; the later is cached by the earlier
KEY_MODULES = ("triton.compiler.compiler", "triton.runtime.cache")


@dataclass(frozen=True)
class Settings:
    """What the server is started with."""

    kind: str
    """A key of `KINDS`."""
    contained: bool
    """Whether its sessions are contained."""
    control: int
    """The socket to its parent."""
    parent: int
    """The parent's pid."""
    root: str
    """An empty folder to build the view at."""
    sessions: str
    """The folder of the sessions' folders."""
    path: list[str]
    """Further folders to import from, before the installed packages."""
    hidden: list[str]
    """Folders that stay out of view where they lie inside one that is shown."""
    without: list[str]
    """Mechanisms to do without."""


def main(arguments: list[str]) -> int:
    """Serve until the parent closes its end or dies."""
    settings = Settings(**json.loads(arguments[0]))
    kind = KINDS[settings.kind]
    sys.path[:0] = settings.path
    control = Channel(socket.socket(fileno=settings.control), Path(settings.sessions))
    record = probe.tried() if settings.contained else {}
    record |= dict.fromkeys(settings.without, "done without")
    control.send({"holds": record})
    if settings.contained and mechanisms.broken(record):
        return 0
    seen = paths.found(gpu=kind.gpu, hidden=settings.hidden)
    if settings.contained:
        applying.contain_server(record, seen, root=settings.root, writable=settings.sessions)
    try:
        versions = _imported(kind)
    except (ImportError, KernelgenError) as error:
        control.send({"error": str(error), "missing": getattr(error, "name", None)})
        return 0
    control.send({"versions": versions})
    _serve(settings, control, _Starter(settings, record, seen))
    return 0


def _imported(kind: Kind) -> dict[str, str]:
    """Import what the kind has ready; the versions."""
    os.environ.update(kind.variables)
    for name in kind.modules:
        importlib.import_module(name)
    for name in KEY_MODULES:  # a digest of Triton's whole installation, made once here and not in each session
        getattr(sys.modules.get(name), "triton_key", str)()
    gc.collect()
    gc.freeze()  # what is there stays, and is not copied by a collection in each child
    return {name: getattr(sys.modules.get(name), "__version__", "") or _version(name) for name in kind.versions}


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def _serve(settings: Settings, control: Channel, start: Callable[[dict[str, Any], list[int]], None]) -> None:
    """Start a session for each request."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # keepers need no reaping
    while os.getppid() == settings.parent:
        try:
            request, descriptors = control.receive(LOOK_S)
        except TimedOut:
            continue
        except Closed:
            return
        answer: dict[str, Any] = {}
        try:
            start(request, descriptors)
        except (ImportError, AttributeError, KernelgenError, OSError) as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        for descriptor in descriptors:
            os.close(descriptor)
        control.send(answer)


class _Starter:
    """Forks a keeper for a request."""

    def __init__(self, settings: Settings, record: dict[str, str], seen: paths.Paths) -> None:
        self._settings = settings
        self._record = record
        self._seen = seen

    def __call__(self, request: dict[str, Any], descriptors: list[int]) -> None:
        """Start the session that a request describes.

        Args:
            request: `job`, `folder` and `limits`.
            descriptors: of channel, output, status and life.
        """
        module, _, function = request["job"].partition(":")
        channel, output, status, life = descriptors
        order = Order(
            job=getattr(importlib.import_module(module), function),
            folder=request["folder"],
            limits=Limits(**request["limits"]),
            contained=self._settings.contained,
            record=self._record,
            paths=self._seen,
            channel=channel,
            output=output,
            status=status,
            life=life,
        )
        server = os.getpid()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # idle threads of torch, which no child uses
            forked = os.fork()
        if forked == 0:
            os.close(self._settings.control)
            keep(order, server)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
