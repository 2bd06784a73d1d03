"""Time and memory of importing large profiles: an ncu details page of 500,000 rows, a torch.profiler trace of 200 MB.

Both are the real example files repeated, the page's with new launch ids. Each import runs in a process of its own; wall
and CPU seconds and the peak resident set are the kernel's figures (`wait4`), the interpreter's start included.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROFILES = ROOT / "examples" / "profiles"
DETAILS_ROWS = 500_000
TRACE_BYTES = 200_000_000


def details_page(path: Path) -> int:
    """Write the page; returns its rows."""
    header, *body = csv.reader((PROFILES / "mla_decode_fp8.ncu_details.csv").read_text(encoding="utf-8").splitlines())
    launches = len({row[0] for row in body})
    rows = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n")
        writer.writerow(header)
        while rows < DETAILS_ROWS:
            shift = rows // len(body) * launches
            writer.writerows([str(int(row[0]) + shift), *row[1:]] for row in body)
            rows += len(body)
    return rows


def trace(path: Path) -> int:
    """Write the trace; returns its events."""
    whole = json.loads((PROFILES / "layer.torch_trace.json").read_text(encoding="utf-8"))
    events = whole.pop("traceEvents")
    once = ", ".join(json.dumps(event) for event in events)
    times = -(-TRACE_BYTES // len(once))
    with path.open("w", encoding="utf-8") as file:
        file.write(json.dumps(whole)[:-1] + ', "traceEvents": [' + once)
        file.writelines(", " + once for _ in range(times - 1))
        file.write("]}")
    return times * len(events)


def imported(path: Path) -> dict[str, float]:
    """Import a file in a process of its own; RuntimeError where that fails."""
    begin = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "benchmarks.profile_bench", str(path)], cwd=ROOT)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"importing {path.name} ended with {process.returncode}")
    return {
        "wall_s": time.perf_counter() - begin,
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "peak_mib": usage.ru_maxrss / 1024,
    }


def as_importer(path: Path) -> None:
    """The import as the command line does it, short of the log."""
    from kernelgen.catalog import Catalog
    from kernelgen.door.compose import catalog
    from kernelgen.profile.importer import import_profile
    from kernelgen.records import Champion, to_text

    choices: Catalog = catalog([])
    target, _ = choices.target("mla_decode_fp8")
    profile, _ = import_profile(
        path,
        target=target,
        hardware=choices.hardware("h200"),
        shape=target.profile_shape,
        flops=1e9,
        floor_bytes=1e8,
        champion=Champion(
            id="naive", target=target.name, hardware="h200", origin="naive", language="python",
            entry_point=target.entry_point, source="",
        ),
    )  # fmt: skip
    to_text(profile)


def run() -> dict[str, object]:
    """Both imports."""
    with tempfile.TemporaryDirectory() as name:
        page, timeline = Path(name) / "details.csv", Path(name) / "trace.json"
        rows, events = details_page(page), trace(timeline)
        return {
            "ncu_details": {"rows": rows, "megabytes": page.stat().st_size / 1e6, **imported(page)},
            "torch_trace": {"events": events, "megabytes": timeline.stat().st_size / 1e6, **imported(timeline)},
        }


if __name__ == "__main__":
    if len(sys.argv) > 1:
        as_importer(Path(sys.argv[1]))
    else:
        print(json.dumps(run(), indent=2))
