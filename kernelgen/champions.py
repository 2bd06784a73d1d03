"""The champion of a target on a hardware: a fold over events. Before any event it is the target's naive kernel."""

from __future__ import annotations

from collections.abc import Iterable

from kernelgen.events import ChampionNamed, Event
from kernelgen.records import Champion

KINDS = ("champion_named",)
NAIVE = "naive"


def named(events: Iterable[Event]) -> ChampionNamed | None:
    """The latest naming, or None while the naive kernel still holds; `events` of one region, oldest first."""
    latest: ChampionNamed | None = None
    for event in events:
        if isinstance(event, ChampionNamed):
            latest = event
    return latest


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
