"""Promotion: a verdict whose L4 passed makes its candidate champion, if the champion it beat still is the champion.

Naming follows from the appended verdict alone, is done once, and is finished by `learn.catch_up` where a kill came
between. Nothing is promoted over a champion that was not measured against: then a sentence says to judge again.
`lineage` is the same story read back.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kernelgen import champions
from kernelgen.config import Policy
from kernelgen.constraints.measured import Comparison, read_comparison
from kernelgen.errors import BadInput, LogError
from kernelgen.eventlog.chain import Row
from kernelgen.eventlog.store import EventLog
from kernelgen.events import ChampionNamed, VerdictReached
from kernelgen.generation.region import retracted_verdicts
from kernelgen.ids import digest_text
from kernelgen.judging.lessons import Regions, champion_now, dsl_of
from kernelgen.records import Champion, Level, Measured, to_text

if TYPE_CHECKING:
    from kernelgen.judging.learn import Learned

NEEDED: tuple[Level, ...] = ("L2", "L3", "L4")
"""Levels that a promotion rests on: right, faster, and both on shapes not seen before."""


@dataclass(frozen=True)
class Promotion:
    """What came of a verdict whose L4 passed."""

    iteration_id: str
    """The candidate."""
    naming: Row | None
    """The event that names it champion; None where nothing was promoted."""
    sentence: str
    """For a person: over what it was promoted, or why it was not."""
    learned: tuple[Learned, ...] = ()
    """The pattern that it taught, where that was new."""


@dataclass(frozen=True)
class Ancestor:
    """One champion of a region's line."""

    row: Row
    """Its naming."""
    link: champions.Link
    """Whether it stands, and what it beat."""
    champion: Champion
    """The kernel."""
    measured: Comparison | None
    """L3 of the verdict that promoted it; None for an imported one."""
    held_out: Comparison | None
    """L4 of that verdict."""


def promote(row: Row, *, log: EventLog, constraints: Path, policy: Policy, regions: Regions) -> Promotion | None:
    """Name a verdict's candidate champion and learn what it teaches; None for a verdict whose L4 did not pass.

    `constraints` is the constraint file. Asked again it changes nothing and says the same. Raises ConstraintError
    where the constraint file is broken or cannot be written.
    """
    from kernelgen.judging.learn import learn  # which names champions itself, for whoever only learns

    found = name(row, log, regions)
    learned = learn(row, log=log, constraints=constraints, policy=policy, regions=regions)
    return None if found is None else Promotion(found.iteration_id, found.naming, found.sentence, tuple(learned))


def name(row: Row, log: EventLog, regions: Regions) -> Promotion | None:
    """Name a verdict's candidate champion, if it is not; None for a verdict whose L4 did not pass, or that fell."""
    event = row.event
    if not isinstance(event, VerdictReached) or event.verdict.highest() != "L4" or row.id in retracted_verdicts(log):
        return None
    before = _naming_of(row, log)
    if before is not None:
        assert isinstance(before.event, ChampionNamed)
        return Promotion(event.iteration_id, before, _won(before.event))
    try:
        champion, parent = _champion(row, event, log, regions)
    except BadInput as error:
        return Promotion(event.iteration_id, None, f"{event.iteration_id} is not promoted: {error}")
    text = to_text(champion)
    naming = ChampionNamed(
        target=event.target,
        hardware=event.hardware,
        champion_id=champion.id,
        origin="promoted",
        champion=digest_text(text),
        parent=parent,
        verdict=row.id,
    )
    return Promotion(event.iteration_id, log.append(naming, [text]), _won(naming))


def name_all(log: EventLog, target: str, hardware: str, regions: Regions) -> list[Promotion]:
    """Name what a region's standing verdicts earn, oldest first: when a champion fell, one may hold against another."""
    rows = log.rows(kinds=("verdict_reached",), target=target, hardware=hardware)
    return [found for row in rows if (found := name(row, log, regions)) is not None]


def lineage(log: EventLog, target: str, hardware: str) -> list[Ancestor]:
    """Every champion a region had since its naive one, oldest first, those that fell included."""
    rows = list(log.rows(kinds=champions.KINDS, target=target, hardware=hardware))
    found = []
    for link in champions.line(row.event for row in rows):
        champion = Champion.model_validate_json(log.text(link.event.champion))
        measured, held_out = (_measured(log, link.event.verdict, level) for level in ("L3", "L4"))
        found.append(Ancestor(rows[link.place], link, champion, measured, held_out))
    return found


def current(line: list[Ancestor]) -> Ancestor | None:
    """The champion of a line, or None while the naive kernel holds."""
    link = champions.current(ancestor.link for ancestor in line)
    return next((ancestor for ancestor in line if ancestor.link is link), None)


def gain(line: list[Ancestor], ancestor: Ancestor) -> tuple[float, str] | None:
    """How many times as fast a champion is as the first of its line by L3, link by link, and that first one's id."""
    product, link = 1.0, ancestor.link
    by_place = {one.link.place: one for one in line}
    while True:
        measured = by_place[link.place].measured
        if measured is None:
            return None if link is ancestor.link else (product, link.event.champion_id)
        product *= measured.over_all.ratio
        if link.parent is None:
            return product, champions.NAIVE
        link = link.parent


def _won(naming: ChampionNamed) -> str:
    return f"{naming.champion_id} is champion of {naming.target} on {naming.hardware}: it beat {naming.parent}"


def _naming_of(row: Row, log: EventLog) -> Row | None:
    """The naming that a verdict led to, if it held."""
    event = row.event
    assert isinstance(event, VerdictReached)
    rows = list(log.rows(kinds=champions.KINDS, target=event.target, hardware=event.hardware))
    links = champions.line(one.event for one in rows)
    return next((rows[k.place] for k in links if k.event.verdict == row.id and k.fate != "overtaken"), None)


def _champion(row: Row, event: VerdictReached, log: EventLog, regions: Regions) -> tuple[Champion, str]:
    """The champion that a verdict makes, and the id of the one it beat. Raises BadInput saying why it makes none."""
    target = regions.target(event.target)
    if target is None:
        raise BadInput(f"no config describes the target {event.target} any more.")
    if event.source is None:
        raise BadInput("its verdict does not hold the text that was judged; judge it again.")
    _rests_on_every_level(row, event, log)
    measured = _against_one(row, event, log)
    now = champion_now(log, event.target, event.hardware, regions)
    if now is None:
        raise BadInput(f"the naive champion of {event.target} cannot be read.")
    again = f"judge it again: `kernelgen judge {event.iteration_id} level=L4`."
    if now.id == event.iteration_id:
        raise BadInput("it is the champion already.")
    if digest_text(now.source) != measured.champion_digest or now.id != measured.champion_id:
        raise BadInput(f"it won against {measured.champion_id}, and the champion now is {now.id}; {again}")
    source = log.text(event.source)
    champion = Champion(
        id=event.iteration_id,
        target=event.target,
        hardware=event.hardware,
        origin="promoted",
        language="cuda" if dsl_of(event, source) == "cuda" else "python",
        entry_point=target.entry_point,
        source=source,
        # held-out shapes stay out of it: it stands in prompts
        figures=tuple(figures(measured, target.shapes.tune, row.id)),
    )
    return champion, measured.champion_id


def figures(measured: Comparison, shapes: Iterable[str], source: str) -> list[Measured]:
    """The candidate's figures at each of the shapes that was measured."""
    return [
        Measured(
            shape=shape,
            time_us=one.candidate_us,
            tflops=one.flops / one.candidate_us / 1e6,
            gbytes_per_s=one.moved_bytes / one.candidate_us / 1e3,
            occupancy_percent=None,
            source=source,
        )
        for shape in shapes
        if (one := measured.shapes.get(shape)) is not None
    ]


def _rests_on_every_level(row: Row, event: VerdictReached, log: EventLog) -> None:
    """Raises BadInput unless L2, L3 and L4 passed; L2 may have passed in an earlier verdict on the same text."""
    passed = {result.level for result in event.verdict.levels if result.outcome == "passed"}
    gone = retracted_verdicts(log)
    for other in log.iteration(event.iteration_id):
        if isinstance(other.event, VerdictReached) and other.id not in gone and other.event.source == event.source:
            passed |= {r.level for r in other.event.verdict.levels if r.level == "L2" and r.outcome == "passed"}
    missing = [level for level in NEEDED if level not in passed]
    if missing:
        again = f"`kernelgen judge {event.iteration_id} level=L4`"
        raise BadInput(f"{' and '.join(missing)} did not pass, on which a promotion rests; judge it again: {again}.")


def _against_one(row: Row, event: VerdictReached, log: EventLog) -> Comparison:
    """L3 of a verdict. Raises BadInput where it cannot be read, or L4 was measured against another champion."""
    missing = [level for level in ("L3", "L4") if level not in event.details]
    if missing:
        raise BadInput(f"the verdict {row.id} has no figures of {' and '.join(missing)}; judge it again.")
    measured, held_out = (read_comparison(log.text(event.details[level])) for level in ("L3", "L4"))
    if measured.champion_digest != held_out.champion_digest:
        raise BadInput(f"L3 and L4 of {row.id} were measured against different champions; judge it again.")
    return measured


def _measured(log: EventLog, verdict: str | None, level: str) -> Comparison | None:
    """A level's measurement in a verdict; None where there is none that can be read."""
    if verdict is None:
        return None
    try:
        event = log.row(verdict).event
        assert isinstance(event, VerdictReached)
        return read_comparison(log.text(event.details[level])) if level in event.details else None
    except (BadInput, LogError):
        return None
