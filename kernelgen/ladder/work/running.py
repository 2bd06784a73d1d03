"""Runs one job's process and comes back with its results, however it ends.

A level that had started and was not told ends inconclusive, with how the process ended: that the harness fell is never
a verdict on the candidate, and what an earlier level found stands.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

from kernelgen.ladder.results import Result, result_from
from kernelgen.ladder.work.jobs import LEVELS, Job, Settings, WorkLevel
from kernelgen.ladder.work.levels import ends, terms
from kernelgen.ladder.work.one import Order

ONE = "kernelgen.ladder.work.one"
START_S = 300.0
"""For importing torch from a cold disk."""
BESIDE_S = 300.0
"""For a level's own work: starting servers, references, inputs."""
SIDES = 2
TAIL_CHARACTERS = 400
READ_BYTES = 1 << 16
DROPPED = ("PYTHONSAFEPATH", "PYTHONSTARTUP")
"""Variables that would keep the bundle's own modules from being found."""


class Overdue(Exception):
    """The process did not tell within its time."""


def results_of(job: Job, settings: Settings, folder: Path, *, contained: bool) -> tuple[list[Result], bool]:
    """The results of a job, and whether the harness lasted to its end."""
    listening, telling = os.pipe()
    order = Order(str(folder), job.number, contained, telling, os.getpid())
    environment = {name: value for name, value in os.environ.items() if name not in DROPPED}
    with tempfile.TemporaryFile() as log, os.fdopen(listening, "rb", buffering=0) as heard:
        process = subprocess.Popen(
            [sys.executable, "-B", "-m", ONE, json.dumps(asdict(order))],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=[telling],
            start_new_session=True,
        )
        os.close(telling)
        try:
            return _followed(process, heard, log, job, settings)
        finally:
            _kill(process)


def allowed_s(job: Job, settings: Settings, level: WorkLevel) -> float:
    """Seconds that a level's process may be silent: more than the level allows the candidate and the champion."""
    if level in ("L1", "L2"):
        return 2 * settings.timeout_s + BESIDE_S
    shapes = job.subject.goal.tune if level == "L3" else job.subject.goal.heldout
    return max(1, len(shapes)) * 2 * SIDES * terms(settings).shape_s + BESIDE_S


def _followed(
    process: subprocess.Popen[bytes], heard: BinaryIO, log: BinaryIO, job: Job, settings: Settings
) -> tuple[list[Result], bool]:
    """What the process tells until it is done, and what its end means."""
    results: list[Result] = []
    level: WorkLevel = "L1"
    lines, did, how, tail = _Lines(heard), "", "", ""
    lines.allow(START_S + BESIDE_S)
    try:
        for said in lines:
            if "done" in said:
                return results, True
            if "starting" in said:
                level = said["starting"]
                lines.allow(allowed_s(job, settings, level))
            elif "result" in said:
                results.append(result_from(said["result"]))
            else:
                did, how = "the harness failed at", f": {said['error']}"
    except Overdue:
        did, how = "the harness did not end", f" in {lines.allowed_s:g} s"
    if not did:
        did, how, tail = "the harness's process ended at", f": {_ending(process.wait())}", _tail(log)
    unknown = unknown_level(level, results, settings)
    if unknown is None:
        return results, True
    notes = (tail,) if tail else ()
    return [*results, Result(unknown, "inconclusive", f"{did} {unknown}{how}", notes=notes)], False


def unknown_level(level: WorkLevel, results: Sequence[Result], settings: Settings) -> WorkLevel | None:
    """The level that was in progress, or was to come; None where all that was asked is known."""
    if not results or results[-1].level != level:
        return level
    if level == settings.level or ends(results[-1], settings.clock):
        return None
    return LEVELS[LEVELS.index(level) + 1]


class _Lines:
    """The JSON lines of a pipe, each within the time allowed last."""

    def __init__(self, heard: BinaryIO) -> None:
        self._heard = heard
        self._rest = b""
        self.allow(START_S)

    def allow(self, seconds: float) -> None:
        """The next lines may take so long together."""
        self.allowed_s = seconds
        self._until = time.monotonic() + seconds

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Until the process closes its end. Raises Overdue."""
        poll = select.poll()
        poll.register(self._heard, select.POLLIN)
        while True:
            left_s = self._until - time.monotonic()
            if left_s <= 0 or not poll.poll(1000 * left_s):
                raise Overdue
            data = os.read(self._heard.fileno(), READ_BYTES)
            if not data:
                return
            *whole, self._rest = (self._rest + data).split(b"\n")
            for line in whole:
                yield json.loads(line)


def _ending(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:  # a real-time signal has no name
        return f"killed by signal {-code}"


def _tail(log: BinaryIO) -> str:
    """The end of what the process printed: its own troubles."""
    log.seek(0, os.SEEK_END)
    log.seek(max(0, log.tell() - 4 * TAIL_CHARACTERS))
    return log.read().decode("utf-8", "replace").strip()[-TAIL_CHARACTERS:]


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End the process and its group; servers and candidates end with it."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
