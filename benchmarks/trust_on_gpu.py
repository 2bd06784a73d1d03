"""Whether the benchmark can be trusted, on a GPU: a kernel against itself, a copy that does 3% more, and do_bench.

    python benchmarks/trust_on_gpu.py [--out FOLDER] [--trials 100] [--attacks]

Needs Python, torch, Triton and PyYAML, and of kernelgen only the ladder and the targets. A trial is a benchmark of some
pairs with inputs of its own; trials share processes and graphs. Seeds are fixed here. Writes trust.json, and prints.
`--dry` runs the trials tiny, on a CPU through Triton's interpreter: to see that the script runs.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import importlib.util
import json
import os
import statistics
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
import yaml

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

# a script: the packages are not on the path before
from kernelgen.ladder.benchmark import Ceilings, Terms3, measure  # noqa: E402
from kernelgen.ladder.benchmark.bench import Bench, Mode  # noqa: E402
from kernelgen.ladder.benchmark.judgement import (  # noqa: E402
    clock_difference,
    decided,
    measured,
)
from kernelgen.ladder.benchmark.run import Run  # noqa: E402
from kernelgen.ladder.benchmark.surroundings import gpu_now  # noqa: E402
from kernelgen.ladder.benchmark.terms import recipe_id  # noqa: E402
from kernelgen.ladder.server import Server  # noqa: E402
from kernelgen.ladder.subject import Goal, Subject  # noqa: E402
from kernelgen.targets.code import champion_source, load_code  # noqa: E402

SEED_SAME, SEED_SLOWER = 20261201, 20261202
PAIRS = 8
TRIALS_S = 600.0
ELEMENTS = 1 << 24
# a launch and the ramp of a kernel are not slower where it reads more
MORE = 0.032
BLOCK = 1024
DRY_ELEMENTS = 1 << 12
H200 = Ceilings(bytes_per_s=4.26e12, flops_per_s=677e12, peak_bytes_per_s=4.8e12, peak_flops_per_s=1979e12)
KERNELS = (("moe_combine", "T", 1024), ("moe_gate_k26", "T", 64))
ATTACKS = ("A1", "A7", "A8", "A9", "A10", "A13")

HEAD = """\
import torch
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, out_ptr, rest_ptr, n, whole, BLOCK: tl.constexpr, MORE: tl.constexpr):
    places = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + places, mask=places < whole)
    tl.store(out_ptr + places, 2.0 * x, mask=places < n)
    if MORE:
        tl.store(rest_ptr + places - n, x, mask=(places >= n) & (places < whole))


def scaled(x, n):
    out = torch.empty(n, dtype=x.dtype, device=x.device)
"""
PLAIN = (
    HEAD + "    copy_kernel[(triton.cdiv(n, 1024),)](x, out, out, n, n, BLOCK=1024, MORE=False)\n    return (out,)\n"
)
SLOWED = (
    HEAD
    + "    rest = torch.empty(x.numel() - n, dtype=x.dtype, device=x.device)\n"
    + "    copy_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, rest, n, x.numel(), BLOCK=1024, MORE=True)\n"
    + "    return (out,)\n"
)


def scaled_goal(elements: int = ELEMENTS) -> Goal:
    """The goal of `trust_target`."""
    more = -(-round(elements * MORE) // BLOCK) * BLOCK
    return Goal(
        name="scaled", module="trust_target.py", folder=str(ROOT / "benchmarks"),
        inputs=(("x", "float32", ["N+P"]),), scalars={"n": "int"}, outputs=(("out", "float32", ["N"]),),
        smoke={}, edge={}, tune={f"n{elements}": {"N": elements, "P": more}}, heldout={},
        kinds=("plain",), exact_kinds=("plain",), tolerance={"out": (0.0, 0.0)}, deterministic=True, instructions=(),
        arch="sm_90a", compute_capability=90, shared_bytes_per_block=232448,
    )  # fmt: skip


def champion_of(name: str, dimension: str, extent: int) -> Subject:
    """A target's naive champion, at the timed shape with that extent."""
    target: dict[str, Any] = yaml.safe_load((ROOT / "conf" / "target" / f"{name}.yaml").read_text("utf-8"))
    shapes = target["shapes"]
    sides = [tuple((one["name"], one["dtype"], one["shape"]) for one in target[side]) for side in ("inputs", "outputs")]
    tune = {shape: dims for shape, dims in shapes["tune"].items() if dims[dimension] == extent}
    goal = Goal(
        name=name, module=target["module"], folder=None, inputs=sides[0],
        scalars={one["name"]: one["type"] for one in target.get("scalars", ())}, outputs=sides[1],
        smoke=shapes["smoke"], edge=shapes["edge"], tune=dict(list(tune.items())[:1]), heldout=shapes["heldout"],
        kinds=tuple(target["input_kinds"]), exact_kinds=tuple(target.get("exact_kinds", ())),
        tolerance={key: (float(one["rtol"]), float(one["atol"])) for key, one in target["tolerance"].items()},
        deterministic=target.get("deterministic", True), instructions=tuple(target.get("instructions", ())),
        arch="sm_90a", compute_capability=90, shared_bytes_per_block=232448,
    )  # fmt: skip
    source = champion_source(target["champion"], ROOT / "conf" / "target")
    return Subject(name, "python", "triton", source, "", target["entry_point"], goal)


def trials(server: Server, source: str, count: int, seed: int, name: str, *, dry: bool) -> dict[str, Any]:
    """So many trials of a kernel against the plain one; what they found."""
    device = "cpu" if dry else "cuda"
    mode: Mode = "calls" if dry else "graph"
    goal, terms = scaled_goal(DRY_ELEMENTS if dry else ELEMENTS), Terms3(pairs=PAIRS, shape_s=TRIALS_S)
    plain = Subject("plain", "python", "triton", PLAIN, "", "scaled", goal)
    code = load_code(goal.module, ROOT / "benchmarks")
    sides: Any = {"candidate": replace(plain, source=source), "champion": plain}
    run = Run(sides, {}, code, goal.tune, lambda _: server, device, terms, seed)
    found, ratios, began = [], [], time.monotonic()
    with Bench(sides["candidate"], code, run.seat, device=device, terms=terms, seed=seed, mode=mode) as bench:
        (shape, dims), *_ = goal.tune.items()
        bench.begin(shape, dims, PAIRS)
        ready_s = time.monotonic() - began
        print(f"{name}: ready after {ready_s:.1f} s; memory {bench.memory} {bench.notes}; {bench.shape}", flush=True)
        for number in range(count):
            pairs = [bench.pair() for _ in range(PAIRS)]
            one = measured(bench.shape, pairs, terms.confidence, code.bytes_moved(dims), code.flops(dims))
            ratios.append(one.interval.ratio)
            found.append({
                **one.interval.as_dict(), "is": decided(one.interval, terms.minimum_effect),
                "candidate_us": round(one.us("candidate"), 3), "champion_us": round(one.us("champion"), 3),
                "spread": round(one.spread("champion"), 4),
                "blank_us": round(1e6 * statistics.median(pair.walls["blank"] for pair in pairs), 1),
                "clock_us": round(1e6 * clock_difference(one, "candidate"), 1),
            })  # fmt: skip
            if number % 10 == 0:
                print(name, number, f"{time.monotonic() - began:.1f} s", found[-1], flush=True)
        bench.finish(pairs)
        record = {**asdict(bench.shape), "memory": bench.memory, "notes": bench.notes}
    counts = {word: sum(one["is"] == word for one in found) for word in ("faster", "no_difference", "slower")}
    seconds = time.monotonic() - began
    summary = {
        "trials": count, "pairs": PAIRS, **counts, "median_ratio": round(statistics.median(ratios), 5),
        "least_ratio": round(min(ratios), 5), "largest_ratio": round(max(ratios), 5),
        "seconds": round(seconds, 1), "seconds_a_trial": round((seconds - ready_s) / count, 3), "seed": seed,
        "recipe": recipe_id(terms.recipe_on(device), terms, device=device, mode=mode, memory=record["memory"]),
    }  # fmt: skip
    print(name, json.dumps(summary), flush=True)
    return {**summary, "shape": record, "each": found}


def do_bench(subject: Subject, folder: Path) -> float:
    """Microseconds of a call by triton.testing.do_bench, in this process."""
    from triton.testing import do_bench as triton_do_bench

    file = folder / f"{subject.name}.py"
    file.write_text(subject.source, "utf-8")
    spec = importlib.util.spec_from_file_location(f"trusted_{subject.name}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    goal = subject.goal
    code = load_code(goal.module, Path(goal.folder) if goal.folder else None)
    (dims,) = goal.tune.values()
    inputs = code.make_inputs(dims, goal.kinds[0], 1, "cuda")
    entry = getattr(module, subject.entry_point)
    return float(1e3 * triton_do_bench(lambda: entry(**inputs), return_mode="median"))


def against_do_bench(server: Server, folder: Path) -> list[dict[str, Any]]:
    """Three kernels, each against itself by the benchmark, and by do_bench."""
    copy = Subject("scaled", "python", "triton", PLAIN, "", "scaled", scaled_goal())
    lines = []
    for subject in (copy, *(champion_of(*kernel) for kernel in KERNELS)):
        began = time.monotonic()
        result = measure(
            subject, subject, server_for=lambda _: server, device="cuda", policy=Terms3(pairs=10), seed=7, ceilings=H200
        )
        line: dict[str, Any] = {"kernel": subject.name, "outcome": result.outcome, "reason": result.reason}
        line["seconds"] = round(time.monotonic() - began, 1)
        for shape, figures in result.details.get("shapes", {}).items():
            us, other = figures["candidate"]["us"], do_bench(subject, folder)
            keys = ("ratio", "low", "high", "launch_floor_us", "unchanged_us", "floor_us", "calls", "rounds")
            line |= {"shape": shape, "us": us, "do_bench_us": round(other, 3), "over": round(other / us, 3)}
            line |= {key: figures[key] for key in keys} | {"of_floor": figures["candidate"]["of_floor"]}
        line |= {"notes": list(result.notes), "mode": result.details.get("recipe", {}).get("mode")}
        line["result"] = result.as_dict()
        lines.append(line)
        print("do_bench", json.dumps({key: value for key, value in line.items() if key != "result"}), flush=True)
    return lines


def attacks(server: Server) -> list[dict[str, Any]]:
    """The corpus' timing attacks that need this level, cheat and twin against the twin, no other level asked."""
    corpus = importlib.import_module("tests.attacks.corpus")
    lines = []
    for attack in corpus.attacks():
        if attack.id not in ATTACKS:
            continue
        for which in ("cheat", "twin"):
            began = time.monotonic()
            subject, twin = attack.subject(getattr(attack, which)), attack.subject(attack.twin)
            result = measure(
                subject,
                twin,
                server_for=lambda _: server,
                device="cuda",
                policy=Terms3(pairs=8),
                seed=11,
                ceilings=H200,
            )
            line = {
                "attack": attack.name, "which": which, "outcome": result.outcome, "reason": result.reason,
                "checks": [fault.check for fault in result.faults], "notes": list(result.notes),
                "seconds": round(time.monotonic() - began, 1),
            }  # fmt: skip
            lines.append(line)
            print("attack", json.dumps(line), flush=True)
    return lines


def main() -> int:
    """See the top; 1 where a promise is not kept."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", ".")), help="where trust.json goes")
    parser.add_argument("--trials", type=int, default=100, help="of each of the two experiments")
    parser.add_argument("--attacks", action="store_true", help="the timing attacks of tests/attacks too")
    parser.add_argument("--uncontained", action="store_true", help="where the machine cannot contain")
    parser.add_argument("--dry", action="store_true", help="on a CPU, to see that the script runs")
    options = parser.parse_args()
    dry = options.dry
    record: dict[str, Any] = {
        "date": datetime.date.today().isoformat(), "device": "none" if dry else torch.cuda.get_device_name(),
        "torch": torch.__version__, "triton": importlib.import_module("triton").__version__,
        "before": gpu_now(0),
    }  # fmt: skip

    def keep(**more: Any) -> None:
        record.update(more)
        (options.out / "trust.json").write_text(json.dumps(record, indent=1) + "\n", "utf-8")

    with Server("interpreter" if dry else "gpu", contained=not options.uncontained) as server:
        keep(environment=dict(server.environment))
        print(json.dumps(record), flush=True)
        keep(same=trials(server, PLAIN, options.trials, SEED_SAME, "same", dry=dry))
        keep(slower=trials(server, SLOWED, options.trials, SEED_SLOWER, "slower", dry=dry))
        if dry:
            return 0
        keep(do_bench=against_do_bench(server, options.out), after=gpu_now(0))
        if options.attacks:
            keep(attacks=attacks(server))
    same, slower = record["same"], record["slower"]
    kept = {
        "same is no difference in 99%": same["no_difference"] >= 0.99 * options.trials,
        "same within 0.5%": abs(same["median_ratio"] - 1) <= 0.005,
        "slower is found in 95%": slower["slower"] >= 0.95 * options.trials,
    }
    keep(kept=kept)
    print(json.dumps(kept), flush=True)
    return int(not all(kept.values()))


if __name__ == "__main__":
    sys.exit(main())
