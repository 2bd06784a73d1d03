"""Takes back what the log says, by a further event, and withdraws what came from it.

A champion: its id, its naming's, or that of the verdict that promoted it. Or another verdict: its event's id, or the id
of a candidate that has one standing verdict. A constraint all of whose evidence fell is withdrawn with a line that says
why; one that other verdicts show too stays. With a champion fall those promoted over it, and all that was measured
against them. The event comes first, the rest follows from it and is finished by `learn.catch_up` after a kill.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kernelgen import champions
from kernelgen.config import Policy
from kernelgen.constraints.measured import MEASURED
from kernelgen.constraints.store import ConstraintBook, ConstraintFile, reconcile
from kernelgen.errors import BadInput
from kernelgen.eventlog.chain import Row
from kernelgen.eventlog.store import EventLog
from kernelgen.events import ChampionNamed, ChampionRetracted, VerdictReached, VerdictRetracted
from kernelgen.generation.region import ConstraintRows, retracted_verdicts
from kernelgen.judging.contradiction import contradicted_by
from kernelgen.judging.learn import WITHDRAWN, is_of, learn
from kernelgen.judging.lessons import Regions, champion_now, standing, taught
from kernelgen.judging.promotion import name_all
from kernelgen.records import Constraint, Retraction


@dataclass(frozen=True)
class Retracted:
    """What a retraction did."""

    row: Row
    """Its event: of the champion, or of the verdict."""
    withdrawn: tuple[str, ...]
    """Ids of the constraints withdrawn with it."""
    fallen: tuple[str, ...] = ()
    """Ids of the champions that were promoted over the one taken back, and must be judged again."""
    champion: str = ""
    """Id of the champion that holds now; empty where no champion was taken back."""


def retract(told: str, why: str, *, log: EventLog, constraints: Path, policy: Policy, regions: Regions) -> Retracted:
    """Retract what an id names. Raises BadInput for what cannot be, LogError for an id the log does not know."""
    naming = _naming(log, told)
    events = _of_verdict(_verdict(log, told), why) if naming is None else _of_champion(naming, why, log)
    reconcile(ConstraintFile(constraints), ConstraintRows(log))  # a broken file is told before anything is logged
    held = [] if naming is None else _places(log, naming, "stands")
    row = log.append_all((event, ()) for event in events)[0]
    withdrawn = withdraw(row, log=log, constraints=constraints, policy=policy, regions=regions)
    if naming is None:
        return Retracted(row, tuple(withdrawn))
    fell = [one for one in _places(log, naming, "line_fell") if one in held]
    now = champion_now(log, naming.target, naming.hardware, regions)
    return Retracted(row, tuple(withdrawn), tuple(id for _, id in fell), champions.NAIVE if now is None else now.id)


def withdraw(row: Row, *, log: EventLog, constraints: Path, policy: Policy, regions: Regions) -> list[str]:
    """Withdraw what came from a retracted verdict or champion; the ids of the constraints withdrawn.

    None where it was done. Whoever earned it against the champion that holds again becomes champion.
    """
    event = row.event
    assert isinstance(event, VerdictRetracted | ChampionRetracted)
    file, rows = ConstraintFile(constraints), ConstraintRows(log)
    gone = retracted_verdicts(log)
    what = f"verdict {event.verdict}" if isinstance(event, VerdictRetracted) else f"champion {event.champion_id}"
    why = f"{what} was retracted: {event.why}"
    lines: list[Retraction] = []
    again: dict[str, Row] = {}
    book = reconcile(file, rows)
    for constraint in contradicted_by(book, gone):
        again |= {one.id: one for one in _supporters(constraint, log, gone, regions)}
    for constraint in _derived(book, gone):
        left = _supporters(constraint, log, gone, regions)
        was_widened = len(constraint.evidence.events) > 1 and constraint.severity == "hard"
        if left and not was_widened:
            continue
        again |= {one.id: one for one in left}
        if book.retraction(constraint.id) is None:
            lines.append(Retraction(id=f"{WITHDRAWN}{constraint.id}", retracts=constraint.id, why=why, time=row.time))
    file.append(lines)
    reconcile(file, rows)
    name_all(log, event.target, event.hardware, regions)
    for one in sorted(again.values(), key=lambda one: one.seq):
        learn(one, log=log, constraints=constraints, policy=policy, regions=regions)  # its part, anew
    return [line.retracts for line in lines]


def _naming(log: EventLog, told: str) -> ChampionNamed | None:
    """The champion that an id means, by its own id, its naming's event or its verdict's; None for any other id.

    Raises BadInput for one that was taken back already, LogError for an id the log does not know.
    """
    if told == champions.NAIVE:
        raise BadInput("The naive champion comes with its target and cannot be taken back; change the target.")
    namings = [(row.id, row.event) for row in log.rows(kinds=("champion_named",), newest_first=True)]
    imported = {e.champion_id for _, e in namings if isinstance(e, ChampionNamed) and e.origin == "imported"}
    meant = sorted(name for name in imported if name.startswith(told))
    if len(meant) > 1:
        raise BadInput(f"'{told}' begins several champions' ids, such as {' and '.join(meant[:2])}; give more of it.")
    identity = meant[0] if meant else log.find(told)
    for id, event in namings:
        if isinstance(event, ChampionNamed) and identity in (id, event.champion_id, event.verdict):
            links = champions.line(row.event for row in _line_rows(log, event))
            if any(k.event.champion_id == event.champion_id and k.fate in ("stands", "line_fell") for k in links):
                return event
            if event.origin == "imported":
                raise BadInput(f"{event.champion_id} is taken back already; nothing was changed.")
    return None


def _line_rows(log: EventLog, of: ChampionNamed) -> list[Row]:
    return list(log.rows(kinds=champions.KINDS, target=of.target, hardware=of.hardware))


def _places(log: EventLog, of: ChampionNamed, fate: str) -> list[tuple[int, str]]:
    """Place and id of the region's champions with a fate."""
    links = champions.line(row.event for row in _line_rows(log, of))
    return [(link.place, link.event.champion_id) for link in links if link.fate == fate]


def _of_verdict(verdict: Row, why: str) -> list[VerdictRetracted | ChampionRetracted]:
    event = verdict.event
    assert isinstance(event, VerdictReached)
    retracted = VerdictRetracted(
        verdict=verdict.id,
        iteration_id=event.iteration_id,
        target=event.target,
        hardware=event.hardware,
        why=why,
    )
    return [retracted]


def _of_champion(naming: ChampionNamed, why: str, log: EventLog) -> list[VerdictRetracted | ChampionRetracted]:
    """The champion, and every standing verdict that measured it as a candidate: its scores were a wrong kernel's."""
    taken = ChampionRetracted(target=naming.target, hardware=naming.hardware, champion_id=naming.champion_id, why=why)
    gone = retracted_verdicts(log)
    scores = [
        row
        for row in log.iteration(naming.champion_id)
        if isinstance(row.event, VerdictReached) and row.id not in gone and set(MEASURED) & set(row.event.details)
    ]
    return [taken, *(event for row in scores for event in _of_verdict(row, why))]


def _verdict(log: EventLog, told: str) -> Row:
    """The verdict that an id means."""
    identity = log.find(told)
    rows = log.iteration(identity) or [log.row(identity)]
    verdicts = [row for row in rows if isinstance(row.event, VerdictReached)]
    if not verdicts:
        kind = rows[0].event.kind.replace("_", " ")
        has = f"{identity} has no verdict" if log.iteration(identity) else f"{identity} is a {kind}, no verdict"
        raise BadInput(f"{has}; `kernelgen log list kind=verdict_reached` shows the verdicts.")
    gone = retracted_verdicts(log)
    left = [row for row in verdicts if row.id not in gone]
    if not left:
        raise BadInput(f"{identity}: its verdict is retracted already; nothing was changed.")
    if len(left) > 1:
        raise BadInput(f"{identity} has {len(left)} verdicts; name one of them: {', '.join(row.id for row in left)}.")
    return left[0]


def _derived(book: ConstraintBook, gone: frozenset[str]) -> list[Constraint]:
    """The constraints with a retracted verdict among their evidence: those that stand, and those withdrawn for one.

    The latter so that what a kill left undone is finished.
    """
    named = [constraint for constraint in book.all if not gone.isdisjoint(constraint.evidence.events)]
    retractions = [(constraint, book.retraction(constraint.id)) for constraint in named]
    return [constraint for constraint, r in retractions if r is None or r.id == f"{WITHDRAWN}{constraint.id}"]


def _supporters(constraint: Constraint, log: EventLog, gone: frozenset[str], regions: Regions) -> list[Row]:
    """Standing verdicts that show a constraint: its other evidence, and those whose failure teaches the same."""
    named = set(constraint.evidence.events) - gone
    return [row for row in standing(log) if row.id in named or _teaches(row, constraint, log, regions)]


def _teaches(row: Row, constraint: Constraint, log: EventLog, regions: Regions) -> bool:
    event, scope = row.event, constraint.scope
    assert isinstance(event, VerdictReached)
    if scope.hardware != event.hardware or scope.target not in (None, event.target):
        return False
    return any(is_of(constraint.id, lesson) for lesson in taught(row, log, regions))
