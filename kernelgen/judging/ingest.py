"""Appends the verdicts that a bundle's worker brought back, each once, and learns from them.

A line is held against the log: the candidate's text, the champion it was measured against, its own digest. L0 is the
log's own verdict; the levels above come from the line. The event names bundle, job and line, so the same line appends
once, whatever was killed in between; another line of the same job is refused, or the best of many tries would win.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kernelgen.champions import KINDS, NAIVE
from kernelgen.errors import BadInput, LogError
from kernelgen.eventlog.chain import Row
from kernelgen.eventlog.store import EventLog
from kernelgen.events import ChampionNamed, VerdictReached
from kernelgen.ids import canonical_json, digest_text
from kernelgen.judging.bundle import home_verdict
from kernelgen.judging.judge import figures, noun, speedup
from kernelgen.judging.learn import Learned
from kernelgen.judging.session import Session
from kernelgen.ladder.work.lines import Line, parsed
from kernelgen.records import Champion, Verdict

BUNDLE, JOB, LINE = "bundle", "job", "line"
"""Keys of a verdict's machine that say which line it came from."""
LOCK = ".ingest"


@dataclass(frozen=True)
class Taken:
    """What became of one line."""

    number: int
    """Its place in the file, from 1."""
    iteration_id: str | None
    """The candidate; None where the line cannot be read."""
    row: Row | None = None
    """The verdict's event; None where the line was refused."""
    is_new: bool = False
    """Whether this ingest appended it."""
    learned: tuple[Learned, ...] = ()
    """What it taught."""
    refused: str | None = None
    """Why it was not taken, in a sentence."""


def ingest(texts: Iterable[str], session: Session) -> Iterator[Taken]:
    """Take line after line; what is wrong with one does not keep the others."""
    with _alone(session.log.path):
        done = _ingested(session.log)
        for number, text in enumerate(texts, 1):
            if text.strip():
                yield _taken(number, text, session, done)


def _taken(number: int, text: str, session: Session, done: dict[tuple[str, int], tuple[str, Row]]) -> Taken:
    """What becomes of a line; `done` grows by what it appends."""
    iteration_id = None
    try:
        line = parsed(text)
        iteration_id, key = line.iteration_id, (line.bundle, line.job)
        if key in done:
            digest, row = done[key]
            if digest != line.digest:
                raise BadInput(f"job {line.job} of this bundle was ingested with other results; bundle it again")
            return Taken(number, iteration_id, row)
        row = _append(line, _home(line, session.log), session)
    except BadInput as error:
        return Taken(number, iteration_id, refused=f"{str(error).rstrip('.')}.")
    done[key] = (line.digest, row)
    return Taken(number, iteration_id, row, True, tuple(session.learn(row)))


def _home(line: Line, log: EventLog) -> VerdictReached:
    """The log's own verdict of what the line judged. Raises BadInput where there is none, or the text differs."""
    row = home_verdict(log, line.iteration_id, line.candidate)
    if row is not None and isinstance(row.event, VerdictReached):
        return row.event
    known = [one.event for one in log.iteration(line.iteration_id) if isinstance(one.event, VerdictReached)]
    if not known:
        raise BadInput(f"candidate {line.iteration_id} has no verdict in this log; name its log with events=PATH")
    if all(event.source != line.candidate for event in known):
        raise BadInput(f"candidate {line.iteration_id} was changed: {line.candidate} was judged, not the log's text")
    raise BadInput(f"candidate {line.iteration_id} has no L0 that passed and still holds; bundle it again")


def _append(line: Line, home: VerdictReached, session: Session) -> Row:
    """The verdict's event, appended. Raises BadInput where the champion is unknown."""
    if line.champion is not None:
        _check_champion(*line.champion, home, session)
    verdict = Verdict(
        iteration_id=home.iteration_id,
        levels=(home.verdict.levels[0], *(noun(result) for result in line.results)),
        speedup=speedup(line.results),
    )
    details = figures(line.results)
    kept = {level: digest for level, digest in home.details.items() if level == "L0"}
    source = {BUNDLE: line.bundle, JOB: str(line.job), LINE: line.digest}
    event = home.model_copy(
        update={
            "verdict": verdict,
            "highest": verdict.highest(),
            "details": {**kept, **{level: digest_text(text) for level, text in details.items()}},
            "machine": canonical_json({**line.machine, **source}),
        }
    )
    return session.log.append(event, details.values())


def _check_champion(id: str, digest: str, home: VerdictReached, session: Session) -> None:
    """Raise BadInput unless this was the region's champion at some time, with this source."""
    if digest not in _digests(id, home, session):
        raise BadInput(
            f"it was measured against champion {id} ({digest}), which {home.target} on {home.hardware} never had here"
        )


def _digests(id: str, home: VerdictReached, session: Session) -> Iterator[str]:
    """Digests of the sources of the region's champions with this id."""
    log = session.log
    if id == NAIVE:
        yield digest_text(session.rivals.naive(home.target, home.hardware).source)
    for row in log.rows(kinds=KINDS, target=home.target, hardware=home.hardware):
        if isinstance(row.event, ChampionNamed) and row.event.champion_id == id:
            yield digest_text(Champion.model_validate_json(log.text(row.event.champion)).source)


def _ingested(log: EventLog) -> dict[tuple[str, int], tuple[str, Row]]:
    """The lines that the log has, by bundle and job: the line's digest, and its event."""
    found = {}
    for row in log.rows(kinds=("verdict_reached",)):
        assert isinstance(row.event, VerdictReached)
        machine = json.loads(row.event.machine)
        if BUNDLE in machine:
            found[machine[BUNDLE], int(machine[JOB])] = (str(machine[LINE]), row)
    return found


@contextmanager
def _alone(log: Path) -> Iterator[None]:
    """Hold other ingests of this log back: between looking and appending none may come. Raises LogError."""
    path = log.with_name(log.name + LOCK)
    try:
        file = path.open("a")
    except OSError as error:
        raise LogError(f"{path} cannot be written: {error.strerror}.") from error
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
