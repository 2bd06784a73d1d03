"""Ranks targets by what a decode step could win back: measured time minus floor, times the calls in a step.

Pure: the caller brings the profiles. Only a profile at the target's `profile_shape` counts, since only that shape
stands for a decode step; a target without one is listed last, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable

from kernelgen.config import Frozen, Target
from kernelgen.records import Bottleneck, Profile


class HeadroomRow(Frozen):
    """One target in the ranking."""

    target: str
    """Target name."""
    shape: str
    """The shape that stands for one decode step."""
    time_us: float | None
    """Measured time of one call; None where it was not measured at that shape."""
    floor_us: float | None
    """Its floor."""
    calls_per_step: int
    """Calls in one decode step."""
    recoverable_us: float | None
    """Time minus floor, times calls, at least 0: microseconds a decode step."""
    bottleneck: Bottleneck | None
    """Class of the region."""
    subject: str | None
    """What was profiled."""
    frozen: str | None
    """Why the region is frozen, or None."""
    note: str
    """`not measured`, and why where a profile exists; empty for a measured target."""

    @property
    def measured(self) -> bool:
        """Whether the row has a measured time."""
        return self.time_us is not None


def headroom(rows: Iterable[tuple[Target, Profile | None, str | None]]) -> list[HeadroomRow]:
    """Rank `(target, its profile or None, why it is frozen or None)`: most recoverable first, unmeasured last."""
    ranked = [_row(target, profile, frozen) for target, profile, frozen in rows]
    return sorted(ranked, key=lambda row: (not row.measured, -(row.recoverable_us or 0.0), row.target))


def _row(target: Target, profile: Profile | None, frozen: str | None) -> HeadroomRow:
    shape, calls = target.profile_shape, target.calls_per_step
    counts = profile if profile is not None and profile.shape == shape else None
    note = "" if counts is not None else "not measured"
    if profile is not None and counts is None:
        note = f"not measured at {shape}, only at {profile.shape}"
    return HeadroomRow(
        target=target.name,
        shape=shape,
        time_us=counts.time_us if counts else None,
        floor_us=counts.floor_us if counts else None,
        calls_per_step=calls,
        recoverable_us=max(0.0, counts.time_us - counts.floor_us) * calls if counts else None,
        bottleneck=counts.bottleneck if counts else None,
        subject=counts.subject if counts else None,
        frozen=frozen,
        note=note,
    )
