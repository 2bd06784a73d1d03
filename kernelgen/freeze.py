"""The freeze manager: a fold over events. A frozen region gets no candidates until someone unfreezes it."""

from __future__ import annotations

from collections.abc import Iterable

from kernelgen.events import Event, RegionFrozen, RegionUnfrozen

KINDS = ("region_frozen", "region_unfrozen")


def frozen_why(events: Iterable[Event]) -> str | None:
    """Why the region is frozen, or None; `events` are those of one target on one hardware, oldest first."""
    why: str | None = None
    for event in events:
        if isinstance(event, RegionFrozen):
            why = event.why
        elif isinstance(event, RegionUnfrozen):
            why = None
    return why
