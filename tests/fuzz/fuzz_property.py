"""What every door promises of any input: it is taken, or one KernelgenError in one sentence says why not.

No other exception, no case longer than LIMIT_S, and nothing written or changed in the folder when it is refused. A door
is a strategy of cases and the function that takes one; both test_fuzz.py and `python -m tests.fuzz` run them.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import SearchStrategy

from kernelgen.errors import HarnessError, KernelgenError

LIMIT_S = 20.0
"""Longest that one case may take, on a busy machine; they take milliseconds."""
CASES = "KERNELGEN_FUZZ_CASES"
"""Environment variable with the number of cases a door; with it they differ from run to run."""
TEST_CASES = 200


@dataclass(frozen=True)
class Door:
    """One way for bytes and texts from outside into kernelgen."""

    name: str
    """As the table calls it."""
    cases: SearchStrategy[Any]
    """What comes through it."""
    put: Callable[[Any, Path], None]
    """Lays the case out in an empty folder."""
    enter: Callable[[Any, Path], object]
    """Takes it, as kernelgen does."""


class Hang(BaseException):
    """A case took longer than LIMIT_S; no Exception, so that nothing takes it for a refusal."""


def hold(door: Door, case: Any, folder: Path) -> None:
    """Take one case through the door and hold it to the promise. AssertionError where it is broken."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    door.put(case, folder)
    before = contents(folder)
    refusal = _refusal(door, case, folder)
    if refusal is None:
        return
    assert not isinstance(refusal, HarnessError), f"{door.name} blames kernelgen: {refusal}"
    message = str(refusal)
    assert message.strip(), f"{door.name} refuses without a word"
    assert "\n" not in message, f"{door.name} refuses in several lines: {message!r}"
    assert contents(folder) == before, f"{door.name} refused ({message}) and left something changed"


def _refusal(door: Door, case: Any, folder: Path) -> KernelgenError | None:
    try:
        with limited(LIMIT_S):
            door.enter(case, folder)
    except KernelgenError as error:
        return error
    return None


def contents(folder: Path) -> dict[str, bytes | None]:
    """Every file with its bytes, every folder with None; what SQLite keeps beside a damaged database is its own."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
        if not path.name.endswith(("-wal", "-shm"))
    }


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise Hang in the block after so long."""

    def ring(_signal: int, _frame: FrameType | None) -> None:
        raise Hang(f"still running after {seconds:.0f} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def fuzz(door: Door, folder: Path) -> int:
    """Hold the door to its promise over many cases; how many there were. The first broken one is raised, made small."""
    given_number = os.environ.get(CASES)
    wanted, ran = int(given_number or TEST_CASES), 0

    @settings(
        max_examples=wanted,
        database=None,
        deadline=None,  # `limited` stops a hang, which a deadline only tells of afterwards
        derandomize=given_number is None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(door.cases)
    def every(case: Any) -> None:
        nonlocal ran
        ran += 1
        hold(door, case, folder / "case")

    every()
    return ran
