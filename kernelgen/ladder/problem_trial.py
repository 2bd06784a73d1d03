"""Tries a problem before anybody is judged by it, where it is small enough for this machine.

Which kinds of inputs its Model takes; whether torch's own answer lies within the tolerance of the float64 one, so that
no honest kernel is held to more; whether the Model draws lots; and which answers without work would pass it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch

from kernelgen.errors import BadInput
from kernelgen.ladder.problem import Problem, sentence
from kernelgen.ladder.problem_inputs import KINDS, PLAIN
from kernelgen.ladder.torch_work import Work
from kernelgen.targets.code import MODULE_FAULTS
from kernelgen.targets.trivial import ANSWERS, Case, equal

# what a problem's code may raise, and what it may be ended by
FAULTS = (*MODULE_FAULTS, SystemExit)
SEED, OTHER_SEED = 20_240_229, 31_415_926
# up to here a problem is tried: bytes and operations on a CPU, and on a GPU
TRIED_BYTES = {"cpu": 1 << 28, "cuda": 1 << 34}
TRIED_FLOPS = {"cpu": 2e10, "cuda": 1e14}
# torch's own answer uses up at most one part in this many of a tolerance tighter than KernelBench's
MARGIN = 4.0
# KernelBench's first tolerance, rtol and atol alike
FIRST_TOLERANCE = 1e-2
IDLE = ("zeros", "a constant", "a copied input")
"""Answers of `trivial` that know nothing of the right one."""
UNFINISHED = ("the mean", "half of the work")
"""Those that are made of it: no news where they come out the same."""


@dataclass(frozen=True)
class Loaded:
    """A problem and what is known of it."""

    problem: Problem
    """The problem."""
    work: Work
    """What its Model asks of torch."""
    kinds: tuple[str, ...]
    """Kinds of inputs that it can take, plain first."""
    tolerance: dict[str, tuple[float, float]]
    """rtol and atol by output."""
    notes: tuple[str, ...]
    """What a reader of verdicts should know."""
    doubts: tuple[str, ...]
    """Why passing it proves little, a sentence each."""


def tried(problem: Problem, work: Work) -> Loaded:
    """The problem with what trying it shows. Raises BadInput where nobody can be judged by it."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if problem.bytes_moved({}) > TRIED_BYTES[device] or problem.flops({}) > TRIED_FLOPS[device]:
        note = (
            "the problem is too large to be tried on this machine: plain inputs alone, and what it accepts is not known"
        )
        return Loaded(problem, work, (PLAIN,), problem.tolerance(), (note,), ())
    return _Trial(problem, work, device).loaded()


class _Trial:
    """What trying a problem shows."""

    def __init__(self, problem: Problem, work: Work, device: str) -> None:
        self._problem, self._work, self._device = problem, work, device
        self._notes: list[str] = []
        self._tolerance = problem.tolerance()

    def loaded(self) -> Loaded:
        """The problem, tried."""
        try:
            plain = self._case(PLAIN)
        except FAULTS as error:
            raise sentence(self._problem.path, "Model on the inputs of get_inputs", error) from error
        self._refuse_lots(plain)
        self._settle_tolerance(plain)
        sound = {kind: self._sound_case(kind, plain) for kind in KINDS[1:]}
        cases = {PLAIN: plain} | {kind: case for kind, case in sound.items() if case is not None}
        left_out = [kind for kind in KINDS if kind not in cases]
        if left_out:
            self._notes.append(f"no {', '.join(left_out)} inputs: the Model, or its precision, does not take them")
        doubts = tuple(self._doubts(cases))
        return Loaded(self._problem, self._work, tuple(cases), self._tolerance, tuple(self._notes), doubts)

    def _case(self, kind: str) -> Case:
        problem = self._problem
        inputs, others = (problem.make_inputs({}, kind, seed, self._device) for seed in (SEED, OTHER_SEED))
        expected, other = problem.reference(**inputs), problem.reference(**others)
        return Case(inputs, expected, other, problem.reference, "given", kind)

    def _sound_case(self, kind: str, plain: Case) -> Case | None:
        """The case of a kind whose right answer is as finite as the plain one, and which torch itself gets right."""
        try:
            case = self._case(kind)
            pairs = [pair for pair in zip(case.expected, plain.expected, strict=True) if pair[0].is_floating_point()]
            finite = all(bool((value.isfinite() | ~usual.isfinite()).all()) for value, usual in pairs)
            return case if finite and not self._faults(case, self._own_answer(case), 1 / MARGIN) else None
        except FAULTS:
            return None

    def _own_answer(self, case: Case, seed: int = 0) -> tuple[Any, ...]:
        """torch's answer in the Model's own precision."""
        return tuple(value.contiguous() for value in self._problem.run(case.inputs, double=False, seed=seed))

    def _refuse_lots(self, case: Case) -> None:
        """Raise BadInput where the Model draws lots."""
        one, other = self._own_answer(case), self._own_answer(case, seed=1)
        if self._faults(replace(case, expected=one), other):
            path = self._problem.path
            raise BadInput(
                f"{path} cannot be used as a problem: its Model gives another answer each time, as dropout does."
            )

    def _settle_tolerance(self, case: Case) -> None:
        """Hold small outputs to their own size where torch leaves room, and nobody to more digits than torch has."""
        own, problem = self._own_answer(case), self._problem
        problem.tightened = True
        if not self._faults(case, own, 1 / MARGIN):
            return
        problem.tightened = False
        if not self._faults(case, own):
            return
        self._tolerance = {
            name: (max(rtol, FIRST_TOLERANCE), max(atol, FIRST_TOLERANCE)) if rtol else (0.0, 0.0)
            for name, (rtol, atol) in self._tolerance.items()
        }
        self._notes.append(
            "torch's own answer is not within KernelBench's tolerance of float64: "
            f"its first one, {FIRST_TOLERANCE:g}, is used"
        )
        if self._faults(case, own):
            problem.is_double = False
            self._notes.append("nor is it within that: the reference works in the Model's own precision")

    def _faults(self, case: Case, got: tuple[Any, ...], share: float = 1.0) -> list[str]:
        tolerance = {name: (rtol * share, atol * share) for name, (rtol, atol) in self._tolerance.items()}
        return self._problem.compare(case.inputs, case.expected, got, tolerance)

    def _doubts(self, cases: dict[str, Case]) -> list[str]:
        """Answers without work that no kind of inputs gives away."""
        plain, found = cases[PLAIN], []
        if self._is_deaf(plain):
            self._notes.append("get_inputs gives the same values whatever the seed")
        given = (answer for case in cases.values() for answer in (case.expected, case.other))
        if all(not self._faults(plain, answer) for answer in given):
            found.append("one constant answer would pass this problem on every kind of inputs")
        for name in (*IDLE, *UNFINISHED):
            passed = {kind for kind, case in cases.items() if self._passes(name, case)}
            others = ", ".join(kind for kind in cases if kind not in passed)
            if passed == set(cases):
                found.append(f"{name} would pass this problem on every kind of inputs")
            elif PLAIN in passed:
                self._notes.append(f"{name} would pass on what get_inputs gives: {others} inputs decide")
        return found

    def _passes(self, name: str, case: Case) -> bool:
        """Whether an answer of `trivial` passes."""
        got = ANSWERS[name](case)
        is_news = name in IDLE or not all(map(equal, got or (), case.expected))
        return got is not None and is_news and not self._faults(case, got)

    def _is_deaf(self, plain: Case) -> bool:
        """Whether get_inputs does not mind the seed."""
        others = self._problem.make_inputs({}, PLAIN, OTHER_SEED, self._device)
        given = [argument.name for argument in self._problem.arguments if argument.is_input]
        return all(torch.equal(plain.inputs[name], others[name]) for name in given if torch.is_tensor(others[name]))
