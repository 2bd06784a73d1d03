"""Times of whole commands, each a process of its own: help, one cold generation, jobs of a sweep, replay.

Wall time and peak memory (resident set, of the process and its children) are the kernel's own figures (`wait4`). Every
time is the median of REPEATS; judging is not part of any of them.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROFILES = Path(__file__).resolve().parent.parent / "examples" / "profiles"
REPEATS = 5
SWEEP_JOBS = 20
REPLAYED = 300
TARGETS = {"moe_dispatch_384expert": "t4096", "mla_decode_fp8": "b64_s4096_h64"}


def kernelgen(folder: Path, *arguments: str) -> tuple[float, float]:
    """Run one command in a folder; returns wall seconds and peak MiB."""
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "kernelgen.cli", *arguments], cwd=folder, stdout=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        raise RuntimeError(f"kernelgen {' '.join(arguments)} ended with {process.returncode}")
    return seconds, usage.ru_maxrss / 1024


def prepared(folder: Path) -> None:
    """A workspace with constraints and both profiles."""
    kernelgen(folder, "constraints", "seed", "hardware=h200")
    for target, shape in TARGETS.items():
        file = PROFILES / f"{target}.ncu_raw.csv"
        kernelgen(folder, "profile", "import", str(file), f"target={target}", f"shape={shape}")


def sweep(folder: Path, jobs: int) -> float:
    """Seconds of a basic multirun of so many jobs; seeds of the model tell them apart."""
    seeds = ",".join(str(n) for n in range(jobs))
    return kernelgen(folder, "generate", "judge=none", "-m", "target=mla_decode_fp8", "state=1", f"lm.seed={seeds}")[0]


def run() -> dict[str, object]:
    """Measure everything; about two minutes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepared(folder)
        help_s = [kernelgen(folder, "--help")[0] for _ in range(REPEATS)]
        once = ("generate", "judge=none", "target=moe_dispatch_384expert", "state=0")
        cold = [kernelgen(folder, *once) for _ in range(REPEATS)]
        few, many = (statistics.median(sweep(folder, n) for _ in range(3)) for n in (1, 1 + SWEEP_JOBS))
        while _generations(folder) < REPLAYED:
            sweep(folder, SWEEP_JOBS)
        generations = _generations(folder)
        replay_s, replay_mib = kernelgen(folder, "replay", "--all")
    return {
        "help_s": statistics.median(help_s),
        "cold_generate_s": statistics.median(seconds for seconds, _ in cold),
        "cold_generate_peak_mib": max(mib for _, mib in cold),
        "further_multirun_job_s": (many - few) / SWEEP_JOBS,
        "replay_generations": generations,
        "replay_s_with_start": replay_s,
        "replay_generations_per_s_with_start": generations / replay_s,
        "replay_peak_mib": replay_mib,
    }


def _generations(folder: Path) -> int:
    from kernelgen.eventlog.store import EventLog

    with EventLog.read(folder / "events.db") as log:
        return sum(1 for _ in log.rows(kinds=("generation_requested",)))


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
