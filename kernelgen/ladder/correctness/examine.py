"""One call examined: inputs and reference made in private, the call, and everything that can be wrong with its answer.

An `Examiner` collects what it finds, the first fault of each check alone, in the order found.
"""

from __future__ import annotations

import random
import time
from dataclasses import replace
from typing import Any

import torch

from kernelgen.errors import BadInput
from kernelgen.ladder.correctness import checks, suspicion
from kernelgen.ladder.correctness.calls import Answer, Calls, Shared
from kernelgen.ladder.correctness.checks import Expected, Outputs
from kernelgen.ladder.correctness.plan import Case
from kernelgen.ladder.correctness.tensors import POISON
from kernelgen.ladder.results import Fault
from kernelgen.ladder.subject import Subject
from kernelgen.targets.code import MODULE_FAULTS, TargetCode
from kernelgen.targets.findings import raised

# memory that nobody wrote reads as one of these bytes: NaN or huge in every format, -1 or huge as a whole number
UNWRITTEN = (0xFF, 0x7F)
SEEDS = 2**31
SETTLE_S = 0.1
# rows of rescaled inputs in turn: powers of two, which every format multiplies exactly
ROW_FACTORS = (1.0, 2.0**-3, 2.0**-6)


class Examiner:
    """Makes the inputs of one verdict and examines its answers."""

    def __init__(self, subject: Subject, code: TargetCode, device: str, seed: int) -> None:
        self.faults: dict[str, Fault] = {}
        self.said: dict[str, Fault] = {}
        self.doubts: dict[str, Fault] = {}
        self.errors: dict[str, dict[str, Any]] = {}
        self.examined = 0
        self.faulty = 0
        self.choices = 1
        self.counted = False
        self.undecided: str | None = None
        self._chosen = ""
        self._goal = subject.goal
        self._code = code
        self._device = device
        self._draw = random.Random(seed)

    def add(self, *found: Fault) -> None:
        """Keep faults, the first of each check."""
        for fault in found:
            self.faults.setdefault(fault.check, fault)

    def found(self) -> tuple[Fault, ...]:
        """Every fault: first what tensors show, then what the called process says against the candidate."""
        return tuple({**self.said, **self.faults}[check] for check in dict.fromkeys([*self.faults, *self.said]))

    def expected(self, case: Case) -> Expected:
        """Fresh inputs of a case and the reference's answer, where no other process sees them."""
        seed = self._draw.randrange(SEEDS)
        try:
            inputs = self._code.make_inputs(case.dims, case.kind, seed, self._device)
            if case.group == "rescaled":
                inputs = _rescaled(inputs)
            outputs = self._code.reference(**inputs)
        except MODULE_FAULTS as error:
            raise BadInput(f"The target could not be computed at {case.place}: {raised(error)}") from error
        names = [name for name, _, _ in self._goal.outputs]
        specs = [
            (name, str(output.dtype).removeprefix("torch."), tuple(output.shape))
            for name, output in zip(names, outputs, strict=True)
        ]
        return Expected(case, inputs, outputs, specs)

    def ran(self, answer: Answer, place: str, *, call: bool = True) -> bool:
        """Note what an answer to a call says against the candidate; whether it ran through."""
        self.choices = max(self.choices, answer.number("choices", 1))
        failure = answer.text("failure")
        said = suspicion.against(answer, place, self._goal, launches_count=call and self.counted and failure is None)
        for fault in said.faults:
            self.said.setdefault(fault.check, fault)
        for doubt in said.doubts:
            self.doubts.setdefault(doubt.check, doubt)
        self._chosen = f"; with {answer.text('chosen')}" if self.choices > 1 and answer.text("chosen") else ""
        if failure is None:
            return True
        lacks = answer.text("lacks") if self._device == "cpu" else None
        if lacks is not None:
            self.undecided = f"Triton's interpreter has no {lacks}: judge on a GPU"
            return False
        line = answer.number("line") or None
        where = f" (line {line})" if line else ""
        reason = f"{place}: raised {failure}{where}{self._chosen}"
        self.add(Fault("correctness.raised", reason, detail=answer.text("detail") or "", line=line))
        self.faulty += 1
        return False

    def answer(
        self,
        calls: Calls,
        shared: Shared,
        expected: Expected,
        keep: str,
        *,
        unwritten: int = UNWRITTEN[0],
        settle: bool = False,
    ) -> tuple[Outputs | None, list[Fault]]:
        """Call and examine: the outputs where they have the right form, and the faults of this call, noted already."""
        case = expected.case
        self.examined += 1
        calls.doing = case.place
        said = calls.call(shared, keep, unwritten)
        if not self.ran(said, case.place):
            return None, [self.faults["correctness.raised"]] if "correctness.raised" in self.faults else []
        form, got = calls.collect(shared, keep, expected.specs, unwritten)
        found = checks.form_faults(expected, form.text("returned"), form.records("forms"), self._device)
        wrong_form = any(fault.check == "correctness.structure" for fault in found)
        if not wrong_form:
            found += self._late(calls, shared, expected, keep, got, settle or bool(found))
            found += self.values(expected, got)
            self._note_errors(expected, got)
        found += self._surroundings(calls, shared, expected)
        self.faulty += bool(found)
        found = [replace(fault, reason=fault.reason + self._chosen) for fault in found]
        return (None if wrong_form else got), found

    def values(self, expected: Expected, got: Outputs) -> list[Fault]:
        """What is wrong with the values of an answer, unwritten ones first."""
        exact = expected.case.kind in self._goal.exact_kinds and expected.case.group != "rescaled"
        found = checks.value_faults(self._code, self._goal.tolerance, expected, got, exact)
        left = checks.unwritten(expected, got, UNWRITTEN) if found else None
        if left is not None:
            reason = f"{expected.case.place}: {left}"
            return [Fault("correctness.uninitialised", reason, detail=found[0].reason), *found]
        return found

    def _late(
        self, calls: Calls, shared: Shared, expected: Expected, keep: str, got: Outputs, settle: bool
    ) -> list[Fault]:
        """Whether an answer changed after it was given."""
        if settle:
            time.sleep(SETTLE_S)
        _, later = calls.collect(shared, keep, expected.specs, UNWRITTEN[0])
        differs = checks.differing(expected.specs, got, later)
        if differs is None:
            return []
        reason = f"{expected.case.place}: the answer changed after the call had returned: {differs}"
        return [Fault("correctness.late_work", reason)]

    def _surroundings(self, calls: Calls, shared: Shared, expected: Expected) -> list[Fault]:
        """Whether the inputs and what lies beside them are as before."""
        place, found = expected.case.place, []
        if self._device != "cpu":
            calls.ask("show", inputs=shared.name)
        changed = shared.differing(expected.inputs)
        if changed:
            reason = f"{place}: the call changed its input{'s' if len(changed) > 1 else ''} {', '.join(changed)}"
            found.append(Fault("correctness.inputs_changed", reason))
        beside = shared.written_beside(POISON)
        if beside is not None:
            found.append(Fault("correctness.guard_band", f"{place}: the call wrote outside its tensors, {beside}"))
        return found

    def _note_errors(self, expected: Expected, got: Outputs) -> None:
        """Keep the largest errors of each output, with the case they come from."""
        for name, (worst, norm) in checks.errors(expected, got).items():
            held = self.errors.setdefault(name, {"worst": -1.0, "norm": -1.0})
            if worst > held["worst"]:
                held.update({"worst": worst, "worst_at": expected.case.place})
            if norm > held["norm"]:
                held.update({"norm": norm, "norm_at": expected.case.place})


def _rescaled(inputs: dict[str, Any]) -> dict[str, Any]:
    """Inputs whose first floating-point tensor has rows of other sizes and a spike at the end, within its range."""
    for name, value in inputs.items():
        wide = isinstance(value, torch.Tensor) and value.dtype in (torch.float32, torch.float16, torch.bfloat16)
        if not wide or not value.numel():
            continue
        scaled = value.clone()
        largest = scaled.abs().max()
        turn = torch.arange(scaled.shape[0], device=scaled.device) % len(ROW_FACTORS)
        factors = torch.tensor(ROW_FACTORS, device=scaled.device)[turn].to(scaled.dtype)
        scaled *= factors.reshape(-1, *[1] * (scaled.dim() - 1))
        # zeros may be padding, which is no place for a value
        places = scaled.reshape(-1).nonzero()
        if len(places):
            scaled.view(-1)[places[-1]] = largest
        return {**inputs, name: scaled}
    return inputs
