"""A folder with seeded constraints and a real profile, campaigns run in it, and a function in place of a GPU machine.

Verdict lines have the worker's own form: its results, written by its own writer.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from kernelgen import cli
from kernelgen.eventlog.store import EventLog
from kernelgen.events import CampaignRound, ChampionNamed, Event
from kernelgen.generation import region
from kernelgen.ids import digest_text
from kernelgen.ladder.decide import decide
from kernelgen.ladder.results import Fault, Result
from kernelgen.ladder.work import lines
from kernelgen.ladder.work.jobs import Job, read_work
from kernelgen.records import Champion
from tests.judging.verdict_makers import measured

ROOT = Path(__file__).resolve().parents[2]
TARGET, SHAPE = "moe_dispatch_384expert", "t4096"
MACHINE = {"gpu": "NVIDIA H200", "driver": "570.1", "torch": "2.11.0"}
LEVEL_S = 10.0
"""Seconds of each level there."""
RUN = """
import sys
from kernelgen import cli
cli.COMMANDS.setdefault("campaign", ("campaign", ""))
sys.exit(cli.main(sys.argv[1:]))
"""
RATIOS = (0.9, 1.0, 1.25, 1.1)
"""What the stand-in for a GPU finds: slower, no difference, two wins."""

Oracle = Callable[[Job], float]


def by_digest(job: Job) -> float:
    """A ratio that follows from what is measured against what, so that it is the same in every log."""
    assert job.champion is not None
    return RATIOS[int(digest_text(job.digest + job.champion.digest)[-1], 16) % len(RATIOS)]


def results(job: Job, ratio: float) -> list[Result]:
    """What a worker would find of a right candidate with this ratio at every shape."""
    assert job.champion is not None
    champion = {"id": job.champion.id, "digest": job.champion.digest}
    found = [Result("L1", "passed", "compiled"), Result("L2", "passed", "right", environment={"gpu": MACHINE["gpu"]})]
    l3 = measured("L3", dict(job.subject.goal.tune), ratio)
    found.append(replace(l3, details={**l3.details, "champion": champion}))
    if l3.outcome == "passed":
        l4 = decide(measured("L4", dict(job.subject.goal.heldout), ratio), minimum_effect=0.01, largest_loss=0.02)
        found.append(replace(l4, details={**l4.details, "champion": champion}))
    return [replace(result, seconds=LEVEL_S) for result in found]


def no_build(check: str, **facts: Any) -> list[Result]:
    """What a worker finds of a candidate that its compiler refuses."""
    fault = Fault(check, "it cannot run", "ptxas: too many registers", None, facts)
    said = {"compiler": "triton", "compiler_version": version("triton")}
    return [Result("L1", "failed", fault.reason, (fault,), environment=said, seconds=LEVEL_S)]


def work_lines(folder: Path, bundle: str, found: Callable[[Job], list[Result]]) -> list[str]:
    """The lines that a worker leaves of a bundle."""
    return [lines.line(bundle, job, found(job), MACHINE) for job in read_work(folder).jobs]


class Desk:
    """A working folder with a log."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.log = folder, folder / "events.db"

    def places(self) -> list[str]:
        """Keys that every command here is given."""
        return [f"events={self.log}", f"constraints={self.folder / 'constraints.jsonl'}", f"out={self.folder}"]

    def command(self, *arguments: str) -> None:
        """Another command, which must succeed."""
        assert cli.main([*arguments, *self.places()]) == 0

    def campaign(self, *arguments: str, code: int = 0) -> list[dict[str, Any]]:
        """`kernelgen campaign` in a process of its own: its records."""
        command = [sys.executable, "-c", RUN, "campaign", *arguments, *self.places(), "--json"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == code, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    def events(self, kind: type[Event] | Any) -> list[Any]:
        """The log's events of a class, oldest first."""
        with EventLog.read(self.log) as log:
            return [row.event for row in log.rows() if isinstance(row.event, kind)]

    def answered(self, found: Callable[[Job], list[Result]]) -> list[str]:
        """The last round's lines, written beside its bundle."""
        last = self.events(CampaignRound)[-1]
        texts = work_lines(Path(last.folder), last.bundle, found)
        (Path(last.folder) / "verdicts.jsonl").write_text("\n".join(texts) + "\n")
        return texts

    def ingest(self) -> None:
        """Ingest the last round's lines."""
        last = self.events(CampaignRound)[-1]
        self.command("ingest", str(Path(last.folder) / "verdicts.jsonl"))

    def champions(self) -> list[str]:
        """Digests of the sources of all champions, oldest first."""
        with EventLog.read(self.log) as log:
            named = [row.event for row in log.rows() if isinstance(row.event, ChampionNamed)]
            return [digest_text(Champion.model_validate_json(log.text(event.champion)).source) for event in named]

    def now(self) -> str | None:
        """Digest of the champion's source; None while the naive one holds."""
        with EventLog.read(self.log) as log:
            champion = region.named_champion(log, TARGET, "h200")
        return None if champion is None else digest_text(champion.source)

    def verifies(self) -> bool:
        """Whether the log is whole and every generation replays."""
        places = self.places()
        return cli.main(["log", "verify", *places]) == 0 and cli.main(["replay", "--all", *places]) == 0


def of(records: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    """The records of a kind."""
    return [record for record in records if record["record"] == kind]
