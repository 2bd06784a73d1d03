"""SIGKILL between any two steps of a generation: the log verifies, and the next run goes on from it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernelgen.events import GenerationFailed
from tests.generation.conftest import kernelgen, kinds, log

Generated = Callable[..., dict[str, Any]]

KILLER = """
import os, signal, sys
from kernelgen import candidates, cli
from kernelgen.eventlog import runs
from kernelgen.eventlog.store import EventLog

when, count = sys.argv[1], int(sys.argv[2])
calls = 0

def kill(*_):
    os.kill(os.getpid(), signal.SIGKILL)

def wrapped(function):
    def call(*arguments, **named):
        global calls
        calls += 1
        if calls == count and when.startswith("before"):
            kill()
        result = function(*arguments, **named)
        if calls == count and when.startswith("after"):
            kill()
        return result
    return call

if when.endswith("append"):
    EventLog.append = wrapped(EventLog.append)
elif when.endswith("write"):
    candidates.write_files = wrapped(candidates.write_files)
elif when.endswith("lock"):
    runs.RunLock.acquire = classmethod(wrapped(runs.RunLock.acquire.__func__))
sys.exit(cli.main(["generate", "judge=none", "target=mla_decode_fp8", "state=1"]))
"""

STEPS = {
    "before the run lock": ("before lock", 1, []),
    "after the run lock": ("after lock", 1, []),
    "after the request": ("after append", 1, ["generation_requested"]),
    "before the reply is logged": ("before append", 2, ["generation_requested"]),
    "after the reply": ("after append", 2, ["generation_requested", "reply_received"]),
    "before the candidate is logged": ("before append", 3, ["generation_requested", "reply_received"]),
    "after the candidate": ("after append", 3, ["generation_requested", "reply_received", "candidate_generated"]),
    "before the file": ("before write", 1, ["generation_requested", "reply_received", "candidate_generated"]),
    "after the file": ("after write", 1, ["generation_requested", "reply_received", "candidate_generated"]),
}


@pytest.mark.parametrize("step", STEPS)
def test_a_generation_killed_between_two_steps_is_finished_by_the_next(
    workspace: Path, generated: Generated, capsys: pytest.CaptureFixture[str], step: str
) -> None:
    when, count, logged = STEPS[step]
    script = workspace / "killer.py"
    script.write_text(KILLER)
    done = subprocess.run([sys.executable, str(script), when, str(count)], cwd=workspace, check=False)
    assert done.returncode == -signal.SIGKILL
    assert kinds(workspace) == logged
    assert kernelgen("log", "verify") == 0
    record = generated("target=moe_dispatch_384expert", "state=1")
    assert Path(record["files"][0]).exists()
    _is_finished(workspace, logged)
    assert kernelgen("log", "verify") == 0
    assert kernelgen("replay", "--all") == 0
    assert list((workspace / "events.db.runs").iterdir()) == []


def _is_finished(workspace: Path, logged: list[str]) -> None:
    with log(workspace) as found:
        rows = list(found.rows(target="mla_decode_fp8", after=19))
        events = [row.event for row in rows]
    if "reply_received" in logged:
        assert events[-1].kind == "candidate_generated"
        (path,) = (workspace / "scripts/kernels/mla_decode_fp8").glob("g*.py")
        assert path.read_text().startswith("# kernelgen candidate g")
    elif logged:
        assert isinstance(events[-1], GenerationFailed)
        assert events[-1].cause == "interrupted"
    else:
        assert events == []


def test_a_running_generation_is_left_alone_by_the_recovery_of_another(workspace: Path, generated: Generated) -> None:
    script = workspace / "slow.py"
    script.write_text(
        "import sys, time\nfrom kernelgen import cli, playbook\nanswer = playbook.answer\n"
        "def slow(prompt):\n    print('asked', flush=True)\n    sys.stdin.readline()\n    return answer(prompt)\n"
        "playbook.answer = slow\nsys.exit(cli.main(['generate', 'target=mla_decode_fp8', 'state=1', '--json']))\n"
    )
    with subprocess.Popen(
        [sys.executable, str(script)], cwd=workspace, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as slow:
        assert slow.stdout is not None
        assert slow.stdout.readline() == "asked\n"
        generated("target=moe_dispatch_384expert", "state=1")
        out, _ = slow.communicate("go on\n")
    assert slow.returncode == 0
    assert Path(json.loads(out)["files"][0]).exists()
    assert "generation_failed" not in kinds(workspace)


def test_a_recovered_candidate_goes_where_its_request_said(workspace: Path, generated: Generated) -> None:
    script = workspace / "killer.py"
    script.write_text(KILLER.replace('"state=1"]', '"state=1", "out=wanted"]'))
    subprocess.run([sys.executable, str(script), "after append", "2"], cwd=workspace, check=False)
    generated("target=moe_dispatch_384expert", "state=1", "out=other")
    assert len(list((workspace / "wanted/scripts/kernels/mla_decode_fp8").glob("g*.py"))) == 1
    assert not (workspace / "other/scripts/kernels/mla_decode_fp8").exists()


def test_a_folder_that_cannot_be_written_fails_that_run_and_holds_up_no_other(
    workspace: Path, generated: Generated
) -> None:
    (workspace / "file").write_text("")
    record = generated("target=mla_decode_fp8", "state=1", "out=file", code=2)
    assert "kernelgen log show g" in record["message"]
    assert generated("target=mla_decode_fp8", "state=1")["files"]
    assert kernelgen("replay", "--all") == 0
