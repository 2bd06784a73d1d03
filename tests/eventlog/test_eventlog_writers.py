"""Many writers at once, and writers killed at any instant, lose nothing that was reported as appended."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from eventlog_samples import problems, small

from kernelgen.errors import LogError
from kernelgen.eventlog import EventLog, head
from kernelgen.eventlog.head import read_head

WRITER = """
import sys
from pathlib import Path
from eventlog_samples import reply
from kernelgen.eventlog import EventLog

path, name, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
sys.stdin.readline()
with EventLog.open(path) as log:
    for number in range(count):
        text = f"{name} {number} " + "line of the reply\\n" * 200
        row = log.append(reply(f"g{name}_{number}", text, "the same messages"), [text, "the same messages"])
        print(row.id, flush=True)
"""


def writer(path: Path, name: str, count: int) -> subprocess.Popen[str]:
    """A process that opens the log when it is sent a line, and prints the id of each event it appended."""
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), name, str(count)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
    )


def test_eight_processes_make_one_log_and_lose_nothing(path: Path) -> None:
    writers = [writer(path, f"w{number}", 100) for number in range(8)]
    for process in writers:  # all are started before the first opens the log that none of them finds
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    reported = [set(process.communicate()[0].split()) for process in writers]
    assert [process.returncode for process in writers] == [0] * 8
    with EventLog.read(path) as log:
        assert {row.id for row in log.rows()} == set().union(*reported)
        assert log.count() == 800
        found = log.verify()
    assert (found.events, found.texts, found.problems) == (800, 801, ())
    mark = read_head(path)
    assert mark is not None
    assert mark.seq == 800


def test_writers_killed_at_any_instant_leave_a_log_that_verifies(path: Path) -> None:
    reported: set[str] = set()
    for attempt in range(4):
        processes = [writer(path, f"a{attempt}p{number}", 100_000) for number in range(2)]
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        for process in processes:
            assert process.stdout is not None
            reported.add(process.stdout.readline().strip())
        time.sleep(random.Random(attempt).uniform(0.0, 0.2))
        for process in processes:
            process.send_signal(signal.SIGKILL)
        for process in processes:
            out, _ = process.communicate()
            reported.update(line.strip() for line in out.splitlines(keepends=True) if line.endswith("\n"))
        assert problems(path) == ()
    with EventLog.open(path) as log:
        row = log.append(small())
        ids = {found.id for found in log.rows()}
        assert reported <= ids
        assert row.seq == len(ids)
        assert log.verify().ok


def test_two_logs_open_in_one_process_take_turns(path: Path) -> None:
    with EventLog.open(path) as one, EventLog.open(path) as other:
        rows = [log.append(small()) for log in (one, other, one, other)]
        assert [row.seq for row in rows] == [1, 2, 3, 4]
        assert other.verify().ok


def test_waiting_for_a_stuck_writer_ends_in_a_sentence(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with EventLog.open(path) as log:
        stuck = head.HeadFile(path)
        with stuck.locked():
            monkeypatch.setattr(head, "LOCK_TIMEOUT_S", 0.05)
            with pytest.raises(LogError, match="another process has kept the log locked"):
                log.append(small())
        stuck.close()
        assert log.append(small()).seq == 1
