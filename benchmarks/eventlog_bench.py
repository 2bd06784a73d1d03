"""How many events a second the log takes, each event a transaction of its own.

`request` is a GenerationRequested with twelve texts, 40 kB in all, of which two, of 2 and 14 kB, are new each time;
`small` has no text; `reply` is one of the kinds whose appends wait for the disk. None may be lost: the log is
verified after each run. Prints JSON; `run()` gives the same figures.
"""

from __future__ import annotations

import json
import os
import platform
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kernelgen.eventlog import EventLog
from kernelgen.events import Event, GenerationRequested, RegionFrozen, ReplyReceived
from kernelgen.ids import digest_text
from kernelgen.records import Usage

PROCESSES = 8
ONE_WRITER_EVENTS = 2000
EVENTS_PER_PROCESS = 250
REPEATS = 3
Sample = tuple[Event, list[str]]


def lines(seed: str, size_bytes: int) -> str:
    """Text of about this size that packs about as well as source code does."""
    text, number = "", 0
    while len(text) < size_bytes:
        digest = digest_text(f"{seed} {number}")
        text += f"    value_{digest[7:13]} = tl.load(pointer + offsets_{number % 9}, mask=mask)\n"
        number += 1
    return text


SHARED = [lines(f"shared {number}", 2400) for number in range(10)]


def small(writer: str, number: int) -> Sample:
    """An event without texts."""
    return RegionFrozen(target="moe_dispatch_384expert", hardware="h200", why=f"{writer} {number}"), []


def reply(writer: str, number: int) -> Sample:
    """A model's answer of 6 kB."""
    text, messages = lines(f"{writer} {number}", 6000), SHARED[0]
    event = ReplyReceived(
        iteration_id=f"g{writer}_{number}",
        target="moe_dispatch_384expert",
        hardware="h200",
        attempt=1,
        messages=digest_text(messages),
        request_key=digest_text(writer),
        text=digest_text(text),
        model="bench",
        finish_reason="stop",
        usage=Usage(input_tokens=6000, output_tokens=1500, cost_usd=None, seconds=1.0),
    )
    return event, [text, messages]


def request(writer: str, number: int) -> Sample:
    """A request with its records: ten of the texts are in the log already, position and messages are new."""
    position = lines(f"position {writer} {number}", 2000)
    messages = "".join(SHARED[:5]) + position
    names = ("target", "hardware", "approach", "profile", "champion", "pr")
    event = GenerationRequested(
        iteration_id=f"g{writer}_{number}",
        target="moe_dispatch_384expert",
        hardware="h200",
        state=1,
        chosen_by="vector",
        lm="playbook",
        program_name="base",
        config=digest_text(SHARED[6]),
        overrides=("target=moe_dispatch_384expert", "state=1"),
        constraint_set=digest_text(SHARED[7]),
        selection=digest_text(SHARED[8]),
        ask={name: digest_text(text) for name, text in zip(names, SHARED, strict=False)}
        | {"position": digest_text(position)},
        program=digest_text(SHARED[9]),
        messages=digest_text(messages),
        model="playbook",
        parameters="{}",
        versions='{"dspy":"3.4.1","kernelgen":"0.1.0","python":"3.11.7"}',
        out="/out",
    )
    return event, [*SHARED, position, messages]


SAMPLES: dict[str, Callable[[str, int], Sample]] = {"small": small, "request": request, "reply": reply}


def one_writer(kind: str, path: Path) -> float:
    """Events a second of one process."""
    samples = [SAMPLES[kind]("w", number) for number in range(ONE_WRITER_EVENTS)]
    with EventLog.open(path) as log:
        begin = time.perf_counter()
        for event, texts in samples:
            log.append(event, texts)
        return ONE_WRITER_EVENTS / (time.perf_counter() - begin)


def many_writers(kind: str, path: Path) -> float:
    """Events a second of eight processes together, from the common start to the end of the last."""
    command = [sys.executable, __file__, "--writer", kind, str(path)]
    writers = [
        subprocess.Popen([*command, str(number)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for number in range(PROCESSES)
    ]
    for process in writers:
        _read_word(process, "ready")
    begin = time.perf_counter()
    for process in writers:
        _go(process)
    for process in writers:
        _read_word(process, "done")
    seconds = time.perf_counter() - begin
    for process in writers:
        process.communicate()
    return PROCESSES * EVENTS_PER_PROCESS / seconds


def as_writer(kind: str, path: Path, name: str) -> None:
    """One of the eight: ready, wait for the start, append, done."""
    samples = [SAMPLES[kind](name, number) for number in range(EVENTS_PER_PROCESS)]
    with EventLog.open(path) as log:
        print("ready", flush=True)
        sys.stdin.readline()
        for event, texts in samples:
            log.append(event, texts)
        print("done", flush=True)


def run() -> dict[str, Any]:
    """Medians of three runs: events a second by kind of event, for one writer, for eight, and for verifying."""
    figures: dict[str, Any] = {
        "unit": "events/s",
        "machine": {"cpus": os.cpu_count(), "python": platform.python_version(), "sqlite": sqlite3.sqlite_version},
    }
    for name, measure, expected in (
        ("one_writer", one_writer, ONE_WRITER_EVENTS),
        ("eight_processes", many_writers, PROCESSES * EVENTS_PER_PROCESS),
    ):
        for kind in SAMPLES:
            runs = [_measured(measure, kind, expected) for _ in range(REPEATS)]
            figures[f"{name}_{kind}"] = sorted(speed for speed, _ in runs)[REPEATS // 2]
            figures[f"verify_{name}_{kind}"] = sorted(speed for _, speed in runs)[REPEATS // 2]
    return figures


def _measured(measure: Callable[[str, Path], float], kind: str, expected: int) -> tuple[int, int]:
    """Events a second appended and verified, in a log of its own; RuntimeError when one was lost."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.db"
        speed = measure(kind, path)
        with EventLog.read(path) as log:
            begin = time.perf_counter()
            found = log.verify()
            verified = found.events / (time.perf_counter() - begin)
        if found.events != expected or not found.ok:
            raise RuntimeError(f"{expected} events were appended, the log has {found.events}: {found.problems}")
        return round(speed), round(verified)


def _go(process: subprocess.Popen[str]) -> None:
    if process.stdin is not None:
        process.stdin.write("go\n")
        process.stdin.flush()


def _read_word(process: subprocess.Popen[str], word: str) -> None:
    found = process.stdout.readline().strip() if process.stdout is not None else ""
    if found != word:
        raise RuntimeError(f"a writer said {found!r} instead of {word!r}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--writer"]:
        as_writer(sys.argv[2], Path(sys.argv[3]), sys.argv[4])
    else:
        print(json.dumps(run(), indent=2))
