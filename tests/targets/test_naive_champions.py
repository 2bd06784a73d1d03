"""The naive champions compute their targets under Triton's interpreter and compile without a GPU.

Each check has a process of its own: the interpreter must be chosen before Triton is imported, and a compile needs a
stand-in for the driver that is not here.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
TARGETS = tuple(sorted(path.stem for path in (ROOT / "conf" / "target").glob("*.yaml") if path.stem != "auto"))

INTERPRET = """
import importlib, json, sys
from kernelgen.ladder import interpreter
from kernelgen.targets.code import load_code
interpreter.install()
target = json.loads(sys.stdin.read())
code = load_code(target["module"])
champion = importlib.import_module("kernelgen.targets.champions." + target["name"])
tolerance = {name: (t["rtol"], t["atol"]) for name, t in target["tolerance"].items()}
faults = {}
for shape, dims in target["shapes"]["smoke"].items():
    for kind in target["input_kinds"]:
        inputs = code.make_inputs(dims, kind, 13, "cpu")
        got = getattr(champion, target["entry_point"])(**inputs)
        faults[f"{shape} {kind}"] = code.compare(inputs, code.reference(**inputs), got, tolerance)
print(json.dumps(faults))
"""

COMPILE = """
import importlib, json, sys
from kernelgen.ladder import offline
task = json.loads(sys.stdin.read())
log = offline.install(task["compute_capability"])
from kernelgen.ladder.inputs import shapes_only
from kernelgen.targets.code import load_code
tuned = []
for target in task["targets"]:
    champion = importlib.import_module("kernelgen.targets.champions." + target["name"])
    dims = target["shapes"]["tune"][target["profile_shape"]]
    getattr(champion, target["entry_point"])(**shapes_only(load_code(target["module"]), dims, "plain", 1))
    tuned += champion.AUTOTUNE_CONFIGS
builds = [(b.kernel, b.spills, b.shared_bytes, b.error) for b in log.builds() + log.failures]
print(json.dumps([sorted(tuned), builds]))
"""


def _config(group: str, name: str) -> dict[str, Any]:
    return yaml.safe_load((ROOT / "conf" / group / f"{name}.yaml").read_text(encoding="utf-8"))


def _run(program: str, task: dict[str, Any], **environment: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps(task),
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", TARGETS)
def test_champion_is_right_under_the_interpreter_for_every_smoke_shape_and_kind(name: str) -> None:
    target = _config("target", name)
    faults = _run(INTERPRET, target, TRITON_INTERPRET="1")
    assert len(faults) == len(target["shapes"]["smoke"]) * len(target["input_kinds"])
    assert [fault for found in faults.values() for fault in found] == []


# the A100 has no fp8 instructions: the champions must not need any
@pytest.mark.parametrize("hardware", ["h200", "a100"])
def test_champions_compile_without_a_gpu_and_fit(hardware: str, tmp_path: Path) -> None:
    card = _config("hardware", hardware)
    task = {
        "compute_capability": card["compute_capability"],
        "targets": [_config("target", name) for name in TARGETS],
    }
    tuned, builds = _run(COMPILE, task, TRITON_INTERPRET="0", TRITON_CACHE_DIR=str(tmp_path))
    assert {kernel for kernel, *_ in builds} == set(tuned)
    for kernel, spills, shared_bytes, error in builds:
        assert error is None, kernel
        assert spills == 0, kernel
        assert shared_bytes <= card["shared_bytes_per_block"]["value"], kernel
