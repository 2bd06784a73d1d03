"""The level as a whole: what can be judged here, the plan, and the result that comes of it."""

from __future__ import annotations

import secrets
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import torch

from kernelgen.errors import HarnessError
from kernelgen.ladder import cuda
from kernelgen.ladder.containment.limits import DEFAULT, Limits
from kernelgen.ladder.correctness.examine import SEEDS, Examiner
from kernelgen.ladder.correctness.parent import Judge
from kernelgen.ladder.correctness.plan import Case, Plan, plan_for, size_of
from kernelgen.ladder.install import NVCC_LINE
from kernelgen.ladder.results import Fault, Outcome, Result
from kernelgen.ladder.server import Server
from kernelgen.ladder.subject import Subject
from kernelgen.targets.code import TargetCode, load_code

LOGIC_CHECK = "logic check through Triton's interpreter"
DSL_NAMES = {"tilelang": "TileLang", "cuda": "CUDA C++"}
# float64 copies in the reference and in the comparison, next to inputs and answers in both processes
MEMORY_FACTOR = 10
# the shared memory itself and what a driver holds beside it
HOST_COPIES = 4
# the judge keeps the time of calls by itself: its reference may be slow, and the session is open meanwhile
SESSION_S = 86_400.0


def check(
    subject: Subject,
    *,
    server: Server | None,
    server_for: Callable[[str], Server] | None,
    device: str | None,
    seed: int | None,
    timeout_s: float,
    plan: Plan | None,
) -> Result:
    """See `check_correctness`."""
    started = time.monotonic()
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    missing = _missing(subject, device)
    if missing is not None:
        return Result("L2", "inconclusive", missing)
    if server is None:
        if server_for is None:
            raise HarnessError("check_correctness needs a server, or a function that gives one.")
        server = server_for(server_kind(subject, device))
    seed = secrets.randbelow(SEEDS) if seed is None else seed
    goal = subject.goal
    code = load_code(goal.module, Path(goal.folder) if goal.folder else None)
    plan = plan or plan_for(goal, device, seed)
    plan, left_out = _fitting(plan, subject, code, device)
    examiner = Examiner(subject, code, device, seed)
    with ExitStack() as stack:
        library = None
        if subject.language == "cuda":
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kernelgen-")))
            built = _build(subject, folder, timeout_s)
            if isinstance(built, Fault):
                return Result("L2", "failed", built.reason, (built,), environment=dict(server.environment))
            library = built
        limits = _limits(subject, plan, device)
        judge = Judge(subject, examiner, server, device, timeout_s=timeout_s, limits=limits, library=library)
        judge.judge(plan)
    notes = [*judge.notes, *([f"not checked, since too large for the memory here: {left_out}"] if left_out else [])]
    return _result(subject, examiner, judge, device, seed, notes, dict(server.environment), started)


def server_kind(subject: Subject, device: str) -> str:
    """The kind of server that a candidate is called in."""
    if device == "cpu":
        return "interpreter"
    return "gpu"  # for TileLang too: importing it starts CUDA, which no fork survives


def _missing(subject: Subject, device: str) -> str | None:
    """Why this machine cannot judge the candidate; None where it can."""
    if device == "cpu":
        name = DSL_NAMES.get(subject.dsl)
        return f"{name} kernels run on a GPU alone: judge this candidate where there is one" if name else None
    if not torch.cuda.is_available():
        return "there is no CUDA GPU here that torch can use"
    if subject.dsl == "cuda" and cuda.find_nvcc() is None:
        return f"CUDA C++ needs nvcc: {NVCC_LINE}"
    return None


def _build(subject: Subject, folder: Path, timeout_s: float) -> Path | Fault:
    """The candidate's library, or why it does not build."""
    source, library = folder / "kernel.cu", folder / "kernel.so"
    source.write_text(subject.source, encoding="utf-8")
    built = cuda.build(source, library, cuda.arch_name(subject.goal.compute_capability), timeout_s=timeout_s)
    return library if built.failure is None else Fault("compile.nvcc", f"it does not build: {built.failure}")


def _fitting(plan: Plan, subject: Subject, code: TargetCode, device: str) -> tuple[Plan, str]:
    """The plan without cases that need more memory than the GPU has free, and the names of their shapes."""
    if device == "cpu":
        return plan, ""
    free, _ = torch.cuda.mem_get_info()

    def fits(case: Case) -> bool:
        held = max(size_of(subject.goal, case), code.bytes_moved(case.dims))
        return bool(MEMORY_FACTOR * held <= free)

    cases = tuple(case for case in plan.cases if fits(case))
    left_out = sorted({case.shape for case in plan.cases} - {case.shape for case in cases})
    return Plan(plan.thorough, cases, plan.timed, plan.budget_s), ", ".join(left_out)


def _limits(subject: Subject, plan: Plan, device: str) -> Limits:
    """What a session may use; a GPU's kernels are compiled there, and its inputs copied."""
    if device == "cpu":
        return replace(DEFAULT, seconds=SESSION_S)
    largest = max(size_of(subject.goal, case) for case in (plan.thorough, *plan.cases))
    memory_bytes = DEFAULT.memory_bytes + HOST_COPIES * largest
    return replace(DEFAULT, seconds=SESSION_S, memory_bytes=memory_bytes, exec_allowed=subject.language != "cuda")


def _result(
    subject: Subject,
    examiner: Examiner,
    judge: Judge,
    device: str,
    seed: int,
    notes: Sequence[str],
    environment: dict[str, str],
    started: float,
) -> Result:
    """What was found, as a result."""
    faults = examiner.found()
    found = faults or tuple(examiner.doubts.values())
    outcome: Outcome = (
        "failed" if faults else "inconclusive" if examiner.undecided else "suspect" if found else "passed"
    )
    reason = found[0].reason if found else _passed(examiner, judge, device)
    if outcome == "inconclusive":
        reason = str(examiner.undecided)
    details = {
        "seed": seed,
        "device": device,
        "calls": examiner.examined,
        "configurations": f"{judge.configurations} of {examiner.choices}",
        "errors": examiner.errors,
    }
    if device != "cpu":
        environment["gpu"] = torch.cuda.get_device_name()
    elif found and subject.dsl == "triton":
        notes = [LOGIC_CHECK, *notes]  # a pass says so in its reason
    seconds = time.monotonic() - started
    return Result("L2", outcome, reason, found, tuple(notes), details, environment, seconds)


def _passed(examiner: Examiner, judge: Judge, device: str) -> str:
    """What a pass rests on, in a sentence."""
    where = LOGIC_CHECK if device == "cpu" else f"on {torch.cuda.get_device_name()}"
    configurations = f", {judge.configurations} of {examiner.choices} configurations" if examiner.choices > 1 else ""
    return f"{where}: {examiner.examined} calls within tolerance{configurations}"
