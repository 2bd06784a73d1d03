"""Asks the naive judge about a candidate, and believes it as its callers do.

One server process is shared by all candidates; each gets a fresh folder, and a judge of its own forked for it. A judge
on a GPU is started anew each time.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import sqlite3
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.attacks.attack import Attack

ROOT = Path(__file__).resolve().parents[2]
MODULE = "tests.attacks.naive_judge"
LIMIT = 1e-2
# what a careless machine has lying about: a key, and a folder of other people's work
VARIABLES = {"SOLVER_API_KEY": "not-a-real-key", "BENCHMARK_RUN": "1"}


@dataclass(frozen=True)
class Believed:
    """What a caller of the naive judge takes away."""

    accepted: bool
    """Whether it takes the candidate for correct."""
    milliseconds: float | None
    """What it takes for its time; None where it was told none."""
    output: str
    """All that was printed."""


class NaiveJudge:
    """The server of naive judges; a context manager."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._count = 0
        environment = {**os.environ, **VARIABLES, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
        self._environment = {**environment, "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", MODULE, "serve"],
            cwd=folder,
            env={**self._environment, "TRITON_INTERPRET": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> NaiveJudge:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=10)
        self._process.stdout.close()

    def ask(self, attack: Attack, source: str, variables: dict[str, str] | None = None) -> Believed:
        """Have a candidate of an attack's target judged as the attack's naive judge does it."""
        folder = self._prepare(attack, source)
        task = self._task(attack, folder, variables or {})
        code = 1
        for _ in range(attack.naive.runs):
            for name in ("printed.txt", "piped.txt"):
                (folder / name).write_text("", encoding="utf-8")
            # a second run in the same folder is a fresh process, as it would be
            code = self._fork(task) if attack.naive.runs == 1 and not attack.gpu else self._start(task, attack.gpu)
        return believe(attack, task["token"], code, folder)

    def _prepare(self, attack: Attack, source: str) -> Path:
        """The judge's working folder."""
        self._count += 1
        folder = self._folder / f"naive{self._count}"
        folder.mkdir()
        (folder / f"candidate.{'cu' if attack.language == 'cuda' else 'py'}").write_text(source, encoding="utf-8")
        (folder / "tolerance.json").write_text(json.dumps(LIMIT), encoding="utf-8")
        target = Path(attack.goal.folder or "", attack.goal.module)
        for name in ("reference.py", "inputs.py"):
            shutil.copy(target, folder / name)
        (folder / "others").mkdir()
        (folder / "others" / "g1.py").write_text(attack.twin, encoding="utf-8")
        with sqlite3.connect(folder / "events.db") as log:
            log.execute("CREATE TABLE texts (text)")
            log.execute("INSERT INTO texts VALUES (?)", (target.read_text(encoding="utf-8"),))
        log.close()
        return folder

    def _task(self, attack: Attack, folder: Path, variables: dict[str, str]) -> dict[str, Any]:
        naive, goal = attack.naive, attack.goal
        shapes = {**goal.smoke, **goal.edge, **goal.heldout, **goal.tune}
        return {
            **asdict(naive),
            "dims": shapes[naive.shape or next(iter(goal.tune))],
            "entry_point": attack.entry_point or goal.name,
            "folder": str(folder),
            "language": attack.language,
            "outputs": goal.outputs,
            "device": "cuda" if attack.gpu else "cpu",
            "token": secrets.token_hex(8),
            "variables": variables,
        }

    def _fork(self, task: dict[str, Any]) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(task) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def _start(self, task: dict[str, Any], gpu: bool) -> int:
        """A judge started from the working folder, as `python judge.py` is; its verdict goes into the same files."""
        folder = Path(task["folder"])
        with (folder / "printed.txt").open("ab") as printed:
            done = subprocess.run(
                [sys.executable, "-m", MODULE, json.dumps(task)],
                cwd=folder,
                env={**self._environment, **({} if gpu else {"TRITON_INTERPRET": "1"})},
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=printed,
                timeout=120,
                check=False,
            )
        return done.returncode


def believe(attack: Attack, token: str, code: int, folder: Path) -> Believed:
    """The verdict that a caller reads out of exit code, output or pipe."""
    printed = (folder / "printed.txt").read_text(encoding="utf-8", errors="replace")
    if attack.naive.believes == "exit code":
        return Believed(code == 0, None, printed)
    source, start = printed, ""
    if attack.naive.believes == "pipe":
        source = (folder / "piped.txt").read_text(encoding="utf-8", errors="replace")
    elif attack.naive.believes == "token":
        start = f"{token} "
    for line in source.splitlines():
        if line.startswith(f'{start}{{"correct"'):
            verdict = json.loads(line.removeprefix(start))
            return Believed(verdict["correct"] is True, verdict["milliseconds"], printed)
    return Believed(False, None, printed)
