"""A child that hangs, crashes, floods or leaves early ends, and says how."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import pytest

from kernelgen.ladder import child


def run(tmp_path: Path, source: str, *, timeout_s: float = 20.0, record: Path | None = None) -> child.Ended:
    return child.run([sys.executable, "-c", source], timeout_s=timeout_s, folder=tmp_path, record=record)


@pytest.mark.parametrize(
    ("source", "failure"),
    [
        ("print('said')", None),
        ("raise SystemExit(3)", "ended with exit code 3"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "killed by SIGSEGV"),
        ("while True: print('x' * 100_000)", "printed more than 16 MiB"),
    ],
)
def test_the_cause_of_an_end_is_named(tmp_path: Path, source: str, failure: str | None) -> None:
    ended = run(tmp_path, source)
    assert ended.failure == failure
    assert len(ended.output) <= child.TAIL_BYTES
    assert ended.record is None


@pytest.mark.parametrize("prelude", ["", "import os; os.close(1); os.close(2); "])
def test_a_hang_ends_at_its_limit(tmp_path: Path, prelude: str) -> None:
    ended = run(tmp_path, f"{prelude}import time; time.sleep(60)", timeout_s=0.5)
    assert ended.failure == "did not end within 0.5 s"
    assert 0.5 <= ended.seconds < 10


def test_what_a_child_started_is_killed_with_it(tmp_path: Path) -> None:
    source = (
        "import subprocess, sys; from pathlib import Path;"
        "grandchild = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']);"
        "Path('pid').write_text(str(grandchild.pid))"
    )
    ended = run(tmp_path, source)
    assert ended.failure is None
    assert ended.seconds < 15
    pid = int((tmp_path / "pid").read_text())
    deadline = time.monotonic() + 10
    while is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_running(pid)


def is_running(pid: int) -> bool:
    """Whether a process is alive: one that waits to be reaped is not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_childs_environment_has_no_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    ended = run(tmp_path, "import json, os; print(json.dumps(dict(os.environ)))")
    seen = json.loads(ended.output)
    assert "OPENAI_API_KEY" not in seen
    assert "sk-secret" not in seen.values()
    assert seen["PATH"] == os.environ["PATH"]


@pytest.mark.parametrize(
    ("left", "record"),
    [('{"status": "passed"}', {"status": "passed"}), ('{"status": "pas', None), ("[1]", None)],
)
def test_a_record_counts_only_whole(tmp_path: Path, left: str, record: dict[str, str] | None) -> None:
    path = tmp_path / "record.json"
    ended = run(tmp_path, f"from pathlib import Path; Path({str(path)!r}).write_text({left!r})", record=path)
    assert ended.record == record
