"""What a campaign tells while it runs: plain data, which the door turns into lines or JSON."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Judged:
    """A candidate has a verdict."""

    number: int
    """Its iteration, from 1."""
    iteration_id: str
    """Its id."""
    state: int
    """The approach it was made by."""
    hypothesis: str
    """Why it should be faster."""
    outcome: str
    """passed, failed, suspect or inconclusive."""
    level: str
    """The last level that it reached."""
    reason: str
    """What that level said."""
    ratio: float | None
    """The champion's time over its own; None where nothing was measured."""
    learned: tuple[str, ...]
    """Ids of constraints that its verdict added."""
    promotion: str | None
    """What came of a passed L4."""


@dataclass(frozen=True)
class NoCandidate:
    """A generation came to nothing."""

    state: int | None
    """The approach; None where no request was made."""
    why: str
    """In a sentence."""


@dataclass(frozen=True)
class Note:
    """What a person should notice beside."""

    text: str
    """In a sentence."""


@dataclass(frozen=True)
class Waiting:
    """The campaign goes on when verdicts are here."""

    round: int
    """Which round."""
    folder: str
    """Its bundle."""
    candidates: tuple[str, ...]
    """Ids whose verdicts are missing."""
    of: int
    """Candidates in the round."""


@dataclass(frozen=True)
class Ended:
    """The campaign is over."""

    cause: str
    """In a word."""
    why: str
    """In a sentence."""


Told = Judged | NoCandidate | Note | Waiting | Ended
