"""What a bundle asks of its worker, as plain data and as the JSON of `jobs.json`.

A job names its champion by the digest of its source; a target's module lies in the bundle, at a folder relative to it.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from kernelgen.errors import BadInput
from kernelgen.ladder.benchmark.terms import Ceilings
from kernelgen.ladder.subject import Goal, Subject
from kernelgen.ladder.work.sums import canonical, digest_text

JOBS = "jobs.json"
FORMAT = 1
"""Of `jobs.json` and of the worker's lines; a worker travels with its jobs, so nothing older is read."""
WorkLevel = Literal["L1", "L2", "L3", "L4"]
LEVELS: tuple[WorkLevel, ...] = ("L1", "L2", "L3", "L4")
"""What a worker climbs; L0 stays where the log is."""
Clock = Literal["gpu", "cpu"]


@dataclass(frozen=True)
class Settings:
    """What the policy says of a worker's levels."""

    level: WorkLevel
    """Climb no higher."""
    timeout_s: float
    """Longest time that a candidate may take in L1, and in L2."""
    pairs: int
    """Interleaved pairs of measurements a shape."""
    minimum_effect: float
    """A smaller difference is none."""
    largest_loss: float
    """Largest relative loss on any held-out shape."""
    clock: Clock = "gpu"
    """`cpu`: L3 and L4 go through Triton's interpreter, to try the protocol; their times mean nothing."""


@dataclass(frozen=True)
class Rival:
    """The champion that a candidate is measured against."""

    id: str
    """The champion's id."""
    digest: str
    """Of its source."""
    subject: Subject
    """What is run."""


@dataclass(frozen=True)
class Job:
    """One candidate to judge."""

    number: int
    """Its place in the bundle, from 1."""
    iteration_id: str
    """The candidate's id in the log."""
    hardware: str
    """Name of the hardware it is for."""
    gpu: str
    """The vendor's name of that GPU."""
    digest: str
    """Of the text that is judged: preamble and source."""
    subject: Subject
    """What is judged."""
    seeds: dict[str, int]
    """Seed of each level, drawn when the bundle was made."""
    champion: Rival | None = None
    """What it must beat; None below L3."""
    ceilings: Ceilings | None = None
    """What the GPU can do at most."""


@dataclass(frozen=True)
class Work:
    """A bundle's jobs."""

    settings: Settings
    """For all of them."""
    jobs: tuple[Job, ...]
    """In order."""

    def identity(self) -> str:
        """Digest of what is asked, whatever seeds were drawn and ids given to files: equal for the same bundle."""
        jobs = [{**asdict(job), "seeds": None, "iteration_id": None, "number": None} for job in self.jobs]
        return digest_text(canonical({"settings": asdict(self.settings), "jobs": jobs}))

    def as_text(self) -> str:
        """The text of `jobs.json`, each champion once."""
        rivals = {job.champion.digest: asdict(job.champion) for job in self.jobs if job.champion is not None}
        jobs = [{**asdict(job), "champion": None if job.champion is None else job.champion.digest} for job in self.jobs]
        record = {"format": FORMAT, "settings": asdict(self.settings), "champions": rivals, "jobs": jobs}
        return json.dumps(record, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def read_work(folder: Path, *, place: Path | None = None) -> Work:
    """The jobs of a bundle. Raises BadInput where they cannot be read.

    Args:
        folder: the bundle's.
        place: what targets' folders are relative to; None leaves them as they are written.
    """
    path = folder / JOBS
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        if record["format"] != FORMAT:
            raise BadInput(f"{path} has format {record['format']}; this worker reads {FORMAT}: bundle again.")
        rivals = {
            digest: Rival(**{**rival, "subject": subject_from(rival["subject"], place)})
            for digest, rival in record["champions"].items()
        }
        jobs = tuple(_job(job, rivals, place) for job in record["jobs"])
        return Work(Settings(**record["settings"]), jobs)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{path} is no list of a bundle's jobs: {type(error).__name__}: {error}") from error


def _job(record: dict[str, Any], rivals: dict[str, Rival], place: Path | None) -> Job:
    champion, ceilings = record["champion"], record["ceilings"]
    return Job(
        **{
            **record,
            "subject": subject_from(record["subject"], place),
            "champion": None if champion is None else rivals[champion],
            "ceilings": None if ceilings is None else Ceilings(**ceilings),
        }
    )


def subject_from(record: dict[str, Any], place: Path | None = None) -> Subject:
    """The subject that `asdict` wrote, its target's folder made absolute where a place is given."""
    goal = record["goal"]
    made = Goal(
        **{
            **goal,
            **{name: tuple(tuple(spec) for spec in goal[name]) for name in ("inputs", "outputs")},
            **{name: tuple(goal[name]) for name in ("kinds", "exact_kinds", "instructions")},
            "tolerance": {name: tuple(bound) for name, bound in goal["tolerance"].items()},
        }
    )
    if place is not None and made.folder is not None:
        made = replace(made, folder=str(place / made.folder))
    return Subject(**{**record, "goal": made})
