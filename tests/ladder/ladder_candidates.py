"""Candidate files for the adder target, around a model's part."""

from __future__ import annotations

import textwrap
from pathlib import Path

HERE = Path(__file__).resolve().parent

DOOR = """\
if __name__ == "__main__":
    import sys

    from kernelgen.ladder.selftest import main

    sys.exit(main(__file__))
"""
TEST = f"""
KERNELGEN_TARGET_MODULE = "adder_target.py"
KERNELGEN_TARGET_FOLDER = {str(HERE)!r}
KERNELGEN_ENTRY_POINT = "add"
KERNELGEN_ARCH = 90
KERNELGEN_TUNE = {{"n_1m": {{"N": 1048576}}}}
KERNELGEN_SMOKE = {{"n_200": {{"N": 200}}}}
KERNELGEN_KINDS = ("plain", "large")
KERNELGEN_DSL = "DSL_HERE"


def test_correctness(device):
    from pathlib import Path

    from kernelgen.targets.code import load_code

    target = load_code(KERNELGEN_TARGET_MODULE, Path(KERNELGEN_TARGET_FOLDER))
    for kind in KERNELGEN_KINDS:
        inputs = target.make_inputs(KERNELGEN_SMOKE["n_200"], kind, 7, device)
        got = add(**inputs)
        wrong = target.compare(inputs, target.reference(**inputs), got, {{"out": (1e-6, 0.0)}})
        assert not wrong, "; ".join(wrong)
"""


def write_candidate(folder: Path, models_part: str, *, name: str = "g1", dsl: str = "triton") -> Path:
    """Write a candidate file and return its path."""
    path = folder / f"{name}.py"
    path.write_text(DOOR + textwrap.dedent(models_part) + TEST.replace("DSL_HERE", dsl), encoding="utf-8")
    return path
