"""What the log knows of a campaign: its generations with their verdicts, its rounds, what was spent. A fold, no memory.

A generation counts for the budget when a model answered or failed to; one that the playbook had no kernel for and one
that was killed cost nothing and do not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from kernelgen.campaign.cost import bundle_of, judged_seconds
from kernelgen.campaign.settings import Campaign
from kernelgen.eventlog.chain import Row
from kernelgen.eventlog.store import EventLog
from kernelgen.events import (
    CampaignRound,
    CandidateGenerated,
    GenerationFailed,
    GenerationRequested,
    ReplyReceived,
    VerdictReached,
)
from kernelgen.generation.region import retracted_verdicts

KINDS = (
    "generation_requested", "reply_received", "candidate_generated", "generation_failed", "verdict_reached",
    "campaign_round",
)  # fmt: skip
COSTS_NOTHING = ("no_play", "interrupted")
"""Causes of a failed generation that no budget counts."""


@dataclass
class Generation:
    """One generation of a campaign."""

    seq: int
    """Number of its request's event."""
    asked: GenerationRequested
    """Its request."""
    candidate: CandidateGenerated | None = None
    """What came of it; None where nothing did."""
    failed: GenerationFailed | None = None
    """Why nothing did."""
    seconds: float = 0.0
    """Of the model's answers."""
    verdicts: list[Row] = field(default_factory=list)
    """Every verdict, oldest first, retracted ones too."""
    standing: Row | None = None
    """The latest verdict that stands."""

    @property
    def id(self) -> str:
        """The iteration's id."""
        return self.asked.iteration_id

    @property
    def counts(self) -> bool:
        """Whether the budget counts it."""
        return self.candidate is not None or (self.failed is not None and self.failed.cause not in COSTS_NOTHING)

    def survives(self) -> bool:
        """Whether a verdict stands and refuses nothing."""
        return self.standing is not None and verdict_of(self.standing).verdict.refused() is None

    def came_back(self, bundle: str) -> bool:
        """Whether a bundle's verdict of it is in the log."""
        return any(bundle_of(verdict_of(row)) == bundle for row in self.verdicts)


@dataclass(frozen=True)
class View:
    """A campaign as the log has it."""

    campaign: Campaign
    """Which one."""
    generations: tuple[Generation, ...]
    """In order."""
    rounds: tuple[CampaignRound, ...]
    """In order."""
    sent_at: int = 0
    """Number of the last round's event."""

    @cached_property
    def candidates(self) -> list[Generation]:
        """The generations that have a candidate."""
        return [one for one in self.generations if one.candidate is not None]

    @cached_property
    def counted(self) -> int:
        """Generations that the budget counts."""
        return sum(one.counts for one in self.generations)

    @cached_property
    def minutes(self) -> float:
        """Minutes of asking and judging."""
        judged = sum(judged_seconds(verdict_of(row)) for one in self.generations for row in one.verdicts)
        return (judged + sum(one.seconds for one in self.generations)) / 60

    def unjudged(self) -> list[Generation]:
        """Candidates without a verdict."""
        return [one for one in self.candidates if not one.verdicts]

    def waiting(self) -> list[Generation]:
        """Candidates of the last round whose verdict has not come back, and is still wanted."""
        if not self.rounds:
            return []
        last = self.rounds[-1]
        return [one for one in self._members(last) if one.survives() and not one.came_back(last.bundle)]

    def came_back_last(self) -> list[Generation]:
        """Candidates of the last round whose verdict came back."""
        last = self.rounds[-1:]
        return [one for found in last for one in self._members(found) if one.came_back(found.bundle)]

    def times_sent(self, of: Generation) -> int:
        """Rounds that took a candidate along."""
        return sum(of.id in found.candidates for found in self.rounds)

    def never_sent(self) -> list[Generation]:
        """Candidates that nothing refuses and no round took along."""
        return [one for one in self.candidates if one.survives() and self.times_sent(one) == 0]

    def _members(self, found: CampaignRound) -> list[Generation]:
        by_id = {one.id: one for one in self.candidates}
        return [by_id[id] for id in found.candidates if id in by_id]


def verdict_of(row: Row) -> VerdictReached:
    """The verdict that a row holds."""
    assert isinstance(row.event, VerdictReached)
    return row.event


def read_view(log: EventLog, campaign: Campaign) -> View:
    """Fold the log."""
    rows = log.rows(kinds=KINDS, target=campaign.target, hardware=campaign.hardware, after=campaign.seq)
    gone = retracted_verdicts(log, campaign.target, campaign.hardware)
    found: dict[str, Generation] = {}
    rounds: list[CampaignRound] = []
    sent_at = 0
    for row in rows:
        event = row.event
        if isinstance(event, GenerationRequested):
            if campaign.mark in event.overrides:
                found[event.iteration_id] = Generation(row.seq, event)
        elif isinstance(event, CampaignRound):
            if event.campaign_id == campaign.id:
                rounds.append(event)
                sent_at = row.seq
        else:
            assert isinstance(event, ReplyReceived | CandidateGenerated | GenerationFailed | VerdictReached)
            if (one := found.get(event.iteration_id)) is not None:
                _note(one, row, gone)
    return View(campaign, tuple(found.values()), tuple(rounds), sent_at)


def _note(of: Generation, row: Row, gone: frozenset[str]) -> None:
    """What an event says of its generation."""
    event = row.event
    if isinstance(event, ReplyReceived):
        of.seconds += event.usage.seconds
    elif isinstance(event, CandidateGenerated):
        of.candidate = event
    elif isinstance(event, GenerationFailed):
        of.failed = event
    else:
        of.verdicts.append(row)
        of.standing = of.standing if row.id in gone else row


def number_of(of: Generation, generations: Sequence[Generation], per_iteration: int) -> int:
    """The iteration that a generation belongs to, from 1."""
    before = sum(one.counts for one in generations[: generations.index(of)])
    return before // per_iteration + 1
