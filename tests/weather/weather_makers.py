"""A working folder for bad weather, and the command line run in it as its users do: in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

PROFILE = Path(__file__).resolve().parents[2] / "examples" / "profiles" / "mla_decode_fp8.ncu_raw.csv"
REGION = ("target=mla_decode_fp8", "hardware=h200")
GENERATE = ("generate", "judge=none", *REGION[:1], "state=1")
LIMITED = "import resource, sys\nresource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))\n"
RUN = """
import signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
from kernelgen import cli
sys.exit(cli.main())
"""
LONGEST_S = 120


Done = subprocess.CompletedProcess[str]


def run(folder: Path, *arguments: str | bytes, limit: int | None = None, root: bool = True) -> Done:
    """One command in a folder; `limit` is the longest file in bytes that the process may write, as on a full disk.

    Without `root` the process gives up the right to write where permissions forbid it.
    """
    code = (LIMITED.format(limit=limit) if limit is not None else "") + RUN
    command: list[str | bytes] = [sys.executable, "-c", code, *arguments]
    if not root and os.geteuid() == 0:
        command = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--reuid=65534", "--clear-groups", *command]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, errors="surrogateescape", timeout=LONGEST_S, check=False
    )


def seed(folder: Path) -> Path:
    """Constraints and a profile: all that a generation needs."""
    for arguments in (("constraints", "seed"), ("profile", "import", str(PROFILE), *REGION, "shape=b64_s4096_h64")):
        done = run(folder, *arguments)
        assert done.returncode == 0, done.stderr
    return folder


def one_sentence(done: Done, *names: str) -> str:
    """What a refused command told: one line that names these, exit code 2, no traceback."""
    assert done.returncode == 2, (done.returncode, done.stdout, done.stderr)
    assert done.stderr.startswith("kernelgen: "), done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    for name in names:
        assert name in done.stderr, (name, done.stderr)
    return done.stderr


def files(folder: Path) -> Sequence[str]:
    """Every file in it, by relative path."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
