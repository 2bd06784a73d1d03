"""Candidates for the adder target, and scripts in processes of their own."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from ladder_candidates import write_candidate

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def candidate(tmp_path: Path) -> Callable[..., Path]:
    """Write a candidate file around a model's part."""
    return partial(write_candidate, tmp_path)


@pytest.fixture(scope="session")
def run_script(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    """Run Python source in a fresh process and return the JSON it prints last."""

    def run(source: str, *arguments: str, **variables: str) -> Any:
        folder = tmp_path_factory.mktemp("script")
        script = folder / "script.py"
        script.write_text(textwrap.dedent(source), encoding="utf-8")
        environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "TRITON_CACHE_DIR": str(folder / "cache")}
        done = subprocess.run(
            [sys.executable, script, *arguments],
            env={**environment, **variables},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return run
