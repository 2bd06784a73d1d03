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
from kernelgen.judging.levels import Terms, climb
from kernelgen.judging.subjects import Judged
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
    results = climb(judged, upto, terms)
    verdict = Verdict(iteration_id=judged.iteration_id, levels=tuple(_noun(result) for result in results))
    source = judged.subject.preamble + judged.subject.source
    details = {result.level: canonical_json(_plain(result)) for result in results if result.details}
    event = VerdictReached(
        iteration_id=judged.iteration_id,
        target=judged.target.name,
        hardware=judged.hardware.name,
        state=judged.state,
        verdict=verdict,
        highest=verdict.highest(),
        origin="file" if judged.state is None else "generated",
        source=digest_text(source),
        details={level: digest_text(text) for level, text in details.items()},
        machine=canonical_json(_machine(results)),
    )
    return Ruling(judged, log.append(event, [source, *details.values()]), verdict)


def _noun(result: Result) -> LevelResult:
    return LevelResult(
        level=result.level,
        outcome=result.outcome,
        reason=result.reason,
        findings=tuple(Finding(**asdict(fault)) for fault in result.faults),
        notes=result.notes,
        environment=result.environment,
        seconds=result.seconds,
    )


def _plain(result: Result) -> dict[str, object]:
    return dict(result.details)


def _machine(results: Sequence[Result]) -> dict[str, str]:
    """Where it was judged, and with what."""
    merged = {name: value for result in results for name, value in result.environment.items()}
    return {
        **merged,
        "kernelgen": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
    }
