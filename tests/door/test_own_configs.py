"""A user's own target, hardware and state in a folder of theirs, from a checkout and from an installed wheel."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
CODE = """
def make_inputs(dims, kind, seed, device):
    import torch

    generator = torch.Generator(device=device).manual_seed(seed)
    return {"x": torch.randn(dims["N"], generator=generator, device=device)}


def reference(x):
    return (2 * x,)


def compare(inputs, expected, got, tolerance):
    rtol, atol = tolerance["y"]
    wrong = (got[0] - expected[0]).abs().max().item()
    return [f"y: off by {wrong}"] if wrong > atol else []


def flops(dims):
    return float(dims["N"])


def bytes_moved(dims):
    return 8.0 * dims["N"]
"""
CHAMPION = """import torch
import triton
import triton.language as tl


@triton.jit
def double_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, 2 * tl.load(x_ptr + at, mask=at < n), mask=at < n)


def double(x):
    y = torch.empty_like(x)
    double_kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
    return (y,)
"""
TARGET = {
    "name": "double", "title": "doubling", "summary": "y = 2 x", "entry_point": "double",
    "inputs": [{"name": "x", "dtype": "float32", "shape": ["N"], "doc": "values"}],
    "outputs": [{"name": "y", "dtype": "float32", "shape": ["N"], "doc": "doubled"}],
    "shapes": {"smoke": {"n5": {"N": 5}}, "tune": {"n1m": {"N": 1048576}}, "heldout": {"n2m": {"N": 2097152}}},
    "profile_shape": "n1m", "input_kinds": ["plain"], "calls_per_step": 1,
    "tolerance": {"y": {"rtol": 0, "atol": 0, "reason": "exact"}},
    "module": "double.py", "champion": "double_champion.py",
}  # fmt: skip
CSV = (
    '"ID","Kernel Name","Block Size","Grid Size","CC","gpu__time_duration.sum","dram__bytes_read.sum",'
    '"dram__bytes_write.sum","sm__throughput.avg.pct_of_peak_sustained_elapsed",'
    '"gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed","sm__warps_active.avg.pct_of_peak_sustained_active"\n'
    '"","","","","","ns","byte","byte","%","%","%"\n'
    '"0","double_kernel","(128, 1, 1)","(4096, 1, 1)","9.0","12000","4194304","4194304","20.5","61.5","70.5"\n'
)


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A folder with a target, its Python and champion beside its yaml, a hardware and a state."""
    folder = tmp_path / "my configs"
    for group in ("target", "hardware", "state"):
        (folder / group).mkdir(parents=True)
    (folder / "target" / "double.yaml").write_text(yaml.safe_dump(TARGET))
    (folder / "target" / "double.py").write_text(CODE)
    (folder / "target" / "double_champion.py").write_text(CHAMPION)
    hardware = yaml.safe_load((ROOT / "conf" / "hardware" / "h200.yaml").read_text())
    (folder / "hardware" / "h200_pcie.yaml").write_text(yaml.safe_dump({**hardware, "name": "h200_pcie"}))
    (tmp_path / "p.csv").write_text(CSV)
    return folder


def loop(folder: Path, own: Path, environment: dict[str, str]) -> dict[str, object]:
    """Seed, import, generate and replay for the user's target on the user's hardware; the generate record."""

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "kernelgen.cli", *arguments, "--config-dir", str(own)],
            cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run("constraints", "seed", "hardware=h200_pcie")
    run("profile", "import", "p.csv", "target=double", "hardware=h200_pcie", "shape=n1m")
    asked = ("generate", "judge=none", "target=double", "hardware=h200_pcie", "state=0")
    record: dict[str, object] = json.loads(run(*asked, "--json"))
    untold = "policy.attempts_shown=0"  # the playbook has few configurations here, and would not try them twice
    run(*asked, "-m", untold, "hydra/launcher=joblib")
    assert "every byte is equal" in run("replay", "--all")
    return record


def test_a_users_own_target_and_hardware_work_from_a_checkout(tmp_path: Path, own: Path) -> None:
    record = loop(tmp_path, own, {})
    (path,) = record["files"]  # type: ignore[misc]
    text = Path(path).read_text()
    assert f"KERNELGEN_TARGET_FOLDER = {str(own / 'target')!r}" in text
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "interpreter: passed" in done.stdout


def test_and_from_an_installed_wheel(tmp_path: Path, own: Path) -> None:
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    source = tmp_path / "source"
    ignored = shutil.ignore_patterns(".venv", ".git", "demo", "__pycache__", ".*_cache", "scripts")
    shutil.copytree(ROOT, source, ignore=ignored)
    build = [*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(tmp_path / "dist"), str(source)]
    subprocess.run(build, check=True)
    (wheel,) = (tmp_path / "dist").glob("kernelgen-*.whl")
    site = tmp_path / "site"
    subprocess.run([*pip, "install", "--no-deps", "--target", str(site), str(wheel)], check=True)
    assert (site / "kernelgen" / "conf" / "config.yaml").is_file()
    shutil.rmtree(source)
    loop(tmp_path, own, {"PYTHONPATH": str(site)})


def test_a_choice_that_stands_in_two_folders_is_refused(tmp_path: Path, own: Path) -> None:
    shutil.copy(ROOT / "conf" / "hardware" / "h200.yaml", own / "hardware" / "h200.yaml")
    done = subprocess.run(
        [sys.executable, "-m", "kernelgen.cli", "constraints", "seed", "hardware=h200", "--config-dir", str(own)],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "rename yours" in done.stderr
