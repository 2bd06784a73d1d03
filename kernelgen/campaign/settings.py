"""What a campaign was asked for, and which campaign of a region a command means: a new, an open or an ended one."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, Self

from kernelgen.errors import BadInput
from kernelgen.eventlog.store import EventLog
from kernelgen.events import CampaignEnded, CampaignStarted
from kernelgen.ids import new_id

Gpu = Literal["here", "bundle"]
DEFAULT_ITERATIONS = 10
"""Where no budget is given."""
DEFAULT_ROUND = 8
"""Candidates of a round: GPU time is short, and a run of the worker has a start of its own to pay for."""
PREFIX = "c"


@dataclass(frozen=True)
class Settings:
    """What was asked. The same command means the same campaign."""

    gpu: Gpu
    """Whether candidates are measured here, or in rounds on another machine."""
    iterations: int | None
    """Budget of iterations; None for no such limit."""
    minutes: float | None
    """Budget of minutes of asking and judging; None for no such limit."""
    round_size: int
    """Candidates that one bundle takes along."""
    seed: int | None
    """Of a model's sampling and of the inputs here; None draws them."""
    learned: bool
    """Whether prompts and rules have what verdicts taught."""
    overrides: tuple[str, ...]
    """What the user set of the config groups, sorted."""

    def difference(self, other: Settings) -> str | None:
        """The first setting in which another differs, in words; None where all are equal."""
        for field in fields(self):
            mine, theirs = getattr(self, field.name), getattr(other, field.name)
            if mine != theirs:
                return f"{field.name} {_shown(mine)}, not {_shown(theirs)}"
        return None


@dataclass(frozen=True)
class Campaign:
    """One campaign of the log."""

    id: str
    """Its id."""
    target: str
    """Target name."""
    hardware: str
    """Hardware name."""
    seq: int
    """Number of the event that began it."""
    settings: Settings
    """What was asked."""
    ended: CampaignEnded | None = None
    """Its end; None while it is open."""

    @property
    def mark(self) -> str:
        """What its generations have among their overrides."""
        return mark(self.id)

    @classmethod
    def of(cls, seq: int, event: CampaignStarted, ended: CampaignEnded | None) -> Self:
        """The campaign that an event began."""
        settings = Settings(
            event.gpu, event.iterations, event.minutes, event.round_size, event.seed, event.learned, event.overrides
        )
        return cls(event.campaign_id, event.target, event.hardware, seq, settings, ended)


def mark(campaign_id: str) -> str:
    """What the generations of a campaign have among their overrides."""
    return f"campaign={campaign_id}"


def campaigns(log: EventLog, target: str | None = None, hardware: str | None = None) -> list[Campaign]:
    """The campaigns of the log, oldest first."""
    rows = list(log.rows(kinds=("campaign_started", "campaign_ended"), target=target, hardware=hardware))
    ended = {row.event.campaign_id: row.event for row in rows if isinstance(row.event, CampaignEnded)}
    begun = [(row.seq, row.event) for row in rows if isinstance(row.event, CampaignStarted)]
    return [Campaign.of(seq, event, ended.get(event.campaign_id)) for seq, event in begun]


def meant(log: EventLog, target: str, hardware: str, settings: Settings, *, again: bool) -> Campaign | None:
    """The region's campaign that a command means, open, or ended with these settings; None for a new one.

    `again` asks for a new one where the last one is over. Raises BadInput where another one is open.
    """
    known = campaigns(log, target, hardware)
    last = known[-1] if known else None
    if last is None:
        return None
    differs = last.settings.difference(settings)
    if last.ended is not None:
        return last if differs is None and not again else None
    if differs is not None:
        raise BadInput(
            f"The campaign {last.id} of {target} on {hardware} is open, with {differs}: go on with its own command, or "
            f"end it first: `kernelgen campaign end target={target} hardware={hardware} --why REASON`."
        )
    return last


def start(log: EventLog, campaign_id: str, target: str, hardware: str, settings: Settings) -> Campaign:
    """Append a new campaign's beginning."""
    event = CampaignStarted(
        campaign_id=campaign_id,
        target=target,
        hardware=hardware,
        gpu=settings.gpu,
        iterations=settings.iterations,
        minutes=settings.minutes,
        round_size=settings.round_size,
        seed=settings.seed,
        learned=settings.learned,
        overrides=settings.overrides,
    )
    row = log.append(event)
    return Campaign.of(row.seq, event, None)


def new_campaign_id() -> str:
    """An id for a campaign."""
    return new_id(PREFIX)


def _shown(value: object) -> str:
    return " ".join(value) if isinstance(value, tuple) else str(value)
