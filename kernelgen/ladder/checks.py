"""The part of a self-test that runs candidate code: `python -m kernelgen.ladder.checks KIND FILE RECORD`.

A process of its own for each check, since the compiler, the interpreter and a GPU want different ones and a candidate
may end any of them. What came of it goes into the file RECORD as JSON: status `passed` or `failed`, a note and, for a
failure, the detail. `error` instead says that the check itself could not be made. It takes no other side.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import Any

from kernelgen.errors import BadInput, KernelgenError
from kernelgen.ladder import declaration
from kernelgen.ladder.declaration import Declaration
from kernelgen.ladder.reasons import Attempt, shorten

Record = dict[str, Any]
SEED = 20_240_229
LOGIC_ONLY = "logic check, not numerics"


def main(argv: list[str]) -> int:
    """Make one check and write its record; `argv` is kind, file, further arguments and record file."""
    kind, file, *further, record = argv
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        declared = declaration.read(Path(file))
        outcome = CHECKS[kind](declared, *further)
    except KernelgenError as error:
        outcome = {"error": str(error)}
    Path(record).write_text(json.dumps(outcome), encoding="utf-8")
    return 0


def check_compile(declared: Declaration) -> Record:
    """Compile every Triton kernel that the entry point launches on the tune shapes, without a GPU."""
    from kernelgen.ladder import offline
    from kernelgen.targets.code import load_code

    log = offline.install(declared.arch)
    code = load_code(declared.target_module, declared.target_folder)
    with Attempt(declared.file) as loading:
        entry_point = getattr(_load(declared.file), declared.entry_point)
    if loading.failure is not None:
        return _failed(loading)
    why_smoke = None
    for name, dims in declared.tune.items():
        call = _call_on_shapes(declared, entry_point, code, dims)
        if call.failure is not None and _is_kernels_own(log, call):
            return _failed(call, f"{name}: {call.failure}", builds=log)
        why_smoke = why_smoke or call.failure
    if why_smoke is not None or not declared.tune:
        for name, dims in declared.smoke.items():
            with Attempt(declared.file) as call:
                entry_point(**code.make_inputs(dims, declared.kinds[0], SEED, "cpu"))
            if call.failure is not None:
                return _failed(call, f"{name}: {call.failure}", builds=log)
    return _compiled(declared, log, why_smoke)


def check_interpreter(declared: Declaration, budget_s: str) -> Record:
    """Run the candidate's test on the CPU, once for each configuration its kernels can be tuned to.

    No further configuration is begun that would end after `budget_s` seconds; the note says how many were run.
    """
    from kernelgen.ladder import interpreter

    tuning = interpreter.install(declared.arch)
    started = time.monotonic()
    done, longest = 0, 0.0
    with Attempt(declared.file) as loading:
        module = _load(declared.file)
    if loading.failure is not None:
        return _failed(loading)
    while done < tuning.choices and time.monotonic() - started + longest <= float(budget_s):
        tuning.choose(done)
        began = time.monotonic()
        with Attempt(declared.file) as test:
            module.test_correctness("cpu")
        if test.failure is not None:
            chosen = tuning.chosen()
            return _failed(test, f"{test.failure}; with {chosen}" if chosen else None)
        longest = max(longest, time.monotonic() - began)
        done += 1
    count = f"; {done} of {tuning.choices} configurations" if tuning.choices > 1 else ""
    return {"status": "passed", "note": f"{LOGIC_ONLY}{count}"}


def check_gpu(declared: Declaration) -> Record:
    """Run the candidate's test on the GPU."""
    with Attempt(declared.file) as test:
        _load(declared.file).test_correctness("cuda")
    if test.failure is not None:
        return _failed(test)
    import torch

    return {"status": "passed", "note": f"on {torch.cuda.get_device_name()}"}


def check_launcher(declared: Declaration, library: str) -> Record:
    """Whether a built library exports the launcher."""
    with Attempt(declared.source) as loading:
        found = hasattr(ctypes.CDLL(library), declared.entry_point)
    if loading.failure is not None:
        return _failed(loading)
    if not found:
        wanted = f'extern "C" int {declared.entry_point}(…, void* stream)'
        return {"status": "failed", "note": f"{declared.source.name} has no launcher {wanted}"}
    return {"status": "passed", "note": ""}


CHECKS: dict[str, Callable[..., Record]] = {
    "compile": check_compile,
    "interpreter": check_interpreter,
    "gpu": check_gpu,
    "launcher": check_launcher,
}


def _load(file: Path) -> ModuleType:
    """The candidate's module, under its own name."""
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None:
        raise BadInput(f"{file} is not a Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module  # where dataclasses and pickle look for it
    spec.loader.exec_module(module)
    return module


def _call_on_shapes(declared: Declaration, entry_point: Any, code: Any, dims: dict[str, int]) -> Attempt:
    """Call the entry point with inputs that are shapes alone."""
    from kernelgen.ladder.inputs import shapes_only

    inputs = shapes_only(code, dims, declared.kinds[0], SEED)
    with Attempt(declared.file) as call:
        if inputs is None:
            raise BadInput("the target's inputs cannot be made as shapes alone")
        entry_point(**inputs)
    return call


def _is_kernels_own(log: Any, call: Attempt) -> bool:
    """Whether what ended the call came out of a launch, and not of host code that needs values."""
    from kernelgen.ladder.reasons import explain

    return call.error is not None and any(build.error == explain(call.error) for build in log.failures)


def _compiled(declared: Declaration, log: Any, why_smoke: str | None) -> Record:
    """The record of a candidate whose entry point ran through."""
    from kernelgen.ladder.cuda import arch_name

    builds = log.builds()
    if not log.launches and not log.failures:
        return {"status": "failed", "note": f"{declared.entry_point} launched no Triton kernel"}
    kernels = {build.kernel for build in builds}
    for build in log.failures:
        if build.kernel not in kernels:
            note = f"{build.kernel}: none of its configurations can run: {shorten(build.error)}"
            return {"status": "failed", "note": note, "detail": build.error, "builds": _rows(log)}
    note = (
        f"compiled for {arch_name(declared.arch)}: {_count(len(kernels), 'kernel')}, {_count(len(builds), 'config')}; "
        f"registers up to {max(build.registers for build in builds)}, spills {max(build.spills for build in builds)}, "
        f"shared up to {max(build.shared_bytes for build in builds)} B"
    )
    impossible = {build.describe(): shorten(build.error) for build in log.failures}
    for described, reason in impossible.items():
        note += f"; cannot run: {described}: {reason}"
    if why_smoke is not None:
        note += f"; on the smoke shapes alone, since on the tune shapes: {why_smoke}"
    return {"status": "passed", "note": note, "builds": _rows(log)}


def _failed(attempt: Attempt, note: str | None = None, builds: Any = None) -> Record:
    """The record of an attempt that failed."""
    record = {"status": "failed", "note": note or attempt.failure, "detail": attempt.detail}
    return record if builds is None else {**record, "builds": _rows(builds)}


def _rows(log: Any) -> list[Record]:
    """Every build and failure as plain data."""
    return [asdict(build) for build in (*log.builds(), *log.failures)]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
