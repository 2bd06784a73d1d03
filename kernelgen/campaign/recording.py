"""Starts the profilers on `kernelgen.ladder.profiling`, in processes with time limits; each leaves a file to import."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from kernelgen.errors import BadInput
from kernelgen.ladder import child

RECORDER = "kernelgen.ladder.profiling"
TRACE_S, NCU_S = 300.0, 600.0
"""Longest time of a recording; ncu replays every launch many times."""
NCU = ("--clock-control", "none", "--set", "full", "--profile-from-start", "off", "--target-processes", "all", "-f")
NO_PERMISSION = "ERR_NVGPUCTRPERM"


def trace(order: Path, folder: Path, name: str) -> Path:
    """torch.profiler's trace. Raises BadInput where there is none."""
    out = folder / f"{name}.torch_trace.json"
    ended = _run([*_recorder(order), "--with", "torch", "--out", out], folder, TRACE_S)
    if ended.failure is not None or not out.is_file():
        raise BadInput(f"The kernel could not be profiled: its process {ended.failure}: {_last_line(ended.output)}")
    return out


def counters(order: Path, folder: Path, name: str) -> Path:
    """The raw page of an ncu report. Raises BadInput saying why there is none."""
    found = shutil.which("ncu")
    if found is None:
        raise BadInput("no counters: ncu is not on PATH")
    report = folder / name
    ended = _run([found, *NCU, "-o", report, *_recorder(order), "--with", "ncu"], folder, NCU_S)
    whole = report.with_name(f"{report.name}.ncu-rep")
    if NO_PERMISSION in ended.output:
        raise BadInput("no counters: the driver lets only administrators read them (ERR_NVGPUCTRPERM)")
    if ended.failure is not None or not whole.is_file():
        raise BadInput(f"no counters: ncu {ended.failure or 'wrote no report'}: {_last_line(ended.output)}")
    page = report.with_name(f"{report.name}.ncu_raw.csv")
    printing = 'exec "$0" --import "$1" --page raw --csv --print-units base > "$2"'
    ended = _run(["/bin/sh", "-c", printing, found, whole, page], folder, NCU_S)
    if ended.failure is not None:
        raise BadInput(f"no counters: ncu --import {ended.failure}: {_last_line(ended.output)}")
    return page


def _recorder(order: Path) -> list[str | Path]:
    return [sys.executable, "-m", RECORDER, "--order", order]


def _run(command: Sequence[str | Path], folder: Path, timeout_s: float) -> child.Ended:
    root = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(part for part in (root, os.environ.get("PYTHONPATH", "")) if part)
    variables = {"PYTHONPATH": path, "TRITON_CACHE_DIR": str(folder / "cache")}
    return child.run(command, timeout_s=timeout_s, folder=folder, variables=variables)


def _last_line(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("==ERROR==")]
    return (errors or lines or ["it said nothing"])[-1]
