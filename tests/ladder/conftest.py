"""Candidates for the adder target, and scripts in processes of their own."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]

DOOR = """\
if __name__ == "__main__":
    import sys

    from kernelgen.ladder.selftest import main

    sys.exit(main(__file__))
"""
TEST = f"""
TARGET_MODULE = "adder_target.py"
TARGET_FOLDER = {str(HERE)!r}
ENTRY_POINT = "add"
ARCH = 90
TUNE = {{"n_1m": {{"N": 1048576}}}}
SMOKE = {{"n_200": {{"N": 200}}}}
KINDS = ("plain", "large")
DSL = "DSL_HERE"


def test_correctness(device):
    from pathlib import Path

    from kernelgen.targets.code import load_code

    target = load_code(TARGET_MODULE, Path(TARGET_FOLDER))
    for kind in KINDS:
        inputs = target.make_inputs(SMOKE["n_200"], kind, 7, device)
        got = add(**inputs)
        wrong = target.compare(inputs, target.reference(**inputs), got, {{"out": (1e-6, 0.0)}})
        assert not wrong, "; ".join(wrong)
"""


@pytest.fixture
def candidate(tmp_path: Path) -> Callable[..., Path]:
    """Write a candidate file around a model's part."""

    def write(models_part: str, *, name: str = "g1", dsl: str = "triton") -> Path:
        path = tmp_path / f"{name}.py"
        path.write_text(DOOR + textwrap.dedent(models_part) + TEST.replace("DSL_HERE", dsl), encoding="utf-8")
        return path

    return write


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
