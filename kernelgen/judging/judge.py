"""Judges a candidate and appends the verdict before anything is derived from it.

The verdict event holds every level's outcome, the text that was judged and the machine; the figures of each level are
stored texts. What a failure teaches is derived from the appended event alone (`kernelgen.judging.learn`), so a kill in
between loses nothing.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from kernelgen import __version__
from kernelgen.eventlog.chain import Row
from kernelgen.eventlog.store import EventLog
from kernelgen.events import VerdictReached
from kernelgen.ids import canonical_json, digest_text
from kernelgen.judging.jobs import judged_text
from kernelgen.judging.levels import Terms, climb
from kernelgen.judging.subjects import Judged
from kernelgen.ladder.decide import MEAN
from kernelgen.ladder.results import Result
from kernelgen.records import Finding, Level, LevelResult, Verdict


@dataclass(frozen=True)
class Ruling:
    """A verdict that was appended."""

    judged: Judged
    """What was judged."""
    row: Row
    """The event as it stands in the log."""
    verdict: Verdict
    """The verdict in it."""


def judge(judged: Judged, upto: Level, terms: Terms, log: EventLog) -> Ruling:
    """Climb the ladder with one candidate and append what came of it."""
    return append(judged, climb(judged, upto, terms), log)


def append(judged: Judged, results: Sequence[Result], log: EventLog) -> Ruling:
    """Append the verdict that these results make."""
    verdict = Verdict(
        iteration_id=judged.iteration_id, levels=tuple(noun(result) for result in results), speedup=speedup(results)
    )
    source, details = judged_text(judged), figures(results)
    event = VerdictReached(
        iteration_id=judged.iteration_id,
        target=judged.target.name,
        hardware=judged.hardware.name,
        state=judged.state,
        verdict=verdict,
        highest=verdict.highest(),
        origin=judged.origin,
        source=digest_text(source),
        details={level: digest_text(text) for level, text in details.items()},
        machine=canonical_json(_machine(results)),
    )
    return Ruling(judged, log.append(event, [source, *details.values()]), verdict)


def speedup(results: Sequence[Result]) -> float | None:
    """The champion's time over the candidate's at L3; None where nothing was measured, or the figures are in doubt."""
    for result in results:
        if result.level == "L3" and result.outcome in ("passed", "failed") and MEAN in result.details:
            return float(result.details[MEAN]["ratio"])
    return None


def figures(results: Sequence[Result]) -> dict[str, str]:
    """The figures of each level that has some, as texts to store, by the level's name."""
    return {result.level: canonical_json(dict(result.details)) for result in results if result.details}


def noun(result: Result) -> LevelResult:
    """A result as a verdict holds it; what a level that decided nothing found wrong is a note."""
    findings = result.faults if result.outcome in ("failed", "suspect") else ()
    beside = () if findings else tuple(fault.reason for fault in result.faults if fault.reason != result.reason)
    return LevelResult(
        level=result.level,
        outcome=result.outcome,
        reason=result.reason,
        findings=tuple(Finding(**asdict(fault)) for fault in findings),
        notes=(*result.notes, *beside),
        environment=result.environment,
        seconds=result.seconds,
    )


def _machine(results: Sequence[Result]) -> dict[str, str]:
    """Where it was judged, and with what."""
    merged = {name: value for result in results for name, value in result.environment.items()}
    return {
        **merged,
        "kernelgen": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
    }
