"""Runs every benchmark and writes `docs/benchmarks/cpu.json`, with the machine, the versions and the date."""

from __future__ import annotations

import json
import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from benchmarks import (
    compile_bench,
    constraints_bench,
    eventlog_bench,
    generate_bench,
    judge_bench,
    lm_bench,
    profile_bench,
)

OUT = Path(__file__).resolve().parent.parent / "docs" / "benchmarks" / "cpu.json"
PARTS = {
    "generate": generate_bench,
    "compile": compile_bench,
    "judge": judge_bench,
    "constraints": constraints_bench,
    "eventlog": eventlog_bench,
    "profile": profile_bench,
    "lm": lm_bench,
}
PACKAGES = ("kernelgen", "dspy", "hydra-core", "pydantic", "sqlite-utils", "torch", "triton")


def main() -> None:
    """Measure and write."""
    figures = {}
    for name, part in PARTS.items():
        print(f"measuring {name} ...", flush=True)
        figures[name] = part.run()
        print(json.dumps(figures[name], indent=2), flush=True)
    environment = {
        "date": datetime.now(UTC).date().isoformat(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "versions": {package: version(package) for package in PACKAGES},
        "recipe": "make bench",
    }
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps({"environment": environment, "figures": figures}, indent=2) + "\n")
    print(f"written to {OUT}")


if __name__ == "__main__":
    main()
