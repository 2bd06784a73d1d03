"""A judge as this field writes them: the candidate runs in its own process, and what is printed is believed.

`python -m tests.attacks.naive_judge serve` imports torch and Triton's interpreter once and forks a judge for each task
line it reads. A judge works in the folder of its task, which holds `candidate.py`, `reference.py` (the target's Python)
and `tolerance.json`. It is here to be fooled: nothing in it is a model for a judge.
"""

from __future__ import annotations

import atexit
import ctypes
import importlib.util
import json
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

SEED = 42
WARM_UP = 2
REPEATS = 6
BUDGET_S = 0.02
MOST_REPEATS = 20
TIMEOUT_S = 60
PIPE = 7

errors = 0
token = ""


def judge(task: dict[str, Any]) -> int:
    """Judge `candidate.py` in the working folder and print the verdict; exit code 0 where it is accepted."""
    global token
    token = task["token"]
    import torch

    torch.manual_seed(SEED)
    sys.path.insert(0, os.getcwd())
    target = None if task["rereads"] else load("reference")
    maker = load("inputs")
    sets = [maker.make_inputs(task["dims"], "plain", SEED + k, task["device"]) for k in range(task["input_sets"])]
    module = None if task["language"] == "cuda" else load("candidate")
    candidate = native(task) if module is None else getattr(module, task["entry_point"])
    if task["compare"] == "own test":
        assert module is not None
        module.test_correctness()
        correct = True
    else:
        correct = all(is_correct(task, target, candidate, sets[0]) for _ in range(task["trials"]))
    milliseconds = time_calls(task, candidate, sets) if correct else None
    verdict = json.dumps({"correct": bool(correct), "milliseconds": milliseconds})
    print(f"{token} {verdict}" if task["believes"] == "token" else verdict, flush=True)
    if task["believes"] == "pipe":
        os.write(PIPE, verdict.encode() + b"\n")
    return 0 if correct else 1


def is_correct(task: dict[str, Any], target: ModuleType | None, candidate: Any, inputs: dict[str, Any]) -> bool:
    """Whether the candidate's outputs are the reference's, on the inputs given or on a fresh draw."""
    import torch

    if task["trials"] > 1:
        inputs = {k: torch.randn_like(v) if isinstance(v, torch.Tensor) else v for k, v in inputs.items()}
    expected = None
    if task["reference_first"]:
        assert target is not None
        expected = target.reference(**inputs)
        target.reference(**inputs)  # for the reference's own time
    got = candidate(**inputs)
    if expected is None:
        expected = (target or load("reference")).reference(**inputs)
    return COMPARE[task["compare"]](expected, got, json.loads(Path("tolerance.json").read_text()))


def allclose(expected: Any, got: Any, limit: float) -> bool:
    """Output by output, as many as there are."""
    import torch

    pairs = zip(expected, got, strict=False)
    return all(torch.allclose(want.float(), have.float(), rtol=limit, atol=limit) for want, have in pairs)


def norm(expected: Any, got: Any, limit: float) -> bool:
    """The norm of the difference against the norm of what was expected."""
    return all(
        (want - have).float().norm() <= limit * want.float().norm() for want, have in zip(expected, got, strict=False)
    )


def worst(expected: Any, got: Any, limit: float) -> bool:
    """Refused where the worst element is off by more than the limit."""
    return not any((want - have).abs().max().item() > limit for want, have in zip(expected, got, strict=False))


def counted(expected: Any, got: Any, limit: float) -> bool:
    """Counts errors in the module, and looks whether there were any."""
    global errors
    for want, have in zip(expected, got, strict=False):
        errors += int(((want - have).abs() > limit + limit * want.abs()).sum())
    return not errors > 0


COMPARE = {"allclose": allclose, "norm": norm, "worst": worst, "counted": counted}


def time_calls(task: dict[str, Any], candidate: Any, sets: list[dict[str, Any]]) -> float:
    """Milliseconds a call, on the inputs that were checked."""
    repeats = REPEATS
    if task["times"] == "adaptive":
        started = time.perf_counter()
        candidate(**sets[0])
        repeats = max(1, min(MOST_REPEATS, int(BUDGET_S / (time.perf_counter() - started))))
    else:
        for _ in range(WARM_UP):
            candidate(**sets[0])
    synchronize(task)
    started = time.perf_counter()
    for call in range(repeats):
        candidate(**sets[call % len(sets)])
    synchronize(task)
    return 1e3 * (time.perf_counter() - started) / repeats


def synchronize(task: dict[str, Any]) -> None:
    """Wait for the GPU's current stream, where there is one: the end of what is timed."""
    import torch

    if task["device"] == "cuda":
        torch.cuda.current_stream().synchronize()


def native(task: dict[str, Any]) -> Any:
    """The launcher of `candidate.cu` as a function of the inputs, built with whatever library it likes."""
    import torch

    from kernelgen.ladder.cuda import find_nvcc
    from kernelgen.targets.extents import extent

    command = [str(find_nvcc()), "-shared", "-O3", "-Xcompiler=-fPIC", "-arch=sm_90a", "-lcublas"]
    subprocess.run([*command, "-o", "candidate.so", "candidate.cu"], check=True)
    launcher = getattr(ctypes.CDLL("./candidate.so"), task["entry_point"])
    dims = task["dims"]

    def call(**inputs: Any) -> tuple[Any, ...]:
        outputs = [
            torch.empty([extent(part, dims) for part in shape], dtype=getattr(torch, dtype), device="cuda")
            for _, dtype, shape in task["outputs"]
        ]
        given = [*inputs.values(), *(dims[name] for name in sorted(dims)), *outputs]
        code = launcher(*map(c_value, given), ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
        assert code == 0, f"error code {code}"
        return tuple(outputs)

    return call


def c_value(value: Any) -> Any:
    """A tensor as its pointer, numbers as double and int64_t."""
    if isinstance(value, int):
        return ctypes.c_int64(value)
    return ctypes.c_double(value) if isinstance(value, float) else ctypes.c_void_p(value.data_ptr())


def load(name: str) -> ModuleType:
    """A module of the working folder."""
    spec = importlib.util.spec_from_file_location(name, f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def serve() -> int:
    """Fork a judge for each task, and answer with the exit code of each."""
    from kernelgen.ladder import interpreter

    interpreter.install()
    warm_up()
    for line in sys.stdin:
        task = json.loads(line)
        child = os.fork()
        if child == 0:
            begin(task)
            end(judge, task)
        print(json.dumps(waited(child)), flush=True)
    return 0


def warm_up() -> None:
    """Import what torch and Triton import at their first call, once for all judges: one thread, so forking is safe."""
    import torch

    from tests.attacks.honest import row_softmax

    torch.manual_seed(SEED)
    x = torch.randn(2, 4)
    torch.allclose(x.softmax(dim=-1), row_softmax.row_softmax(x)[0])  # type: ignore[no-untyped-call]


def end(function: Any, task: dict[str, Any]) -> None:
    """Call a function and end the process as Python does, but for taking torch apart, which costs 0.4 s."""
    code: Any = 1
    try:
        code = function(task)
    except SystemExit as error:
        code = error.code or 0
    except BaseException:  # noqa: BLE001  whatever it is, the process ends with it
        traceback.print_exc()
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    os._exit(code if isinstance(code, int) else 1)


def waited(child: int) -> int:
    """The exit code of a judge, killed where it does not end."""
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -signal.SIGKILL


def begin(task: dict[str, Any]) -> None:
    """Turn this process into the judge of a task, as if it had been started for it."""
    os.chdir(task["folder"])
    printed = os.open("printed.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    nothing = os.open(os.devnull, os.O_RDONLY)
    piped = os.open("piped.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(nothing, 0)  # what candidate code reads is not the server's next task
    os.dup2(printed, 1)
    os.dup2(printed, 2)
    os.dup2(piped, PIPE)
    sys.argv = ["naive_judge.py", "candidate.py"]
    os.environ.update(task["variables"])


if __name__ == "__main__":
    arguments = sys.argv[1:]
    sys.exit(serve() if arguments == ["serve"] else judge(json.loads(arguments[0])))
