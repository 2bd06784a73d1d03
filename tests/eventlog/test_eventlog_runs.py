"""A killed generation is told from a live one, and recovered by one process only."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kernelgen.errors import LogError
from kernelgen.eventlog import RunLock, abandoned
from kernelgen.eventlog.runs import runs_folder

HOLDER = """
import sys, time
from pathlib import Path
from kernelgen.eventlog.runs import RunLock
lock = RunLock.acquire(Path(sys.argv[1]), sys.argv[2])
print("held", flush=True)
time.sleep(60)
"""


def killed(path: Path, iteration_id: str) -> None:
    """Leave the lock file of a process that was killed while it held it."""
    with hold(path, iteration_id) as holder:
        holder.send_signal(signal.SIGKILL)


def hold(path: Path, iteration_id: str) -> subprocess.Popen[str]:
    """A process that holds the lock."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path), iteration_id], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    return holder


def names(path: Path) -> list[str]:
    """The lock files there are."""
    return sorted(os.listdir(runs_folder(path)))


def test_nothing_is_abandoned_where_nothing_ran(path: Path) -> None:
    with abandoned(path) as found:
        assert found == []
    assert not runs_folder(path).exists()


def test_a_run_that_ended_leaves_nothing(path: Path) -> None:
    with RunLock.acquire(path, "g1"), abandoned(path) as found:
        assert found == [], "a live run is not abandoned, also for its own process"
        assert names(path) == ["g1"]
    assert names(path) == []


def test_a_run_of_another_process_is_alive_until_it_is_killed(path: Path) -> None:
    with hold(path, "g1") as holder:
        with abandoned(path) as found:
            assert found == []
        with pytest.raises(LogError, match="Generation g1 is running in another process"):
            RunLock.acquire(path, "g1")
        holder.kill()
        holder.wait()
        with abandoned(path) as found:
            assert found == ["g1"]
    assert names(path) == []


def test_two_recoverers_do_not_both_take_a_run(path: Path) -> None:
    killed(path, "g1")
    with abandoned(path) as first, abandoned(path) as second:
        assert (first, second) == (["g1"], [])


def test_a_recovery_that_fails_leaves_the_run_for_the_next(path: Path) -> None:
    killed(path, "g2")
    runs_folder(path).joinpath("g1").touch()
    with pytest.raises(ZeroDivisionError), abandoned(path):
        raise ZeroDivisionError
    with abandoned(path) as found:
        assert found == ["g1", "g2"]
    with abandoned(path) as found:
        assert found == []


def test_a_folder_that_cannot_be_made_is_named(path: Path) -> None:
    runs_folder(path).touch()
    with pytest.raises(LogError, match=r"events\.db\.runs"):
        RunLock.acquire(path, "g1")
    with abandoned(path) as found:
        assert found == []
