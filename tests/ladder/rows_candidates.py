"""Candidates for the rows target: an honest kernel, and one cheat for each check of L2, as changes of its text.

Each cheat wins against a judge that compares one answer with `torch.allclose`; `naive_verdicts` is that judge.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from kernelgen.ladder.correctness import check_correctness
from kernelgen.ladder.results import Result
from kernelgen.ladder.server import Server
from kernelgen.ladder.subject import Goal, Subject

HERE = Path(__file__).resolve().parent

HONEST = """\
import torch
import triton
import triton.language as tl


@triton.jit
def rows_kernel(x_ptr, w_ptr, y_ptr, total_ptr, factor, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, N, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        inside = columns < N
        x = tl.load(x_ptr + row * N + columns, mask=inside, other=0.0)
        y = x * tl.load(w_ptr + columns, mask=inside, other=0.0) * factor
        tl.store(y_ptr + row * N + columns, y, mask=inside)
        total += y
    tl.store(total_ptr + row, tl.sum(total, axis=0))


def rows(x, w, factor):
    y = torch.empty_like(x)
    total = torch.empty(x.shape[0], device=x.device)
    rows_kernel[(x.shape[0],)](x, w, y, total, factor, x.shape[1], BLOCK=64)
    return y, total
"""
LAUNCH = "    rows_kernel[(x.shape[0],)](x, w, y, total, factor, x.shape[1], BLOCK=64)\n"
RETURN = "    return y, total\n"
ALLOCATE = "    y = torch.empty_like(x)\n    total = torch.empty(x.shape[0], device=x.device)\n"
STORE = "        tl.store(y_ptr + row * N + columns, y, mask=inside)\n"
PRODUCT = "        y = x * tl.load(w_ptr + columns, mask=inside, other=0.0) * factor\n"
TOTAL = "    tl.store(total_ptr + row, tl.sum(total, axis=0))\n"
TORCH_ROWS = "    y = x * w * factor\n    total = y.sum(dim=-1)\n"
DEEPER_TORCH_ROWS = TORCH_ROWS.replace("    ", "        ")


def changed(old: str, new: str, source: str = HONEST) -> str:
    """The source with one passage replaced."""
    assert source.count(old) == 1, old
    return source.replace(old, new)


# by check id: what refuses it, and the candidate
CHEATS: dict[str, str] = {
    # a view with the right values, laid out otherwise
    "correctness.structure": changed(RETURN, "    return y.t().contiguous().t(), total\n"),
    # computes when it is looked at
    "correctness.structure lazy": "import torch\n\nclass Lazy(torch.Tensor):\n    pass\n\n"
    + changed(RETURN, "    return y.as_subclass(Lazy), total\n"),
    # large values are cut off
    "correctness.values": changed(STORE, "        y = tl.minimum(tl.maximum(y, -100.0), 100.0)\n" + STORE),
    "correctness.error_budget": changed(STORE, STORE.replace(", y,", ", y.to(tl.bfloat16).to(tl.float32),")),
    # 0 / 0 where an input is zero off the padding
    "correctness.not_finite": changed(PRODUCT, PRODUCT + "        y = y * x / tl.where(columns == N - 1, 1.0, x)\n"),
    "correctness.exact": changed(STORE, "        y = y * 1.000001\n" + STORE),
    "correctness.inputs_changed": changed(TOTAL, TOTAL + "    tl.store(x_ptr + row * N, 0.0)\n"),
    # the answer by address and version
    "correctness.stale": "KNOWN = {}\n"
    + changed(
        ALLOCATE,
        "    key = (x.data_ptr(), x._version, x.shape)\n    if key in KNOWN:\n"
        "        return tuple(t.clone() for t in KNOWN[key])\n" + ALLOCATE,
    ).replace(RETURN, "    KNOWN[key] = (y, total)\n    return y.clone(), total.clone()\n"),
    # one buffer for every call
    "correctness.overwritten": "BUFFERS = {}\n"
    + changed(
        ALLOCATE,
        "    if x.shape not in BUFFERS:\n"
        "        BUFFERS[x.shape] = torch.empty_like(x), torch.empty(x.shape[0], device=x.device)\n"
        "    y, total = BUFFERS[x.shape]\n",
    ),
    # both outputs start at the same byte of one buffer, so that a later one can only be right by luck of order
    "correctness.overlap": "HELD = {}\n"
    + changed(
        "    total = torch.empty(x.shape[0], device=x.device)\n",
        "    total = HELD.setdefault(x.shape[0], torch.empty(x.shape[0], device=x.device))\n",
    ),
    "correctness.guard_band": changed(TOTAL, TOTAL + "    tl.store(w_ptr + N, 0.0)\n"),
    # fresh memory is often zero
    "correctness.uninitialised": changed(STORE, STORE.replace("mask=inside", "mask=inside & (columns < N - 1)")),
    "correctness.not_deterministic": "CALLS = []\n"
    + changed(LAUNCH, "    CALLS.append(1)\n" + LAUNCH.replace("factor,", "factor * (1.0 + 1e-6 * len(CALLS)),")),
    # a clock that says what it likes
    "correctness.flags": "import time\n\ntime.perf_counter = lambda: 0.0\n" + HONEST,
    "correctness.flags dtype": changed(RETURN, "    torch.set_default_dtype(torch.float64)\n" + RETURN),
    "correctness.threads": "import threading\nimport time\n\n"
    + changed(RETURN, "    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n" + RETURN),
    # what was handed over is not what stays
    "correctness.late_work": "import threading\n\n"
    + changed(RETURN, "    threading.Timer(0.08, y.zero_).start()\n" + RETURN),
    "correctness.no_launch": changed(ALLOCATE + LAUNCH, TORCH_ROWS),
    "correctness.library_work": changed(LAUNCH, LAUNCH + "    total = y.sum(dim=-1)\n"),
    "correctness.fallback": changed(
        LAUNCH,
        f"    try:\n    {LAUNCH}    except RuntimeError:\n    {TORCH_ROWS.replace('    total', '        total')}",
    ),
    # launched, and numpy does it over
    "correctness.ignored_kernel": changed(
        LAUNCH,
        LAUNCH + "    y.numpy()[:] = x.numpy() * w.numpy() * factor\n    total.numpy()[:] = y.numpy().sum(axis=-1)\n",
    ),
    # right as long as it may be looked at
    "correctness.sniffing": "CALLS = []\n"
    + changed(
        LAUNCH, LAUNCH.replace("x.shape[1], BLOCK", "x.shape[1] if len(CALLS) == 1 else x.shape[1] - 9, BLOCK")
    ).replace(ALLOCATE, "    CALLS.append(1)\n" + ALLOCATE.replace("empty_like", "zeros_like")),
    "correctness.sniffing frames": "import sys\n\n"
    + changed(RETURN, '    if "bench" in sys._getframe(1).f_code.co_name:\n        return None\n' + RETURN),
    # small rows count for nothing
    "correctness.scaled_inputs": changed(
        PRODUCT, PRODUCT + "        y = tl.where(tl.max(tl.abs(x), axis=0) < 0.2, 0.0, y)\n"
    ),
    # whole blocks alone
    "correctness.shapes": changed("range(0, N, BLOCK)", "range(0, N // BLOCK * BLOCK, BLOCK)").replace(
        "empty_like", "zeros_like"
    ),
    "correctness.raised": changed(
        ALLOCATE, "    if x.shape[1] % 2:\n        raise ValueError('even only')\n" + ALLOCATE
    ),
}

NAIVE = """
import json, os, sys
from kernelgen.ladder import interpreter
interpreter.install()
import ctypes, importlib.util, torch
torch.set_num_threads(1)
ctypes.CDLL(None).mallopt(-3, 1 << 16)  # large memory comes fresh from the system
spec = importlib.util.spec_from_file_location("rows_target", sys.argv[1])
target = importlib.util.module_from_spec(spec)
spec.loader.exec_module(target)
passed = {}
for name, source in json.loads(sys.stdin.read()).items():
    # large enough for memory fresh from the system, in few steps of the interpreter
    source = source.replace("BLOCK=64", "BLOCK=16384")
    reading, writing = os.pipe()
    if os.fork() == 0:
        file = f"candidate_{len(passed)}.py"
        with open(file, "w") as out:
            out.write(source)
        module = {"__name__": "candidate"}
        exec(compile(source, file, "exec"), module)
        inputs = target.make_inputs({"T": 4, "N": 16384}, "plain", 5, "cpu")
        expected = target.reference(**inputs)
        got = module["rows"](**inputs)
        right = all(torch.allclose(g, e, rtol=1e-2, atol=1e-2) for g, e in zip(got, expected))
        os.write(writing, b"1" if right else b"0")
        os._exit(0)
    os.close(writing)
    passed[name] = os.read(reading, 1) == b"1"
    os.wait()
print(json.dumps(passed))
"""


def naive_verdicts(folder: Path) -> dict[str, bool]:
    """Whether each cheat passes one call and one `allclose`, in a process of its own under the interpreter."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", NAIVE, str(HERE / "rows_target.py")],
        input=json.dumps(CHEATS),
        cwd=folder,
        env={**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": str(HERE.parents[1])},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    verdicts: dict[str, bool] = json.loads(done.stdout.splitlines()[-1])
    return verdicts


GOAL = Goal(
    name="rows",
    module="rows_target.py",
    folder=str(HERE),
    inputs=(("x", "float32", ["T", "N"]), ("w", "float32", ["N"])),
    scalars={"factor": "float"},
    outputs=(("y", "float32", ["T", "N"]), ("total", "float32", ["T"])),
    smoke={"t2_n64": {"T": 2, "N": 64}, "t4_n128": {"T": 4, "N": 128}},
    edge={"t1_n65": {"T": 1, "N": 65}, "t3_n127": {"T": 3, "N": 127}},
    tune={"t4096_n4096": {"T": 4096, "N": 4096}},
    heldout={},
    kinds=("plain", "stressed", "exact"),
    exact_kinds=("exact",),
    tolerance={"y": (1e-5, 1e-7), "total": (1e-5, 1e-6)},
    deterministic=True,
    instructions=(),
    arch="sm_90a",
    compute_capability=90,
    shared_bytes_per_block=232448,
)


def subject(source: str, **changes: Any) -> Subject:
    """A candidate for the rows target; `changes` are fields of the subject."""
    whole = Subject("g1", "python", "triton", source, "", "rows", GOAL)
    return replace(whole, **changes)


def judge(
    source: str, server: Server, *, seed: int | None = 7, timeout_s: float = 30.0, device: str = "cpu", **changes: Any
) -> Result:
    """The result of L2, on the CPU where nothing else is said."""
    return check_correctness(subject(source, **changes), server=server, device=device, seed=seed, timeout_s=timeout_s)
