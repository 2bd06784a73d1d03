"""Runs a command that may hang, crash, flood or exit early, and says how it ended.

The command gets its own session, an environment cut down to what compilers and GPUs need (no secrets), an empty
working folder and a time limit; whatever of its process group is left at the end is killed. What it prints is kept to
its last `TAIL_BYTES`, and more than `FLOOD_BYTES` ends it. It may leave a JSON record in a file: what it prints decides
nothing. This is not containment: the command has the user's rights, the network included.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TAIL_BYTES = 16 * 1024
FLOOD_BYTES = 16 * 1024 * 1024
READ_BYTES = 64 * 1024
POLL_S = 0.05
RECORD_BYTES = 4 * 1024 * 1024

# names, and beginnings of names, of what a compiler, an interpreter or a GPU is found and steered by
KEPT_VARIABLES = frozenset({"PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "VIRTUAL_ENV", "PYTHONPATH", "CC", "CXX"})
KEPT_PREFIXES = ("CUDA_", "NVIDIA_", "LD_", "OMP_", "MKL_")


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    failure: str | None
    """Why it did not end by itself with code 0; None where it did."""
    record: dict[str, Any] | None
    """What it left in its record file; None where it left none, or not a whole one."""
    output: str
    """The end of what it printed, both streams together."""
    seconds: float
    """How long it ran."""


def run(
    command: Sequence[str | Path],
    *,
    timeout_s: float,
    folder: Path,
    variables: Mapping[str, str] | None = None,
    record: Path | None = None,
) -> Ended:
    """Run a command to its end, or to its limit.

    Args:
        command: program and arguments.
        timeout_s: seconds after which it is killed.
        folder: its working folder, an empty one; also for its temporary files.
        variables: set in its environment beside what is kept of this one's.
        record: file it may write its record to.
    """
    started = time.monotonic()
    process = subprocess.Popen(
        [str(part) for part in command],
        cwd=folder,
        env={**kept_environment(), "TMPDIR": str(folder), **(variables or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        limit, output = _watch(process, started + timeout_s, timeout_s)
    finally:
        _kill_group(process)
    seconds = time.monotonic() - started
    return Ended(limit or _cause(process.returncode), _read_record(record), output, seconds)


def python(
    module: str,
    arguments: Sequence[str],
    *,
    timeout_s: float,
    interpreter: str,
    variables: Mapping[str, str] | None = None,
) -> Ended:
    """Run `python -m module arguments… RECORD` in a fresh folder; the module writes its record to the file RECORD."""
    root = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(part for part in (root, os.environ.get("PYTHONPATH", "")) if part)
    with tempfile.TemporaryDirectory(prefix="kernelgen-", ignore_cleanup_errors=True) as name:
        work, record = Path(name, "work"), Path(name, "record.json")
        work.mkdir()
        given = {"PYTHONPATH": path, "TRITON_CACHE_DIR": str(Path(name, "cache")), "PYTHONDONTWRITEBYTECODE": "1"}
        return run(
            [interpreter, "-m", module, *arguments, record],
            timeout_s=timeout_s,
            folder=work,
            variables={**given, **(variables or {})},
            record=record,
        )


def kept_environment() -> dict[str, str]:
    """This process's environment without what a child has no use for: keys and tokens above all."""
    return {
        name: value for name, value in os.environ.items() if name in KEPT_VARIABLES or name.startswith(KEPT_PREFIXES)
    }


def _watch(process: subprocess.Popen[bytes], deadline: float, timeout_s: float) -> tuple[str | None, str]:
    """Read what the process prints until it ends or passes a limit: the limit passed, and the end of the output."""
    assert process.stdout is not None
    tail, printed, limit = b"", 0, None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while limit is None:
            ready = selector.select(POLL_S)
            data = os.read(process.stdout.fileno(), READ_BYTES) if ready else b""
            tail = (tail + data)[-TAIL_BYTES:]
            printed += len(data)
            if not data and _has_ended(process):
                break
            if ready and not data:
                time.sleep(POLL_S)  # it closed its output and runs on
            if printed > FLOOD_BYTES:
                limit = f"printed more than {FLOOD_BYTES // 1024**2} MiB"
            elif time.monotonic() > deadline:
                limit = f"did not end within {timeout_s:g} s"
    return limit, tail.decode("utf-8", "replace")


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Whether the process has ended, which leaves it to be reaped: until then its group's number stays its own."""
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill whatever is left of the process's group, and reap it."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


def _cause(code: int) -> str | None:
    """What a return code means; None for 0."""
    if code == 0:
        return None
    if code > 0:
        return f"ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:  # a real-time signal has no name
        name = f"signal {-code}"
    return f"killed by {name}"


def _read_record(path: Path | None) -> dict[str, Any] | None:
    """The record a command left, or None."""
    if path is None or not path.is_file() or path.stat().st_size > RECORD_BYTES:
        return None
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:  # cut short, or not JSON
        return None
    return record if isinstance(record, dict) else None
