"""Bundles candidates for a machine with a GPU: which of them go, and a folder with all that judging them needs.

L0 is judged here, by the rules as they stand now: what it refuses gets its verdict at once and no GPU time. Every
candidate that goes has an L0 verdict in the log, which its verdicts from the other machine are held against. Seeds are
drawn here. The champion goes along by digest, so that a verdict says what it was measured against.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from kernelgen.errors import BadInput, Refused
from kernelgen.eventlog.chain import Row
from kernelgen.eventlog.store import EventLog
from kernelgen.events import VerdictReached
from kernelgen.generation.region import retracted_verdicts
from kernelgen.judging import packing
from kernelgen.judging.jobs import job_of, judged_digest, new_seed, settings_of
from kernelgen.judging.session import Session
from kernelgen.judging.subjects import Judged
from kernelgen.ladder.results import Result
from kernelgen.ladder.work import sums
from kernelgen.ladder.work.jobs import JOBS, LEVELS, Clock, Job, Work, WorkLevel, read_work
from kernelgen.records import Verdict

MEASURED = ("L3", "L4")
REFUSED_BEFORE = ("L1", "L2")


@dataclass(frozen=True)
class LeftOut:
    """A candidate that does not go."""

    told: str
    """What the user called it."""
    iteration_id: str
    """Its id."""
    why: str
    """In a sentence."""
    verdict: str | None = None
    """Id of the verdict's event that this bundling appended; None where an earlier one keeps it back."""


@dataclass(frozen=True)
class Bundled:
    """A bundle on the disk."""

    folder: Path
    """Its folder."""
    id: str
    """The digest of its sums."""
    jobs: tuple[Job, ...]
    """What it asks."""
    left_out: tuple[LeftOut, ...]
    """What was kept back."""
    is_new: bool
    """Whether it was made just now; else the folder held the same bundle."""


def bundle(
    candidates: Iterable[Judged],
    out: Path,
    level: WorkLevel,
    session: Session,
    *,
    all_of_them: bool = False,
    clock: Clock = "gpu",
) -> Bundled:
    """Write the bundle of some candidates.

    Args:
        candidates: what to judge; one that is named twice goes once.
        out: the folder to make: missing, empty, or the same bundle already.
        level: how far the worker climbs.
        session: judges L0, and knows log, policy and champions.
        all_of_them: whether those go too that the log says failed L1 or L2.
        clock: `cpu` tries L3 and L4 through the interpreter where there is no GPU.

    Raises:
        Refused: no candidate is left.
        BadInput: the folder is in use, or a target or champion cannot be read.
    """
    left_out: list[LeftOut] = []
    going: list[tuple[Judged, list[Result]]] = []
    for judged in {one.iteration_id: one for one in candidates}.values():
        kept_back = None if all_of_them else _refused_before(judged, session.log)
        results = [] if kept_back else session.climb(judged, "L0")
        if results and results[-1].outcome in ("failed", "suspect"):
            row = session.add(judged, results).ruling.row
            why = f"L0 {results[-1].outcome}: {results[-1].reason}"
            kept_back = LeftOut(judged.told, judged.iteration_id, why, row.id)
        if kept_back is None:
            going.append((judged, results))
        else:
            left_out.append(kept_back)
    if not going:
        raise Refused("No candidate is left to bundle: " + "; ".join(f"{one.told}: {one.why}" for one in left_out))
    modules = packing.Modules()
    work = modules.settle(_work([judged for judged, _ in going], level, session, clock))
    folder, is_new = _written(out, work, modules, lambda: _log_l0(going, session))
    return Bundled(folder, sums.bundle_id(folder), work.jobs, tuple(left_out), is_new)


def home_verdict(log: EventLog, iteration_id: str, digest: str) -> Row | None:
    """The latest verdict of a candidate that passed L0 with this text, and was not retracted; None without one."""
    gone = retracted_verdicts(log)
    for row in reversed(log.iteration(iteration_id)):
        event = row.event
        if isinstance(event, VerdictReached) and row.id not in gone and event.source == digest:
            first = next(iter(event.verdict.levels), None)
            if first is not None and first.level == "L0" and first.outcome not in ("failed", "suspect"):
                return row
    return None


def _work(judged: list[Judged], level: WorkLevel, session: Session, clock: Clock) -> Work:
    """The jobs, each with a seed of its own."""
    jobs = []
    for number, one in enumerate(judged, 1):
        champion = session.rivals.of(one) if level in MEASURED else None
        jobs.append(job_of(one, champion, new_seed(), number=number))
    return Work(settings_of(session.policy, level, clock), tuple(jobs))


def _written(out: Path, work: Work, modules: packing.Modules, before: Callable[[], None]) -> tuple[Path, bool]:
    """Write the bundle after `before`, unless the folder holds the same one; whether it is new."""
    jobs, is_same = work.as_text(), False
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        is_same = (out / JOBS).is_file() and read_work(out).identity() == work.identity()
        if not is_same:
            raise BadInput(f"{out} is there already and holds something else; name another folder with out=.")
        jobs = (out / JOBS).read_text(encoding="utf-8")
    with packing.drafted(out) as draft:
        packing.fill(draft, jobs, modules)
        if not is_same:
            before()
            packing.place(draft, out)
            return out, True
        if (draft / sums.SUMS).read_bytes() != (out / sums.SUMS).read_bytes() or sums.wrong(out) is not None:
            raise BadInput(f"{out} holds these jobs with another kernelgen or other targets; name another with out=.")
    return out, False


def _log_l0(going: list[tuple[Judged, list[Result]]], session: Session) -> None:
    """See to it that the log has an L0 verdict of each."""
    for judged, results in going:
        if home_verdict(session.log, judged.iteration_id, judged_digest(judged)) is None:
            session.add(judged, results)


def _refused_before(judged: Judged, log: EventLog) -> LeftOut | None:
    """What the log's latest verdict of this text says against it; None where nothing at L1 or L2."""
    verdict = _latest(log, judged.iteration_id, judged_digest(judged))
    refused = None if verdict is None else verdict.refused()
    if refused is None or refused.level not in REFUSED_BEFORE:
        return None
    why = f"its latest verdict is {refused.level} {refused.outcome} ({refused.reason}); all=true sends it anyway"
    return LeftOut(judged.told, judged.iteration_id, why)


def _latest(log: EventLog, iteration_id: str, digest: str) -> Verdict | None:
    gone = retracted_verdicts(log)
    for row in reversed(log.iteration(iteration_id)):
        if isinstance(row.event, VerdictReached) and row.id not in gone and row.event.source == digest:
            return row.event.verdict
    return None


def level_of_work(text: str) -> WorkLevel:
    """A level that a worker climbs to. Raises BadInput for another."""
    for level in LEVELS:
        if text == level:
            return level
    raise BadInput(f"level={text} is not one of {', '.join(LEVELS)}; L0 is judged here.")
