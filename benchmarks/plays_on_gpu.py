"""Checks and times the playbook's plays and the naive champions on a GPU, configuration by configuration.

    python benchmarks/plays_on_gpu.py [--seconds 330] [--target NAME] [--jobs 14] --file plays.jsonl

Needs Python, torch, Triton and PyYAML, and of kernelgen only `kernelgen.targets` and the files in conf/target. First
every configuration is compiled and checked against the target's reference, many at once, each in a process of its own:
one that faults costs only itself. Then those that were right are timed, one after another. Kernels of a play are
searched in turn, the others at their best so far. A line is one configuration at one tune shape; the last of a file and
shape has `best`, timed again.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import datetime
import importlib
import itertools
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

# a script: its package is not on the path before
from benchmarks.clock import METHOD, Clock  # noqa: E402
from benchmarks.kernel_files import Kernel, Region, kernels_of, options_of  # noqa: E402

TARGETS = ("mla_decode_fp8", "moe_dispatch_384expert")
RECIPE = "plays_on_gpu/2"
CHECK_SECONDS = 150
"""What one process may take to check one configuration at every shape."""
FURTHER_KINDS = ("skewed", "ragged", "stressed")


def check(kernel: Kernel, name: str, index: int) -> dict[str, str]:
    """What is wrong with one configuration by shape: every tune shape, the first with every kind of input."""
    kernel.use({**kernel.best, name: kernel.table[name][index]})
    wrong = {}
    for number, (shape, dims) in enumerate(kernel.region.shapes.items()):
        try:
            found = [f"{kind}: {sentence}" for kind in ("plain", *(FURTHER_KINDS if number == 0 else ()))
                     for sentence in kernel.region.wrong(kernel.entry, dims, kind)]  # fmt: skip
        except Exception as error:  # noqa: BLE001 - whatever a kernel raises is what is recorded of it
            found = [f"{type(error).__name__}: {str(error)[:300]}"]
        if found:
            wrong[shape] = "; ".join(found)
    return wrong


def measure(kernel: Kernel, shape: str, wrong: dict[str, dict[str, str]], clock: Clock) -> Iterator[dict[str, Any]]:
    """A line for each configuration launched at one shape, then one for the best of each kernel together."""
    inputs = kernel.region.module.make_inputs(kernel.region.shapes[shape], "plain", 1, "cuda")
    head = kernel.head(shape)
    kernel.best = {name: configs[0] for name, configs in kernel.table.items()}
    names = kernel.launched(inputs)
    for name in names:
        fastest = float("inf")
        for index, config in enumerate(kernel.table[name]):
            line = {**head, "kernel": name, "config": options_of(config)}
            fault = wrong.get(f"{name}/{index}", {}).get(shape)
            if fault is not None:
                yield {**line, "correct": False, "fault": fault}
                continue
            kernel.use({**kernel.best, name: config})
            timing = clock.time(lambda: kernel.entry(**inputs))
            yield {**line, "correct": True, **timing}
            if timing["us"] < fastest:
                fastest, kernel.best[name] = timing["us"], config
        if fastest == float("inf"):
            return
    kernel.use(kernel.best)
    timing = clock.time(lambda: kernel.entry(**inputs))
    best = {name: options_of(kernel.best[name]) for name in names}
    yield {**head, "best": best, "correct": True, **timing, "of_floor": round(head["floor_us"] / timing["us"], 3)}


def child(*arguments: str, seconds: float) -> tuple[int, str, str]:
    """This script again: exit code, standard output and the last errors named."""
    command = [sys.executable, __file__, *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return 124, "", f"took more than {seconds:.0f} s"
    named = [line for line in done.stderr.splitlines() if "rror:" in line]
    return done.returncode, done.stdout, " | ".join(named[-3:])[:400]


def check_all(jobs: int, found: list[tuple[str, Path, dict[str, int]]]) -> dict[str, dict[str, dict[str, str]]]:
    """Faults by file and constants, then by kernel and configuration, then by shape."""

    def one(task: tuple[str, Path, str, int]) -> list[dict[str, str]]:
        target, path, name, index = task
        forms = [constants for _, file, constants in found if file == path]
        code, out, err = child("--check", target, str(path), json.dumps(forms), name, str(index), seconds=CHECK_SECONDS)
        every = dict.fromkeys(Region(target).shapes, f"exit {code}: {err}")
        answers: list[dict[str, str]] = [every] * len(forms) if code else json.loads(out.splitlines()[-1])
        return answers

    tasks = [(target, path, name, index) for target, path in dict.fromkeys(item[:2] for item in found)
             for name, configs in Kernel(Region(target), path, {}).table.items()
             for index in range(len(configs))]  # fmt: skip
    faults: dict[str, dict[str, dict[str, str]]] = {}
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for (_, path, name, index), answers in zip(tasks, pool.map(one, tasks), strict=True):
            forms = [constants for _, file, constants in found if file == path]
            for constants, wrong in zip(forms, answers, strict=True):
                faults.setdefault(key_of(path, constants), {})[f"{name}/{index}"] = wrong
    return faults


def key_of(path: Path, constants: dict[str, int]) -> str:
    """A kernel file with its constants, as text."""
    return f"{path} {json.dumps(constants)}"


def run_all(targets: list[str], jobs: int, seconds: float, file: Path) -> int:
    """Everything; 1 where a file gave no right answer at some shape or the time ran out."""
    deadline = time.monotonic() + seconds
    found = [(target, *item) for target in targets for item in kernels_of(Region(target))]
    driver = subprocess.run(
        ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
        capture_output=True,
        text=True,
        check=True,
    )
    lines: list[dict[str, Any]] = [{
        "recipe": RECIPE, "method": METHOD, "device": torch.cuda.get_device_name(), "driver": driver.stdout.strip(),
        "torch": torch.__version__, "triton": importlib.import_module("triton").__version__,
        "date": datetime.date.today().isoformat(),
    }]  # fmt: skip
    faults = check_all(jobs, found)
    print(f"checked in {seconds - (deadline - time.monotonic()):.0f} s", file=sys.stderr, flush=True)
    for target, path, constants in found:
        wrong = json.dumps(faults[key_of(path, constants)])
        left = deadline - time.monotonic()
        code, out, err = child("--time", target, str(path), json.dumps(constants), wrong, seconds=max(left, 1))
        lines += [json.loads(line) for line in out.splitlines()]
        if code:
            lines.append({"target": target, "file": path.stem, "constants": constants, "exit": code, "error": err})
        file.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    for line in lines:
        if "best" in line or "error" in line:
            print({key: line.get(key) for key in ("file", "constants", "shape", "us", "of_floor", "best", "error")})
    wanted = sum(len(Region(target).shapes) for target, _, _ in found)
    return int(sum("best" in line for line in lines) < wanted)


def main() -> int:
    """See the top."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--seconds", type=float, default=330, help="for everything")
    parser.add_argument("--target", choices=TARGETS, help="only this target")
    parser.add_argument("--jobs", type=int, default=14, help="configurations checked at once")
    parser.add_argument("--file", type=Path, default=Path("plays.jsonl"), help="where the lines go")
    parser.add_argument("--check", nargs=5, help=argparse.SUPPRESS)
    parser.add_argument("--time", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.check:
        target, path, forms, name, index = options.check
        region = Region(target)
        print(json.dumps([check(Kernel(region, Path(path), form), name, int(index)) for form in json.loads(forms)]))
        return 0
    if options.time:
        target, path, constants, wrong = options.time
        kernel, clock = Kernel(Region(target), Path(path), json.loads(constants)), Clock()
        for line in itertools.chain.from_iterable(
            measure(kernel, shape, json.loads(wrong), clock) for shape in kernel.region.shapes
        ):
            print(json.dumps(line), flush=True)
        return 0
    return run_all([options.target] if options.target else list(TARGETS), options.jobs, options.seconds, options.file)


if __name__ == "__main__":
    sys.exit(main())
