"""Proves that a target is worth passing: `python -m kernelgen.targets.check TASK RECORD`, on a CPU.

On every smoke shape and kind of input: the declared form, a reference that repeats itself and leaves its inputs alone,
the reference's own answer accepted, every answer of `trivial` and every wrong form refused; over all shapes: seeds and
kinds that differ, costs that make sense. TASK is a `Task` as JSON; RECORD receives the findings, or `error`, the
sentence that says why nothing could be checked. What a target's code raises is a finding. It compiles and runs no
kernel: the ladder does. A target that passes can still be too weak in ways only its author can think of.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

from kernelgen.errors import KernelgenError
from kernelgen.targets.code import MODULE_FAULTS, TargetCode, load_code
from kernelgen.targets.extents import extent
from kernelgen.targets.trivial import ANSWERS, Case, Outputs, same

SEED, OTHER_SEED = 20_240_229, 31_415_926
# may pass at a tiny shape, where it does not show; it must not at every shape of a kind
NEED_NOT_SHOW_EVERYWHERE = ("lower precision",)
# a line names this many faults, and counts the others
FAULTS_SHOWN = 2

Dims = dict[str, int]
Spec = tuple[str, str, tuple[str | int, ...]]


@dataclass(frozen=True)
class Task:
    """What the check needs of a target's yaml."""

    module: str
    """The target's Python: a dotted name, or `file.py` in `folder`."""
    folder: str
    """Where the yaml lies."""
    inputs: list[Spec]
    """Name, dtype and shape of each tensor passed, in order."""
    scalars: dict[str, str]
    """`float` or `int` by the name of each number passed."""
    outputs: list[Spec]
    """Name, dtype and shape of each tensor returned, in order."""
    smoke: dict[str, Dims]
    """Tiny shapes: what is run here."""
    shapes: dict[str, Dims]
    """All shapes: what costs are counted at."""
    kinds: list[str]
    """Kinds of inputs."""
    tolerance: dict[str, tuple[float, float]]
    """rtol and atol by output."""


@dataclass
class Findings:
    """What was found, by check: how often it was made, and what was wrong."""

    made: dict[str, int] = field(default_factory=dict)
    """Number of times each check was made."""
    faults: dict[str, list[str]] = field(default_factory=dict)
    """Sentences by check."""

    def add(self, check: str, fault: str | None) -> None:
        """Note one making of a check; None where nothing was wrong."""
        self.made[check] = self.made.get(check, 0) + 1
        if fault is not None:
            self.faults.setdefault(check, []).append(fault)

    def lines(self) -> list[dict[str, str]]:
        """Each check with its status and a note."""
        found = []
        for check, count in self.made.items():
            faults = self.faults.get(check, [])
            note = "; ".join(faults[:FAULTS_SHOWN]) if faults else f"{count} of {count}"
            if len(faults) > FAULTS_SHOWN:
                note += f"; and {len(faults) - FAULTS_SHOWN} more"
            found.append({"name": check, "status": "failed" if faults else "passed", "note": note})
        return found


def main(argv: list[str]) -> int:
    """Check the target of a task file and write the record; `argv` is both files."""
    task, record = (Path(name) for name in argv)
    try:
        found: dict[str, Any] = {"checks": check(Task(**json.loads(task.read_text(encoding="utf-8")))).lines()}
    except KernelgenError as error:
        found = {"error": str(error)}
    record.write_text(json.dumps(found), encoding="utf-8")
    return 0


def check(task: Task) -> Findings:
    """Make every check. Raises ConfigError where the target's module cannot be loaded."""
    code = load_code(task.module, Path(task.folder))
    found = Findings()
    prints: dict[tuple[str, str], str] = {}
    shown: dict[str, dict[str, bool]] = {name: {} for name in NEED_NOT_SHOW_EVERYWHERE}
    for shape, kind in ((shape, kind) for shape in task.smoke for kind in task.kinds):
        try:
            prints[shape, kind] = _check_case(task, code, shape, kind, found, shown)
        except MODULE_FAULTS as error:
            found.add("runs", f"{shape}, {kind}: {type(error).__name__}: {' '.join(str(error).split())}")
        else:
            found.add("runs", None)
    for name, refused in shown.items():
        for kind, once in refused.items():
            found.add(f"refuses {name}", None if once else f"{kind} inputs: accepted at every smoke shape")
    _check_kinds_differ(task, prints, found)
    try:
        _check_costs(task, code, found)
    except MODULE_FAULTS as error:
        found.add("costs", f"{type(error).__name__}: {' '.join(str(error).split())}")
    return found


def hold_to_reference(
    entry_point: Any,
    module: tuple[str, str | None],
    smoke: dict[str, Dims],
    kinds: tuple[str, ...],
    tolerance: dict[str, tuple[float, float]],
    device: str,
) -> None:
    """Raise AssertionError, naming shape, kind and place, where a kernel is not the reference on a smoke shape."""
    code = load_code(module[0], Path(module[1]) if module[1] else None)
    for shape, dims in smoke.items():
        for seed, kind in enumerate(kinds):
            inputs = code.make_inputs(dims, kind, seed, device)
            wrong = code.compare(inputs, code.reference(**inputs), entry_point(**inputs), tolerance)
            if wrong:
                raise AssertionError(f"shape {shape}, {kind} inputs: {'; '.join(wrong)}")


def _check_case(
    task: Task, code: TargetCode, shape: str, kind: str, found: Findings, shown: dict[str, dict[str, bool]]
) -> str:
    """Make the checks of one shape and kind; the fingerprint of its inputs."""
    dims, place = task.smoke[shape], f"{shape}, {kind}"
    inputs, again, others = (code.make_inputs(dims, kind, seed, "cpu") for seed in (SEED, SEED, OTHER_SEED))
    before = fingerprint(inputs)
    expected = code.reference(**inputs)
    for fault in _form_faults(task, dims, inputs, expected):
        found.add("form", f"{place}: {fault}")
    if "form" in found.faults:
        return before
    found.add("form", None)
    untouched = fingerprint(inputs) == before
    found.add("reference leaves its inputs alone", None if untouched else f"{place}: they changed")
    repeats = fingerprint(again) == before and _all_same(code.reference(**again), expected)
    found.add("deterministic", None if repeats else f"{place}: a second run with the same seed differs")
    varied = fingerprint(others) != before
    found.add("seeds differ", None if varied else f"{place}: seeds {SEED} and {OTHER_SEED} make the same inputs")
    copy = tuple(output.clone() for output in expected)
    wrong = code.compare(inputs, expected, copy, task.tolerance)
    found.add("accepts the reference", f"{place}: {wrong[0]}" if wrong else None)
    case = Case(shape, kind, inputs, expected, code.reference(**others), code.reference)
    _check_refusals(task, code, case, found, shown)
    return before


def _check_refusals(
    task: Task, code: TargetCode, case: Case, found: Findings, shown: dict[str, dict[str, bool]]
) -> None:
    """Every wrong answer and every wrong form must be refused."""
    place = f"{case.shape}, {case.kind}"
    for form, got in _wrong_forms(case.expected).items():
        wrong = code.compare(case.inputs, case.expected, got, task.tolerance)
        found.add("refuses wrong forms", None if wrong else f"{place}: accepted {form}")
    for name, make in ANSWERS.items():
        answer = make(case)
        if answer is None or _all_same(answer, case.expected):
            # nothing to make it of, or by chance right here
            continue
        refused = bool(code.compare(case.inputs, case.expected, answer, task.tolerance))
        if name in shown:
            shown[name][case.kind] = shown[name].get(case.kind, False) or refused
        else:
            found.add(f"refuses {name}", None if refused else f"{place}: accepted")


def _wrong_forms(expected: Outputs) -> dict[str, Any]:
    """The right answer in forms that are not the declared one."""
    import torch

    spread = torch.stack([expected[0], expected[0]], dim=-1)[..., 0]
    forms = {"a list": list(expected), "an output left out": expected[:-1], "None": None}
    forms["another dtype"] = (expected[0].double() if expected[0].dtype != torch.float64 else expected[0].float(),
                              *expected[1:])  # fmt: skip
    forms["an output one row short"] = (expected[0][:-1], *expected[1:])
    if expected[0].numel() > 1:
        forms["an output that is not contiguous"] = (spread, *expected[1:])
    return forms


def _form_faults(task: Task, dims: Dims, inputs: dict[str, Any], expected: Any) -> Iterator[str]:
    """Where inputs or the reference's outputs are not as the yaml declares them."""
    names = [name for name, _, _ in task.inputs] + list(task.scalars)
    if list(inputs) != names:
        yield f"make_inputs gives {', '.join(inputs)}; the yaml declares {', '.join(names)}"
        return
    if not isinstance(expected, tuple) or len(expected) != len(task.outputs):
        yield f"reference must return a tuple of {len(task.outputs)} tensors"
        return
    tensors = [(spec, inputs[spec[0]]) for spec in task.inputs]
    for (name, dtype, shape), tensor in [*tensors, *zip(task.outputs, expected, strict=True)]:
        wanted = [extent(part, dims) for part in shape]
        if str(tensor.dtype) != f"torch.{dtype}" or list(tensor.shape) != wanted or not tensor.is_contiguous():
            yield f"{name} is {tensor.dtype} {list(tensor.shape)}; the yaml declares {dtype} {wanted}, contiguous"
    for name, kind in task.scalars.items():
        if type(inputs[name]).__name__ != kind:
            yield f"{name} is a {type(inputs[name]).__name__}; the yaml declares {kind}"


def _check_kinds_differ(task: Task, prints: dict[tuple[str, str], str], found: Findings) -> None:
    """Two kinds that make the same inputs at every smoke shape are one kind."""
    for one, other in combinations(task.kinds, 2):
        shapes = [shape for shape in task.smoke if (shape, one) in prints and (shape, other) in prints]
        differ = any(prints[shape, one] != prints[shape, other] for shape in shapes)
        found.add("kinds differ", None if differ else f"{one} and {other} make the same inputs at every smoke shape")


def _check_costs(task: Task, code: TargetCode, found: Findings) -> None:
    """Counts are positive and repeat; where one dimension alone differs, FLOPs and bytes do not go opposite ways."""
    counts = {name: (code.flops(dims), code.bytes_moved(dims)) for name, dims in task.shapes.items()}
    for name, (flops, moved) in counts.items():
        sound = all(isinstance(count, int | float) and math.isfinite(count) and count > 0 for count in (flops, moved))
        again = (code.flops(task.shapes[name]), code.bytes_moved(task.shapes[name]))
        fault = f"{name}: flops {flops}, bytes {moved}: both must be finite, above 0 and repeat"
        found.add("costs", None if sound and again == (flops, moved) else fault)
    if found.faults.get("costs"):
        return
    for one, other in combinations(counts, 2):
        if _differing(task.shapes[one], task.shapes[other]) == 1:
            work, traffic = (counts[other][i] - counts[one][i] for i in (0, 1))
            fault = f"from {one} to {other} flops change by {work:g} and bytes by {traffic:g}"
            found.add("costs", fault if work * traffic < 0 or (work == 0 and traffic == 0) else None)


def _differing(one: Dims, other: Dims) -> int:
    """How many dimensions differ; more than one also where they are not the same ones."""
    return sum(one[name] != other[name] for name in one) if one.keys() == other.keys() else len(one) + len(other)


def _all_same(answer: Outputs, expected: Outputs) -> bool:
    return all(same(one, other) for one, other in zip(answer, expected, strict=True))


def fingerprint(inputs: dict[str, Any]) -> str:
    """A digest of all inputs, values and scalars."""
    import hashlib

    import torch

    digest = hashlib.sha256()
    for name, value in inputs.items():
        digest.update(name.encode())
        if isinstance(value, torch.Tensor):
            digest.update(memoryview(value.contiguous().reshape(-1).view(torch.uint8).numpy()))
        else:
            digest.update(repr(value).encode())
    return digest.hexdigest()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
