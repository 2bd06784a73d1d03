"""Proves that a target is worth passing: `python -m kernelgen.targets.check TASK RECORD`, on a CPU.

On every smoke shape and kind of input: the declared form, a reference that repeats itself and leaves its inputs alone,
the reference's own answer accepted, every answer of `trivial` and every wrong form refused; over all shapes: seeds and
kinds that differ, costs that make sense. TASK is a `Task` as JSON; RECORD receives the findings, or `error`, the
sentence that says why nothing could be checked. What a target's code raises is a finding. It compiles and runs no
kernel: the ladder does. A target that passes can still be too weak in ways only its author can think of.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

from kernelgen.errors import KernelgenError
from kernelgen.targets.code import MODULE_FAULTS, TargetCode, load_code
from kernelgen.targets.costs import check_costs
from kernelgen.targets.extents import extent
from kernelgen.targets.findings import Dims, Findings, Spec, Task, raised
from kernelgen.targets.trivial import (
    ANSWERS,
    NEED_NOT_SHOW_EVERYWHERE,
    Case,
    Outputs,
    equal,
    same,
    wrong_forms,
)

SEED, OTHER_SEED = 20_240_229, 31_415_926


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
    checker = _Checker(task, load_code(task.module, Path(task.folder)))
    for shape in task.smoke:
        for kind in task.kinds:
            checker.check_case(shape, kind)
    checker.conclude()
    check_costs(task, checker.code, checker.found)
    return checker.found


def hold_to_reference(
    entry_point: Any,
    module: tuple[str, str | None],
    smoke: dict[str, Dims],
    kinds: tuple[str, ...],
    tolerance: dict[str, tuple[float, float]],
    device: str,
) -> None:
    """Raise AssertionError, naming shape, kind and place, where a kernel is not the reference on a smoke shape.

    `module` is the target's Python and its folder, None for a dotted name.
    """
    code = load_code(module[0], Path(module[1]) if module[1] else None)
    for shape, dims in smoke.items():
        for seed, kind in enumerate(kinds):
            inputs = code.make_inputs(dims, kind, seed, device)
            wrong = code.compare(inputs, code.reference(**inputs), entry_point(**inputs), tolerance)
            if wrong:
                raise AssertionError(f"shape {shape}, {kind} inputs: {'; '.join(wrong)}")


def fingerprint(inputs: dict[str, Any]) -> str:
    """A digest of all inputs: the bits of tensors on the CPU, the text of numbers."""
    import torch

    digest = hashlib.sha256()
    for name, value in inputs.items():
        digest.update(name.encode())
        if isinstance(value, torch.Tensor):
            digest.update(memoryview(value.contiguous().reshape(-1).view(torch.uint8).numpy()))
        else:
            digest.update(repr(value).encode())
    return digest.hexdigest()


class _Checker:
    """Walks the smoke shapes and kinds, one at a time, and keeps of each no more than its fingerprint."""

    def __init__(self, task: Task, code: TargetCode) -> None:
        self.task = task
        self.code = code
        self.found = Findings()
        self._prints: dict[tuple[str, str], str] = {}
        self._refused_once: dict[tuple[str, str], bool] = {}
        self._right_somewhere: set[str] = set()

    def check_case(self, shape: str, kind: str) -> None:
        """All checks of one shape and kind."""
        try:
            case = self._make(shape, kind)
            if case is not None:
                self._check_acceptance(case)
                self._check_refusals(case)
        except MODULE_FAULTS as error:
            self.found.add("runs", f"{shape}, {kind}: {raised(error)}")
        else:
            self.found.add("runs", None)

    def conclude(self) -> None:
        """The checks that need all cases."""
        tried = {name for name, _ in self._refused_once}
        for name in sorted(self._right_somewhere - tried):
            if f"refuses {name}" not in self.found.made:
                self.found.add(f"refuses {name}", "it is the right answer at every smoke shape of every kind")
        for (name, kind), refused in self._refused_once.items():
            self.found.add(f"refuses {name}", None if refused else f"{kind} inputs: accepted at every smoke shape")
        for one, other in combinations(self.task.kinds, 2):
            shapes = [s for s in self.task.smoke if (s, one) in self._prints and (s, other) in self._prints]
            differ = any(self._prints[shape, one] != self._prints[shape, other] for shape in shapes)
            told = f"{one} and {other} make the same inputs at every smoke shape"
            self.found.add("kinds differ", None if differ or not shapes else told)

    def _make(self, shape: str, kind: str) -> Case | None:
        """The case, with the checks of making it; None where its form is not the declared one."""
        dims, place, code, found = self.task.smoke[shape], f"{shape}, {kind}", self.code, self.found
        inputs, again, others = (code.make_inputs(dims, kind, seed, "cpu") for seed in (SEED, SEED, OTHER_SEED))
        before = fingerprint(inputs)
        faults = list(_input_faults(self.task, dims, inputs))
        expected = () if faults else code.reference(**inputs)
        faults = faults or list(_output_faults(self.task, dims, expected))
        found.add("form", f"{place}: {faults[0]}" if faults else None)
        if faults:
            return None
        self._prints[shape, kind] = before
        left_alone = fingerprint(inputs) == before
        found.add("leaves inputs alone", None if left_alone else f"{place}: the reference changed its inputs")
        repeats = fingerprint(again) == before and _all_same(code.reference(**again), expected)
        found.add("deterministic", None if repeats else f"{place}: a second run from the same seed differs")
        varied = fingerprint(others) != before
        found.add("seeds differ", None if varied else f"{place}: seeds {SEED} and {OTHER_SEED} make the same inputs")
        return Case(inputs, expected, code.reference(**others), code.reference, shape, kind)

    def _check_acceptance(self, case: Case) -> None:
        copy = tuple(output.clone() for output in case.expected)
        wrong = self._compare(case, copy)
        self.found.add("accepts the reference", f"{case.shape}, {case.kind}: {wrong[0]}" if wrong else None)

    def _check_refusals(self, case: Case) -> None:
        place = f"{case.shape}, {case.kind}"
        for form, got in wrong_forms(case).items():
            accepted = not self._compare(case, got)
            self.found.add("refuses wrong forms", f"{place}: accepted {form}" if accepted else None)
        for name, make in ANSWERS.items():
            answer = make(case)
            if answer is None:
                continue
            if _all_equal(answer, case.expected):
                self._right_somewhere.add(name)
                continue
            refused = bool(self._compare(case, answer))
            if name in NEED_NOT_SHOW_EVERYWHERE:
                key = (name, case.kind)
                self._refused_once[key] = self._refused_once.get(key, False) or refused
            else:
                self.found.add(f"refuses {name}", None if refused else f"{place}: accepted")

    def _compare(self, case: Case, got: Any) -> list[str]:
        return self.code.compare(case.inputs, case.expected, got, self.task.tolerance)


def _input_faults(task: Task, dims: Dims, inputs: dict[str, Any]) -> Iterator[str]:
    """Where inputs are not as the yaml declares them."""
    names = [name for name, _, _ in task.inputs] + list(task.scalars)
    if list(inputs) != names:
        yield f"make_inputs gives {', '.join(inputs)}; the yaml declares {', '.join(names)}"
        return
    for spec in task.inputs:
        yield from _tensor_faults(spec, dims, inputs[spec[0]])
    for name, kind in task.scalars.items():
        if type(inputs[name]).__name__ != kind:
            yield f"{name} is of type {type(inputs[name]).__name__}; the yaml declares {kind}"


def _output_faults(task: Task, dims: Dims, expected: Any) -> Iterator[str]:
    """Where the reference's outputs are not as the yaml declares them."""
    if not isinstance(expected, tuple) or len(expected) != len(task.outputs):
        yield f"reference must return a tuple of {len(task.outputs)} tensors"
        return
    for spec, tensor in zip(task.outputs, expected, strict=True):
        yield from _tensor_faults(spec, dims, tensor)


def _tensor_faults(spec: Spec, dims: Dims, tensor: Any) -> Iterator[str]:
    name, dtype, shape = spec
    wanted = [extent(part, dims) for part in shape]
    if str(tensor.dtype) != f"torch.{dtype}" or list(tensor.shape) != wanted or not tensor.is_contiguous():
        yield f"{name} is {tensor.dtype} {list(tensor.shape)}; the yaml declares {dtype} {wanted}, contiguous"


def _all_same(answer: Outputs, expected: Outputs) -> bool:
    return all(same(one, other) for one, other in zip(answer, expected, strict=True))


def _all_equal(answer: Outputs, expected: Outputs) -> bool:
    return all(equal(one, other) for one, other in zip(answer, expected, strict=True))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
