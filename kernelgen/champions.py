"""The champion of a target on a hardware: a fold over events. Before any event it is the target's naive kernel.

An imported kernel is champion because a person said so; a promoted one because it beat the champion of its time. So a
promotion holds no longer than the champion it beat: when one is taken back, every one promoted over it falls too, and
the latest of which the whole line stands is champion again. What fell must be judged again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from kernelgen.events import ChampionNamed, ChampionRetracted, Event, VerdictRetracted
from kernelgen.records import Champion

KINDS = ("champion_named", "champion_retracted", "verdict_retracted")
NAIVE = "naive"
Fate = Literal["stands", "taken_back", "line_fell", "overtaken"]


@dataclass
class Link:
    """One naming in the line of champions, and what became of it."""

    event: ChampionNamed
    """The naming."""
    place: int
    """Its place among the events folded, from 0."""
    parent: Link | None
    """The naming of the champion it beat; None where that is the naive one, or it was imported."""
    fate: Fate = "stands"
    """overtaken: another became champion between its measurement and its naming, so it never was."""
    why: str = ""
    """Why it does not stand, for a person."""


def line(events: Iterable[Event]) -> list[Link]:
    """Every naming of a region, oldest first; `events` of the `KINDS`, of one region, oldest first."""
    links: list[Link] = []
    gone: dict[str, str] = {}  # why by verdict
    for place, event in enumerate(events):
        if isinstance(event, ChampionNamed):
            links.append(_named(event, place, links, gone))
        elif isinstance(event, ChampionRetracted):
            _take_back(links, [one for one in links if one.event.champion_id == event.champion_id], event.why)
        elif isinstance(event, VerdictRetracted):
            gone[event.verdict] = event.why
            _take_back(links, [one for one in links if one.event.verdict == event.verdict], event.why)
    return links


def current(links: Iterable[Link]) -> Link | None:
    """The champion now, or None while the naive kernel holds."""
    found: Link | None = None
    for link in links:
        if link.fate == "stands":
            found = link
    return found


def named(events: Iterable[Event]) -> ChampionNamed | None:
    """The naming that holds, or None while the naive kernel does; `events` as for `line`."""
    link = current(line(events))
    return None if link is None else link.event


def naive(target: str, hardware: str, entry_point: str, source: str) -> Champion:
    """The champion that a target brings along; nothing is measured of it."""
    return Champion(
        id=NAIVE,
        target=target,
        hardware=hardware,
        origin="naive",
        language="python",
        entry_point=entry_point,
        source=source,
    )


def _named(event: ChampionNamed, place: int, links: list[Link], gone: dict[str, str]) -> Link:
    """The link of a naming, in view of what the log says before it."""
    if event.origin == "imported" or event.parent is None:
        return Link(event, place, None)
    holder = current(links)
    if event.parent != (NAIVE if holder is None else holder.event.champion_id):
        why = f"another became champion before it was named; it was measured against {event.parent}"
        return Link(event, place, None, "overtaken", why)
    if event.verdict in gone:
        return Link(event, place, holder, "taken_back", gone[event.verdict])
    return Link(event, place, holder)


def _take_back(links: list[Link], wrong: list[Link], why: str) -> None:
    """Mark what is taken back, and what was promoted over it; links come after the one they beat."""
    for link in wrong:
        if link.fate == "stands" or link.fate == "line_fell":
            link.fate, link.why = "taken_back", why
    for link in links:
        if link.fate == "stands" and link.parent is not None and link.parent.fate != "stands":
            link.fate = "line_fell"
            link.why = f"it was promoted over {link.parent.event.champion_id}, which fell: judge it again"
