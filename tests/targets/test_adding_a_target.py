"""The recipe of docs/adding-a-target.md, followed to the letter: its files written, its commands run."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECIPE = (ROOT / "docs" / "adding-a-target.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", RECIPE, flags=re.MULTILINE | re.DOTALL)
# what ncu writes of one launch, for a machine that has no GPU to take it on
PROFILE = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device",'
    '"CC",'
    '"dram__bytes.sum","gpu__time_duration.sum","gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"\n'
    '"","","","","","","","","","","","byte","ns","%"\n'
    '"0","7","python","box","scale_kernel","1","7","(128, 1, 1)","(4096, 1, 1)","0","9.0","16793600","6200","62.5"\n'
)


@pytest.fixture(scope="module")
def followed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, subprocess.CompletedProcess[str]]]:
    """The folder in which the recipe was followed, and how each command ended."""
    folder = tmp_path_factory.mktemp("recipe")
    for language, text in BLOCKS:
        if language in ("yaml", "python"):
            path = folder / re.fullmatch(r"# (\S+)", text.splitlines()[0])[1]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    (folder / "scale_rows.csv").write_text(PROFILE, encoding="utf-8")
    commands = [line for language, text in BLOCKS if language == "bash" for line in text.splitlines()]
    return folder, {command: _run(command, folder) for command in commands}


def _run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    program, *arguments = shlex.split(command)
    assert program == "kernelgen"
    return subprocess.run(
        [sys.executable, "-m", "kernelgen.cli", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_command_of_the_recipe_succeeds(
    followed: tuple[Path, dict[str, subprocess.CompletedProcess[str]]],
) -> None:
    _, ended = followed
    assert len(ended) == 5
    assert {command: done.stderr for command, done in ended.items() if done.returncode != 0} == {}


def test_the_check_judges_python_and_champion(
    followed: tuple[Path, dict[str, subprocess.CompletedProcess[str]]],
) -> None:
    _, ended = followed
    lines = ended["kernelgen target check scale_rows --config-dir mine"].stdout.splitlines()
    judged = {line.split(":")[0].strip() for line in lines if ": passed" in line}
    assert {
        "deterministic",
        "seeds differ",
        "kinds differ",
        "costs",
        "refuses zeros",
        "refuses lower precision",
    } <= judged
    assert {"champion compile", "champion interpreter"} <= judged


def test_generating_for_it_writes_a_candidate_that_names_it(
    followed: tuple[Path, dict[str, subprocess.CompletedProcess[str]]],
) -> None:
    folder, _ = followed
    (candidate,) = (folder / "scripts" / "kernels" / "scale_rows").glob("*.py")
    text = candidate.read_text(encoding="utf-8")
    assert "def scale_rows(" in text
    assert "scale_rows.py" in text


def test_a_target_made_too_weak_fails_the_check(
    followed: tuple[Path, dict[str, subprocess.CompletedProcess[str]]], tmp_path: Path
) -> None:
    folder, _ = followed
    weak = tmp_path / "mine" / "target"
    weak.mkdir(parents=True)
    for file in (folder / "mine" / "target").iterdir():
        if file.is_file():
            (weak / file.name).write_text(file.read_text(encoding="utf-8").replace("rtol: 8.0e-3", "rtol: 10.0"))
    done = _run("kernelgen target check scale_rows --config-dir mine", tmp_path)
    assert done.returncode == 1
    assert "refuses zeros: failed: r1, plain: accepted; r1, stressed: accepted; and 2 more" in done.stdout
    assert "refuses lower precision: failed: plain inputs: accepted at every smoke shape" in done.stdout
    assert "failed: scale_rows: " in done.stdout
