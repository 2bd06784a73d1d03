"""What `kernelgen target check` does to one target: its Python first, then its naive champion on the ladder.

Both run in processes of their own: what they do cannot end or slow this one. The champion's test is the candidates':
the smoke shapes and all kinds against the reference.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from kernelgen.config import Hardware, Target, TensorSpec
from kernelgen.errors import BadInput, ConfigError, HarnessError
from kernelgen.generation.briefs import binding
from kernelgen.ladder import child, selftest
from kernelgen.ladder.declaration import PREFIX
from kernelgen.ladder.install import KERNELS_LINE
from kernelgen.ladder.selftest import Check
from kernelgen.targets.code import champion_source
from kernelgen.targets.findings import Task

TIMEOUT_S = 600.0
# one thread: the shapes are tiny, and several targets may be checked at once
CHILD_VARIABLES = {"OMP_NUM_THREADS": "1"}
LADDER_CHECKS = ("compile", "interpreter", "gpu")
CHAMPION_TEST = """
def test_correctness(device="cuda"):
    from kernelgen.targets.check import hold_to_reference

    target = ({prefix}TARGET_MODULE, {prefix}TARGET_FOLDER)
    hold_to_reference({entry_point}, target, {prefix}SMOKE, {prefix}KINDS, {prefix}TOLERANCE, device)
"""


def checks(target: Target, hardware: Hardware, folder: Path) -> Iterator[Check]:
    """The checks of a target's Python, then those of its naive champion by the ladder.

    Raises BadInput where torch is missing, ConfigError where the target's Python or champion cannot be loaded.
    """
    if find_spec("torch") is None:
        raise BadInput(f"Checking a target needs torch, which is not installed: {KERNELS_LINE}")
    yield from _python_checks(target, folder)
    with tempfile.TemporaryDirectory(prefix="kernelgen-target-") as name:
        file = Path(name, f"{target.name}.py")
        file.write_text(_champion_file(target, hardware, folder), encoding="utf-8")
        made = selftest.checks(file, timeout_s=TIMEOUT_S)
    # packages that are there are no check of the target
    yield from (
        Check(f"champion {check.name}", check.status, check.note, check.detail, check.builds)
        for check in made
        if check.status == "not here" or check.name in LADDER_CHECKS
    )


def _python_checks(target: Target, folder: Path) -> list[Check]:
    """What `kernelgen.targets.check` finds, in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="kernelgen-target-") as name:
        file = Path(name, "task.json")
        file.write_text(json.dumps(_task(target, folder)), encoding="utf-8")
        ended = child.python(
            "kernelgen.targets.check",
            [str(file)],
            timeout_s=TIMEOUT_S,
            interpreter=sys.executable,
            variables=CHILD_VARIABLES,
        )
    if ended.failure is not None or ended.record is None:
        return [Check("python", "failed", ended.failure or "ended before the check was done", ended.output)]
    if "error" in ended.record:
        raise ConfigError(str(ended.record["error"]))
    try:
        return [Check(**found) for found in ended.record["checks"]]
    except (KeyError, TypeError) as error:
        raise HarnessError(f"The check of {target.name} left a record of another form: {error}") from error


def _task(target: Target, folder: Path) -> dict[str, Any]:
    shapes = target.shapes
    return asdict(
        Task(
            module=target.module,
            folder=str(folder),
            inputs=[_spec(tensor) for tensor in target.inputs],
            scalars={scalar.name: scalar.type for scalar in target.scalars},
            outputs=[_spec(tensor) for tensor in target.outputs],
            smoke=shapes.smoke,
            shapes={**shapes.tune, **shapes.smoke, **shapes.heldout},
            kinds=list(target.input_kinds),
            tolerance={name: (bound.rtol, bound.atol) for name, bound in target.tolerance.items()},
        )
    )


def _spec(tensor: TensorSpec) -> tuple[str, str, list[str | int]]:
    return tensor.name, tensor.dtype, list(tensor.shape)


def _champion_file(target: Target, hardware: Hardware, folder: Path) -> str:
    """The naive champion with the constants and the test that the ladder's self-test reads of a candidate."""
    bound = binding(target, hardware, folder)
    constants = {
        "TARGET_MODULE": bound.module,
        "TARGET_FOLDER": bound.folder,
        "ENTRY_POINT": target.entry_point,
        "ARCH": bound.compute_capability,
        "DSL": "triton",
        "SMOKE": bound.smoke,
        "TUNE": bound.tune,
        "KINDS": bound.kinds,
        "TOLERANCE": bound.tolerance,
    }
    lines = [f"{PREFIX}{name} = {value!r}" for name, value in constants.items()]
    test = CHAMPION_TEST.format(prefix=PREFIX, entry_point=target.entry_point)
    return "\n".join([champion_source(target.champion, folder), *lines, test])
