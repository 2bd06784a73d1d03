"""What the log knows of a target on a hardware: its profile, champion, position, freeze and headroom."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from kernelgen import champions, freeze, state
from kernelgen.catalog import Catalog
from kernelgen.config import Hardware, Policy, Target
from kernelgen.constraints.measured import MEASURED, rival_of
from kernelgen.eventlog.store import EventLog, Row
from kernelgen.events import (
    ChampionNamed,
    ChampionRetracted,
    ConstraintAdded,
    ConstraintRetracted,
    Event,
    ProfileImported,
    VerdictReached,
    VerdictRetracted,
)
from kernelgen.profile.headroom import HeadroomRow
from kernelgen.profile.headroom import headroom as rank
from kernelgen.records import Champion, Position, Profile
from kernelgen.targets.code import champion_source

CONSTRAINT_KINDS = ("constraint_added", "constraint_retracted")
VERDICT = "verdict_reached"


class ConstraintRows:
    """The log as the constraint store needs it."""

    def __init__(self, log: EventLog) -> None:
        self.log = log

    def constraint_rows(self) -> Iterator[tuple[str, ConstraintAdded | ConstraintRetracted]]:
        """Every constraint event with its event id, oldest first."""
        for row in self.log.rows(kinds=CONSTRAINT_KINDS):
            assert isinstance(row.event, ConstraintAdded | ConstraintRetracted)
            yield row.id, row.event

    def append_all(self, events: Iterable[ConstraintAdded | ConstraintRetracted]) -> None:
        """Append them in one transaction."""
        self.log.append_all((event, ()) for event in events)


def events(log: EventLog, kinds: Collection[str], target: str, hardware: str) -> Iterator[Event]:
    """The region's events of these kinds, oldest first; verdicts that were retracted are left out."""
    gone = retracted_verdicts(log, target, hardware) if VERDICT in kinds else frozenset()
    rows = log.rows(kinds=kinds, target=target, hardware=hardware)
    return (row.event for row in rows if row.id not in gone)


def retracted_verdicts(log: EventLog, target: str | None = None, hardware: str | None = None) -> frozenset[str]:
    """Event ids of the verdicts that stand no more, of one region or of all.

    Those that were retracted, and those measured against a champion that fell: they say nothing of any other.
    """
    regions: dict[tuple[str, str], list[Row]] = {}
    gone: set[str] = set()
    for row in log.rows(kinds=champions.KINDS, target=target, hardware=hardware):
        assert isinstance(row.event, ChampionNamed | ChampionRetracted | VerdictRetracted)
        regions.setdefault((row.event.target, row.event.hardware), []).append(row)
        if isinstance(row.event, VerdictRetracted):
            gone.add(row.event.verdict)
    for (its_target, its_hardware), rows in regions.items():
        gone.update(_measured_in_vain(log, its_target, its_hardware, rows))
    return frozenset(gone)


def _measured_in_vain(log: EventLog, target: str, hardware: str, rows: list[Row]) -> Iterator[str]:
    """Verdicts of a region that rest on a measurement against a champion that fell; `rows` are those of its line."""
    links = champions.line(row.event for row in rows)
    if all(link.fate in ("stands", "overtaken") for link in links):
        return
    namings = [(rows[link.place].seq, link) for link in links]
    for row in log.rows(kinds=(VERDICT,), target=target, hardware=hardware):
        assert isinstance(row.event, VerdictReached)
        beaten = {rival_of(log.text(row.event.details[level])) for level in MEASURED if level in row.event.details}
        for rival in beaten - {None}:
            known = [link for seq, link in namings if seq < row.seq and link.event.champion_id == rival]
            if known and known[-1].fate not in ("stands", "overtaken"):
                yield row.id


def latest_profile(log: EventLog, target: str, hardware: str, shape: str | None) -> Profile | None:
    """The last imported profile of a target on a hardware, at a shape where one is given."""
    for row in log.rows(kinds=("profile_imported",), target=target, hardware=hardware, newest_first=True):
        assert isinstance(row.event, ProfileImported)
        if shape is None or row.event.shape == shape:
            return Profile.model_validate_json(log.text(row.event.profile))
    return None


def named_champion(log: EventLog, target: str, hardware: str) -> Champion | None:
    """The champion a user imported or L4 promoted, or None."""
    latest = champions.named(events(log, champions.KINDS, target, hardware))
    return None if latest is None else Champion.model_validate_json(log.text(latest.champion))


def champion(log: EventLog, target: Target, hardware: str, folder: Path) -> Champion:
    """The kernel to beat: the named one, else the naive one that the target brings along."""
    named = named_champion(log, target.name, hardware)
    if named is not None:
        return named
    return champions.naive(target.name, hardware, target.entry_point, champion_source(target.champion, folder))


def frozen(log: EventLog, target: str, hardware: str) -> str | None:
    """Why the region is frozen, or None."""
    return freeze.frozen_why(events(log, freeze.KINDS, target, hardware))


def position(log: EventLog, target: str, hardware: str, policy: Policy, chosen: int | None) -> Position:
    """Where the region's state vector stands; `chosen` is the user's number, or None to follow the vector."""
    line = champions.line(events(log, champions.KINDS, target, hardware))
    return state.position(
        events(log, state.KINDS, target, hardware),
        target=target,
        hardware=hardware,
        policy=policy,
        chosen=chosen,
        frozen=frozen(log, target, hardware),
        champions={link.event.champion_id for link in line if link.fate == "stands"},
    )


def headroom(catalog: Catalog, log: EventLog, hardware: Hardware) -> list[HeadroomRow]:
    """Every target by recoverable microseconds a decode step, most first; unmeasured ones last."""
    entries = []
    for name in catalog.names("target"):
        target, _ = catalog.target(name)
        profile = latest_profile(log, name, hardware.name, target.profile_shape)
        profile = profile or latest_profile(log, name, hardware.name, None)
        entries.append((target, profile, frozen(log, name, hardware.name)))
    return rank(entries)
