"""Whether the answer of a timed block is right: compared with the reference, and why not where it is not.

An answer that is the same bit for bit as one found right before, on the same set of inputs, is right; any other one is
compared in full. A wrong answer may be late, or an earlier one handed out again: each has a check of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from kernelgen.ladder.benchmark.said import Failing, Outputs, Role, same
from kernelgen.ladder.correctness import checks
from kernelgen.ladder.correctness.calls import Answer
from kernelgen.ladder.correctness.checks import Expected
from kernelgen.ladder.results import Fault
from kernelgen.ladder.subject import Goal
from kernelgen.targets.code import TargetCode


@dataclass
class _Known:
    """Answers seen before."""

    expected: Expected | None = None
    """The set that `right` belongs to."""
    right: Outputs | None = None
    """An answer of either side to that set that was compared in full."""


class Checker:
    """Checks the answers of a shape."""

    def __init__(self, code: TargetCode, goal: Goal, device: str) -> None:
        self._code, self._goal, self._device = code, goal, device
        self._known = _Known()
        self._last: dict[Role, tuple[Expected, Outputs]] = {}
        self._settled: set[Role] = set()

    def first(
        self,
        role: Role,
        expected: Expected,
        said: Answer,
        outputs: Outputs,
        again: Callable[[], Outputs],
        settle_s: float,
    ) -> None:
        """Check form and values of the answer to the first calls. Raises Failing."""
        forms = checks.form_faults(expected, said.text("returned"), said.records("forms"), self._device)
        if forms:
            raise Failing(role, replace(forms[0], check="benchmark.wrong"))
        found = self._compared(expected, outputs)
        if found is not None:
            raise Failing(role, self._why(role, expected, outputs, found, again, settle_s))
        self._last[role] = (expected, outputs)

    def wrong(
        self, role: Role, expected: Expected, outputs: Outputs, again: Callable[[], Outputs], settle_s: float
    ) -> Fault | None:
        """What is wrong with an answer; `again` has it handed over once more, after a further synchronise."""
        found = self._compared(expected, outputs)
        if found is not None:
            return self._why(role, expected, outputs, found, again, settle_s)
        self._last[role] = (expected, outputs)
        if role not in self._settled:  # once a shape and side there is time for late work
            self._settled.add(role)
            time.sleep(settle_s)
        if same(outputs, again()):
            return None
        return Fault("benchmark.late_work", f"{expected.case.place}: the answer changed after the call had ended")

    def _why(
        self,
        role: Role,
        expected: Expected,
        outputs: Outputs,
        found: Fault,
        again: Callable[[], Outputs],
        settle_s: float,
    ) -> Fault:
        """A wrong answer's fault: one of an earlier call, one that comes late, or just wrong."""
        place = expected.case.place
        before = self._last.get(role)
        if before is not None and before[0] is not expected and same(before[1], outputs):
            reason = f"{place}: the answer is the one to what the same tensors held before: {found.reason}"
            return replace(found, check="benchmark.stale", reason=reason)
        time.sleep(settle_s)
        if self._compared(expected, again()) is None:
            reason = f"{place}: the answer was right only {settle_s:g} s after the call had ended: {found.reason}"
            return replace(found, check="benchmark.late_work", reason=reason)
        return replace(found, check="benchmark.wrong")

    def _compared(self, expected: Expected, outputs: Outputs) -> Fault | None:
        """The first fault of an answer's values."""
        known = self._known
        if known.expected is expected and known.right is not None and same(known.right, outputs):
            return None
        exact = expected.case.kind in self._goal.exact_kinds
        found = checks.value_faults(self._code, self._goal.tolerance, expected, outputs, exact)
        if found:
            return found[0]
        if known.expected is not expected:
            self._known = _Known(expected, outputs)
        return None
