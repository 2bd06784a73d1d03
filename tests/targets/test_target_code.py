"""A target's Python is found from its yaml's words, and a wrong one ends in one sentence with the mend."""

import subprocess
import sys
from pathlib import Path

import pytest

from kernelgen.errors import ConfigError
from kernelgen.targets.code import champion_source, load_code

WHOLE = """
from __future__ import annotations
from dataclasses import dataclass
@dataclass
class Sizes:
    n: int
def make_inputs(dims, kind, seed, device): return {"x": dims["N"]}
def reference(x): return (x,)
def compare(inputs, expected, got, tolerance): return []
def flops(dims): return 2.0 * dims["N"]
def bytes_moved(dims): return 4.0 * dims["N"]
"""


def test_module_by_dotted_name() -> None:
    code = load_code("kernelgen.targets.mla_decode_fp8")
    assert Path(code.module).name == "mla_decode_fp8.py"
    assert code.flops({"B": 1, "h": 1, "S": 1}) == 2 * 1088


def test_module_beside_the_yaml_and_by_absolute_path(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(WHOLE)
    assert load_code("mine.py", tmp_path).flops({"N": 3}) == 6.0
    assert load_code(str(tmp_path / "mine.py"), Path("/nowhere")).bytes_moved({"N": 3}) == 12.0


def test_files_of_one_name_are_not_taken_for_one_another(tmp_path: Path) -> None:
    for folder, factor in (("a", "2.0"), ("b", "5.0")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.py").write_text(WHOLE.replace("2.0", factor))
    assert load_code("mine.py", tmp_path / "a").flops({"N": 1}) == 2.0
    assert load_code("mine.py", tmp_path / "b").flops({"N": 1}) == 5.0


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (WHOLE.replace("def flops", "def flop"), "has no function flops\\(\\)"),
        (
            WHOLE.replace("(dims, kind, seed, device)", "(dims)"),
            "callable as make_inputs\\(dims, kind, seed",
        ),
        ("def broken(:\n", "does not import: SyntaxError"),
        ("1 / 0\n", "does not import: ZeroDivisionError"),
        ("import no_such_package\n", "needs 'no_such_package', which is not installed"),
    ],
)
def test_unusable_module_is_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "mine.py").write_text(text)
    with pytest.raises(ConfigError, match=sentence) as caught:
        load_code("mine.py", tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("module", "sentence"),
    [
        ("kernelgen.targets.no_such", "there is no module 'kernelgen.targets.no_such'"),
        ("mine.py", "there is no file .*mine.py; put it beside the target's yaml"),
        ("not a module", "neither a dotted name nor a file"),
    ],
)
def test_missing_module_is_one_sentence(tmp_path: Path, module: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        load_code(module, tmp_path)


def test_champion_is_read_and_not_imported(tmp_path: Path) -> None:
    (tmp_path / "naive.py").write_text("raise RuntimeError('imported')\n")
    assert champion_source("naive.py", tmp_path).startswith("raise")
    text = champion_source("kernelgen.targets.champions:mla_decode_fp8.py", tmp_path)
    assert "AUTOTUNE_CONFIGS" in text


@pytest.mark.parametrize(
    ("champion", "sentence"),
    [
        ("gone.py", "gone.py cannot be read; give a path relative to the yaml"),
        ("kernelgen.targets.champions:gone.py", "has no readable file 'gone.py'"),
        ("json.decoder:gone.py", "has no readable file 'gone.py'"),
        ("no_such_package:gone.py", "there is no package 'no_such_package'"),
    ],
)
def test_missing_champion_is_one_sentence(tmp_path: Path, champion: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        champion_source(champion, tmp_path)


def _without(packages: tuple[str, ...], program: str) -> subprocess.CompletedProcess[str]:
    block = f"import sys\nfor name in {packages!r}:\n    sys.modules[name] = None\n"
    return subprocess.run([sys.executable, "-c", block + program], capture_output=True, text=True, check=False)


def test_targets_judge_without_pydantic() -> None:
    program = """
from kernelgen.targets.code import load_code
for name, dims in (("moe_dispatch_384expert", {"T": 2}), ("mla_decode_fp8", {"B": 1, "S": 3, "h": 2})):
    code = load_code(f"kernelgen.targets.{name}")
    inputs = code.make_inputs(dims, "plain", 1, "cpu")
    expected = code.reference(**inputs)
    tolerance = {"weights": (1e-6, 1e-6), "out": (0.0, 0.0), "lse": (0.0, 0.0)}
    assert code.compare(inputs, expected, expected, tolerance) == []
"""
    blocked = ("pydantic", "dspy", "hydra", "omegaconf", "sqlite_utils", "yaml")
    done = _without(blocked, program)
    assert done.returncode == 0, done.stderr


def test_costs_and_champion_need_no_torch() -> None:
    program = """
from pathlib import Path
from kernelgen.targets.code import champion_source, load_code
assert load_code("kernelgen.targets.moe_dispatch_384expert").bytes_moved({"T": 16}) > 0
assert load_code("kernelgen.targets.mla_decode_fp8").flops({"B": 1, "S": 3, "h": 2}) > 0
champion_source("kernelgen.targets.champions:moe_dispatch_384expert.py", Path("."))
"""
    done = _without(("torch", "triton", "pydantic", "numpy"), program)
    assert done.returncode == 0, done.stderr
