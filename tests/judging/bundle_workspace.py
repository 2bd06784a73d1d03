"""A tiny target of a user's own with a log, candidates of it, and the worker run as another machine would run it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kernelgen.catalog import Catalog, shipped_conf
from kernelgen.door import compose
from kernelgen.eventlog.store import EventLog
from kernelgen.events import VerdictReached
from kernelgen.judging.bundle import Bundled, bundle
from kernelgen.judging.ingest import Taken, ingest
from kernelgen.judging.session import Session, session
from kernelgen.judging.subjects import Judged, Place, find
from kernelgen.ladder.work.jobs import WorkLevel

POLICY = compose.compose(["policy.benchmark_pairs=5"], ()).config.policy

TARGET_YAML = """\
name: tripled
title: Values times three
summary: "out[i] = 3 * x[i] in fp32."
entry_point: tripled
inputs:
  - {name: x, dtype: float32, shape: [n], doc: Values.}
outputs:
  - {name: out, dtype: float32, shape: [n], doc: Tripled values.}
shapes:
  smoke:
    n100: {n: 100}
    n257: {n: 257}
  tune:
    n300: {n: 300}
  heldout:
    n511: {n: 511}
profile_shape: n300
input_kinds: [plain]
tolerance:
  out: {rtol: 1.0e-6, atol: 0, reason: "one rounding of fp32"}
calls_per_step: 1
module: tripled.py
champion: tripled_naive.py
"""
TARGET = """\
from pathlib import Path

FACTOR = float((Path(__file__).parent / "data" / "factor.txt").read_text())


def make_inputs(dims, kind, seed, device):
    import torch

    generator = torch.Generator(device=device).manual_seed(seed)
    return {"x": torch.randn(dims["n"], generator=generator, device=device)}


def reference(x):
    return (FACTOR * x,)


def compare(inputs, expected, got, tolerance):
    off = (got[0] - expected[0]).abs().max().item()
    return [] if off <= tolerance["out"][0] * expected[0].abs().max().item() else [f"out is off by {off:g}"]


def flops(dims):
    return float(dims["n"])


def bytes_moved(dims):
    return 8.0 * dims["n"]
"""
KERNEL = """\
import torch
import triton
import triton.language as tl


@triton.jit
def tripled_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, FACTOR * tl.load(x_ptr + at, mask=at < n), mask=at < n)


def tripled(x):
    out = torch.empty_like(x)
    tripled_kernel[(triton.cdiv(x.numel(), SIZE),)](x, out, x.numel(), BLOCK=SIZE)
    return (out,)
"""
CRASHING = TARGET.replace("return (FACTOR * x,)", "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
"""A target whose reference takes the judge's process with it, as a poisoned GPU would."""
RUN = "import sys; from kernelgen.door import {door}; sys.exit({door}.run(sys.argv[1:]))"
BLOCKED = ("pydantic", "hydra", "omegaconf", "dspy", "litellm", "sqlite_utils")
# an import hook that stands in every Python process of the worker: the judge's, the servers' and the candidates'
BLOCKER = f"""\
import sys


class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {BLOCKED}:
            raise ImportError(f"{{name}} is not on this machine")
        return None


sys.meta_path.insert(0, Blocker())
"""


def kernel(factor: float = 3.0, size: int = 128) -> str:
    """A candidate; right where the factor is 3."""
    return KERNEL.replace("FACTOR", repr(factor)).replace("SIZE", str(size))


class Workspace:
    """A folder with the target, a log and candidates."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.log, self.out = folder, folder / "events.db", folder / "bundle"
        place = folder / "mine" / "target"
        (place / "data").mkdir(parents=True)
        (place / "data" / "factor.txt").write_text("3.0\n")
        (place / "tripled.yaml").write_text(TARGET_YAML)
        (place / "tripled.py").write_text(TARGET)
        (place / "tripled_naive.py").write_text(kernel(size=64))
        crashing = TARGET_YAML.replace("name: tripled", "name: crashing").replace("tripled.py", "crashing.py")
        (place / "crashing.yaml").write_text(crashing)
        (place / "crashing.py").write_text(CRASHING)

    def candidate(self, name: str, source: str) -> Path:
        """Write a candidate's file."""
        path = self.folder / f"{name}.py"
        path.write_text(source)
        return path

    def door(self, door: str, *arguments: str) -> tuple[int, Any, str]:
        """Run a command in its own process: exit code, its records, and what it complained of."""
        places = (f"events={self.log}", f"constraints={self.folder / 'constraints.jsonl'}")
        command = [sys.executable, "-c", RUN.format(door=door), door, *arguments, *places, "--json"]
        done = subprocess.run(
            [*command, "--config-dir", str(self.folder / "mine")],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr

    def verdicts(self) -> list[VerdictReached]:
        """Every verdict of the log, oldest first."""
        with EventLog.read(self.log) as log:
            return [row.event for row in log.rows(kinds=("verdict_reached",)) if isinstance(row.event, VerdictReached)]


def worker_command(*arguments: str) -> list[str]:
    """The worker as it is run in a bundle's folder."""
    return [sys.executable, "-m", "kernelgen_worker", *arguments]


def bare_machine(folder: Path) -> dict[str, str]:
    """The environment of a machine that lacks what a worker must do without."""
    site = folder / "bare"
    site.mkdir(exist_ok=True)
    (site / "sitecustomize.py").write_text(BLOCKER)
    return {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(site)}


def work(workspace: Workspace, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the worker to its end on a bare machine."""
    return subprocess.run(
        worker_command(*arguments),
        cwd=workspace.out,
        env=bare_machine(workspace.folder),
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


class Desk(Workspace):
    """A workspace whose verbs are called in this process."""

    @contextmanager
    def session(self) -> Iterator[Session]:
        catalog = Catalog([shipped_conf(), self.folder / "mine"])
        with (
            EventLog.open(self.log) as log,
            session(log, self.folder / "constraints.jsonl", catalog, POLICY) as judging,
        ):
            yield judging

    def found(self, judging: Session, *names: str) -> list[Judged]:
        catalog = judging.rivals.catalog
        place = Place(judging.log, catalog, catalog.hardware("h200"), "tripled")
        return [find(str(self.folder / f"{name}.py"), place) for name in names]

    def bundled(self, *names: str, level: WorkLevel = "L4", **how: Any) -> Bundled:
        with self.session() as judging:
            return bundle(self.found(judging, *names), self.out, level, judging, **how)

    def ingested(self, *texts: str) -> list[Taken]:
        with self.session() as judging:
            return list(ingest(texts, judging))


def two_candidates(folder: Path) -> Desk:
    """A desk with the candidates `good` and `other`."""
    made = Desk(folder)
    made.candidate("good", kernel(size=256))
    made.candidate("other", kernel(size=512))
    return made
