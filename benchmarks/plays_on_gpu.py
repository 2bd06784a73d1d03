"""Checks and times the playbook's plays and the naive champions on a GPU, configuration by configuration.

    python benchmarks/plays_on_gpu.py [--seconds 330] [--target NAME] > plays.jsonl

Needs Python, torch and Triton, and of kernelgen only `kernelgen.targets`. Each line is one kernel configuration at one
tune shape: verdict against the target's reference, and microseconds with a cold L2 cache, as the difference of two CUDA
graphs (n times [read 192 MiB, call] and n times [read 192 MiB]), median of 15. Kernels of a play are searched one after
another, the others at their best so far. Every file runs in a process of its own: one that fails costs only itself.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from triton.runtime.errors import OutOfResources

ROOT = Path(__file__).resolve().parent.parent
FLUSH_BYTES = 192 * 1024 * 1024
REPEATS = 15
CALLS_PER_GRAPH = 10
GRACE_SECONDS = 60
# as in conf/target/*.yaml, which takes a YAML reader to load
TUNE: dict[str, dict[str, dict[str, int]]] = {
    "moe_dispatch_384expert": {"t16": {"T": 16}, "t512": {"T": 512}, "t4096": {"T": 4096}},
    "mla_decode_fp8": {
        "b64_s4096_h16": {"B": 64, "S": 4096, "h": 16},
        "b64_s4096_h64": {"B": 64, "S": 4096, "h": 64},
        "b16_s8192_h16": {"B": 16, "S": 8192, "h": 16},
        "b16_s8192_h64": {"B": 16, "S": 8192, "h": 64},
    },
}
TOLERANCE: dict[str, dict[str, tuple[float, float]]] = {
    "moe_dispatch_384expert": {
        "rows": (0, 0), "offsets": (0, 0), "ids": (0, 0), "weights": (1e-5, 1e-6), "pairs": (0, 0),
    },
    "mla_decode_fp8": {"out": (1e-2, 5e-2), "lse": (1e-3, 1e-2)},
}  # fmt: skip


class Clock:
    """Times a call with a cold L2 cache, in microseconds."""

    def __init__(self) -> None:
        self._buffer = torch.zeros(FLUSH_BYTES // 4, dtype=torch.float32, device="cuda")
        self._sum = torch.zeros((), dtype=torch.float32, device="cuda")
        self._empty = self._seconds(lambda: None)

    def microseconds(self, call: Callable[[], Any]) -> float:
        """Median time of one call, the flush taken off."""
        return (self._seconds(call) - self._empty) / CALLS_PER_GRAPH * 1e6

    def _flush(self) -> None:
        torch.sum(self._buffer, dim=0, out=self._sum)

    def _seconds(self, call: Callable[[], Any]) -> float:
        """Median time of one replay of n times [flush, call]."""
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            self._flush()
            call()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(CALLS_PER_GRAPH):
                self._flush()
                call()
        times = []
        for _ in range(REPEATS + 1):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            graph.replay()
            end.record()
            torch.cuda.synchronize()
            times.append(begin.elapsed_time(end) / 1e3)
        return statistics.median(times[1:])


def load(path: Path) -> ModuleType:
    """A kernel file as a module of its own."""
    spec = importlib.util.spec_from_file_location(f"{path.parent.name}_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def kernel_files(target: str) -> list[Path]:
    """The plays of a target, then its naive champion."""
    package = ROOT / "kernelgen"
    plays = sorted((package / "playbook" / "plays" / target).glob("*.py"))
    return [*plays, package / "targets" / "champions" / f"{target}.py"]


def searches(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """(kernel, configuration), one kernel after another."""
    for kernel, configs in module.AUTOTUNE_CONFIGS.items():
        for config in configs:
            yield kernel, config


def measure(target: str, path: Path, shape: str, clock: Clock, deadline: float) -> Iterator[dict[str, Any]]:
    """One record for each configuration of one file at one shape, then one for the best."""
    reference = importlib.import_module(f"kernelgen.targets.{target}")
    inputs = reference.make_inputs(TUNE[target][shape], "plain", 1, "cuda")
    expected = reference.reference(**inputs)
    module = load(path)
    entry = getattr(module, target)
    best = {kernel: configs[0] for kernel, configs in module.AUTOTUNE_CONFIGS.items()}
    fastest: dict[str, float] = {}
    head = {"target": target, "file": path.stem, "origin": path.parent.name, "shape": shape}
    for kernel, config in searches(module):
        if time.monotonic() > deadline:
            yield {**head, "error": "out of time"}
            break
        for name, chosen in {**best, kernel: config}.items():
            getattr(module, name).configs = [chosen]
        options = {**config.kwargs, "num_warps": config.num_warps, "num_stages": config.num_stages}
        record: dict[str, Any] = {**head, "kernel": kernel, "config": options}
        try:
            wrong = reference.compare(inputs, expected, entry(**inputs), TOLERANCE[target])
            record |= {"wrong": wrong[:2], "us": round(clock.microseconds(lambda: entry(**inputs)), 2)}
            if not wrong and record["us"] < fastest.get(kernel, float("inf")):
                fastest[kernel], best[kernel] = record["us"], config
        except OutOfResources as error:
            record["error"] = str(error)
        yield record
    chosen_configs = {kernel: str(config) for kernel, config in best.items()}
    yield {**head, "best_us": min(fastest.values(), default=None), "best": chosen_configs}


def run_file(target: str, path: Path, deadline: float) -> int:
    """In a process of its own: print the records of one file; 1 where it has no right answer at some shape."""
    clock = Clock()
    missing = 0
    for shape in TUNE[target]:
        record: dict[str, Any] = {}
        for record in measure(target, path, shape, clock, deadline):
            print(json.dumps(record), flush=True)
        missing |= record.get("best_us") is None
    return missing


def run_all(targets: list[str], deadline: float) -> int:
    """Each file in a child, so that a fault of the device costs only that file."""
    print(json.dumps({"device": torch.cuda.get_device_name(), "torch": torch.__version__}), flush=True)
    failed = 0
    for target in targets:
        for path in kernel_files(target):
            left = max(deadline - time.monotonic(), 0)
            command = [sys.executable, __file__, "--target", target, "--file", str(path), "--seconds", str(left)]
            try:
                code = subprocess.run(command, check=False, timeout=left + GRACE_SECONDS).returncode
            except subprocess.TimeoutExpired:
                code = 1
            if code:
                print(json.dumps({"target": target, "file": path.stem, "exit": code}), flush=True)
            failed += code != 0
    return 1 if failed else 0


def main() -> int:
    """Prints JSON lines; ends with 1 where a file gave no right answer at some shape."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--seconds", type=float, default=330, help="start no configuration after this")
    parser.add_argument("--target", choices=sorted(TUNE), help="only this target")
    parser.add_argument("--file", type=Path, help="only this kernel file, in this process")
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    deadline = time.monotonic() + options.seconds
    if options.file is not None:
        return run_file(options.target, options.file, deadline)
    return run_all([options.target] if options.target else sorted(TUNE, reverse=True), deadline)


if __name__ == "__main__":
    sys.exit(main())
