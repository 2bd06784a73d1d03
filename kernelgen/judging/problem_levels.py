"""The levels for a solution to somebody else's problem, where they differ from those of any candidate.

L0: the policy, with what torch may not do worked out from the problem. L1: of CUDA source in a loader the kernels
alone. L2: inconclusive where this machine cannot make the calls at the problem's own shapes, and suspect where the
problem itself proves little. Imports torch only when called.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from kernelgen.judging.subjects import Judged
from kernelgen.ladder.results import Fault, Outcome, Result
from kernelgen.records import Level

if TYPE_CHECKING:
    from kernelgen.judging.levels import Terms
    from kernelgen.judging.problems import JudgedSolution
    from kernelgen.ladder.problem_trial import Loaded
    from kernelgen.ladder.solution import Solution

Usual = Callable[[Judged, "Terms"], Result]
"""A level as it is for any candidate."""
LEFT_TO_US = ("policy.library_work", "policy.random")
"""Checks of the policy that are made here instead, where the problem's work is known."""
# what may be taken through the interpreter at the problem's own shapes: in one call, and in all together
CPU_FLOPS = 1e9
CPU_NUMBERS = 1 << 21
CPU_TIMEOUT_S = 150.0
LOADED_BY_TORCH = (
    "its CUDA source is built by torch's loader when the solution is imported, which needs nvcc, torch's CUDA headers "
    "and a GPU: not run in the contained process"
)


OWN_LINE = re.compile(r" \(line -?\d+\)")
"""The place in the judge's own lines, which is no news to a reader."""


@dataclass
class _Found:
    """What L0 finds by the problem."""

    faults: list[Fault] = field(default_factory=list)
    """What fails the solution."""
    doubts: list[Fault] = field(default_factory=list)
    """What a person should look at."""
    notes: list[str] = field(default_factory=list)
    """What a reader should know."""


def l0(judged: JudgedSolution, terms: Terms, usual: Usual) -> Result:
    """The policy, and what of the problem's work torch does."""
    policy = terms.policy.model_copy(update={"allow": (*terms.policy.allow, *LEFT_TO_US)})
    result = usual(judged, replace(terms, policy=policy))
    not_ours = {f"not checked: {check}" for check in LEFT_TO_US if check not in terms.policy.allow}
    result = replace(result, notes=tuple(note for note in result.notes if note not in not_ours))
    read = judged.read
    if read is None:
        return result
    if read.foreign is not None and read.dsl is None and result.outcome == "passed":
        reason = f"its kernels are written in {read.foreign}, which is not read here"
        return replace(result, outcome="inconclusive", reason=reason)
    found = _by_problem(judged, read)
    faults = [fault for fault in found.faults if fault.check not in terms.policy.allow]
    doubts = [fault for fault in found.doubts if fault.check not in terms.policy.allow]
    return _merged(result, faults, doubts, found.notes)


def l1(judged: JudgedSolution, terms: Terms, usual: Usual) -> Result:
    """As usual, but for CUDA source in a loader."""
    if judged.read is None or judged.subject.dsl != "cuda":
        return usual(judged, terms)
    from kernelgen.ladder.loader import compile_loaded

    texts = [text for _, text, _ in judged.read.cuda_texts]
    timeout_s = terms.policy.level_timeout_s
    return compile_loaded(judged.subject, texts, server_for=terms.servers.get, timeout_s=timeout_s)


def l2(judged: JudgedSolution, terms: Terms, usual: Usual) -> Result:
    """The calls, where this machine can make them; what cannot end in time on a CPU is not known to be wrong."""
    if judged.subject.dsl == "cuda":
        return Result("L2", "inconclusive", LOADED_BY_TORCH)
    is_cpu = _is_on_cpu(terms)
    too_large = _too_large(judged.loaded) if is_cpu and judged.subject.dsl == "triton" else None
    if too_large is not None:
        return Result("L2", "inconclusive", too_large)
    if is_cpu:
        limit = min(terms.policy.level_timeout_s, CPU_TIMEOUT_S)
        terms = replace(terms, policy=terms.policy.model_copy(update={"level_timeout_s": limit}))
    result = usual(judged, terms)
    if is_cpu and [fault.check for fault in result.faults] == ["process.hung"]:
        reason = (
            f"no end within {terms.policy.level_timeout_s:g} s through the interpreter, at the problem's own shapes"
        )
        return replace(result, outcome="inconclusive", reason=f"{reason}: judge it where there is a GPU", faults=())
    faults = tuple(_named(fault) for fault in result.faults)
    result = replace(result, faults=faults, reason=faults[0].reason if faults else result.reason)
    if result.outcome == "passed" and judged.loaded.doubts:
        weak = tuple(Fault("correctness.weak_problem", doubt) for doubt in judged.loaded.doubts)
        reason = f"the problem proves little: {weak[0].reason}"
        return replace(result, outcome="suspect", reason=reason, faults=weak)
    return result


STEPS: Mapping[Level, Callable[[JudgedSolution, Terms, Usual], Result]] = {"L0": l0, "L1": l1, "L2": l2}
"""By level."""


def _merged(result: Result, faults: list[Fault], doubts: list[Fault], notes: list[str]) -> Result:
    """The policy's result with what was found by the problem, the decisive fault first."""
    outcome: Outcome = "failed" if faults else "suspect" if doubts and result.outcome == "passed" else result.outcome
    together = (*faults, *result.faults, *doubts)
    reason = together[0].reason if outcome != result.outcome or faults else result.reason
    return replace(result, outcome=outcome, reason=reason, faults=together, notes=(*result.notes, *notes))


def _by_problem(judged: JudgedSolution, read: Solution) -> _Found:
    """What is wrong with a solution to this problem."""
    found = _Found()
    if not read.kernels and read.dsl is None:
        fault = Fault(
            "policy.no_kernel", "its model reaches no kernel of its own: whatever is computed, torch computes"
        )
        (found.doubts if read.is_loader_hidden else found.faults).append(fault)
    if read.compiler is not None:
        reason = f"{read.compiler.name} has torch's compiler write the kernel"
        found.faults.append(Fault("policy.library_work", reason, line=read.compiler.line))
    if judged.problem_name in read.imports:
        found.faults.append(Fault("policy.files", f"it imports the problem, {judged.problem_name}"))
    if read.lots is not None:
        reason = f"{read.lots.name}: an answer may not hang on a random generator"
        found.faults.append(Fault("policy.random", reason, line=read.lots.line))
    _look_at_work(judged.loaded, read, found)
    return found


def _look_at_work(loaded: Loaded, read: Solution, found: _Found) -> None:
    """Whether torch does what the problem asks a kernel for."""
    from kernelgen.ladder.torch_work import covers

    counted = [use for use in read.uses if not use.on_own_buffer]
    done = frozenset(use.family for use in counted)
    covered = [family for family in loaded.work.main if covers(done, family)]
    told = "; ".join(f"line {use.line}: {use.name} ({use.family})" for use in read.uses)
    if not covered:
        found.notes += [f"torch works beside the kernel, which is allowed: {told}"] if told else []
        return
    left = loaded.work.left(done)
    reason = f"torch does the {' and the '.join(covered)}"
    if left:
        reason += f"; what is left for a kernel is the {' and the '.join(left)}"
        found.doubts.append(Fault("policy.library_work", reason, told, counted[0].line))
    else:
        reason += ", which is all that the problem asks for"
        found.faults.append(Fault("policy.library_work", reason, told, counted[0].line))


def _is_on_cpu(terms: Terms) -> bool:
    import torch

    return terms.device == "cpu" or (terms.device is None and not torch.cuda.is_available())


def _too_large(loaded: Loaded) -> str | None:
    """Why a problem does not fit the interpreter; None where it does."""
    operations, numbers = loaded.problem.flops({}), sum(loaded.work.amounts.values())
    if operations <= CPU_FLOPS and numbers <= CPU_NUMBERS:
        return None
    return (
        f"the problem's shapes are fixed and too large for Triton's interpreter ({operations:.2g} operations, "
        f"{numbers:.2g} numbers in and out of torch's operators): judge it where there is a GPU"
    )


def _named(fault: Fault) -> Fault:
    """A fault that the judge's own lines raised, by what it means."""
    if fault.check == "correctness.raised" and "LibraryWork" in fault.reason:
        return replace(fault, check="correctness.library_work", reason=OWN_LINE.sub("", fault.reason), line=None)
    return fault
