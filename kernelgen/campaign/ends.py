"""When a campaign is over: at once, or for want of anything to ask. Functions of the log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from kernelgen.campaign.view import View
from kernelgen.config import Approach, GenerateConfig, Target
from kernelgen.eventlog.store import EventLog
from kernelgen.events import CampaignEnded, Event, RegionFrozen
from kernelgen.generation import region
from kernelgen.generation.allowance import Allowance
from kernelgen.judging import promotion
from kernelgen.records import Position

ApproachOf = Callable[[int], Approach]
"""The approach of a state, by its number."""


@dataclass(frozen=True)
class End:
    """Why a campaign is over."""

    cause: Literal["budget", "floor", "exhausted", "frozen", "stopped"]
    """In a word."""
    why: str
    """In a sentence."""


def over(log: EventLog, view: View, config: GenerateConfig) -> End | None:
    """Why nothing more may happen to the region: it is frozen, or at its floor."""
    campaign, target = view.campaign, config.target
    assert isinstance(target, Target)
    frozen = region.frozen(log, campaign.target, campaign.hardware)
    if frozen is not None:
        return End("frozen", f"the region is frozen: {frozen}")
    share = floor_share(log, target, campaign.hardware)
    if share is None or share < config.policy.floor_share:
        return None
    return End(
        "floor",
        f"at {share:.1%} of its measured floor at {target.profile_shape}, where {config.policy.floor_share:.1%} counts "
        "as done",
    )


def floor_share(log: EventLog, target: Target, hardware: str) -> float | None:
    """The measured floor over the champion's time at the profile shape; None where that was not measured."""
    now = promotion.current(promotion.lineage(log, target.name, hardware))
    timed = None if now is None or now.measured is None else now.measured.shapes.get(target.profile_shape)
    return None if timed is None else timed.of_floor


def nothing_to_ask(log: EventLog, view: View, config: GenerateConfig, approach_of: ApproachOf) -> End | None:
    """Why no further candidate is asked for: the budget is used up, or every state is."""
    settings = view.campaign.settings
    most = settings.iterations
    if most is not None and view.counted >= most * config.policy.candidates_per_iteration:
        return End("budget", f"{most} iterations are used up")
    if settings.minutes is not None and view.minutes >= settings.minutes:
        return End("budget", f"{view.minutes:.1f} of {settings.minutes:g} minutes are used up")
    refusal = Allowance(config.lm).refusal(log)
    if refusal is not None:
        return End("budget", refusal)
    return _exhausted(log, view, config, approach_of)


def _exhausted(log: EventLog, view: View, config: GenerateConfig, approach_of: ApproachOf) -> End | None:
    """Why no state is left to try."""
    campaign, limit = view.campaign, config.policy.failures_before_advancing
    chosen = config.state if isinstance(config.state, Approach) else None
    position = region.position(
        log, campaign.target, campaign.hardware, config.policy, None if chosen is None else chosen.number
    )
    if chosen is not None and position.failures.get(str(chosen.number), 0) >= limit:
        return End("exhausted", f"state {chosen.number}, the one asked for, has used up its {limit} failures")
    if position.state is None:
        return End("exhausted", f"all six states have used up their {limit} failures")
    return _missing(position, config, approach_of)


def _missing(position: Position, config: GenerateConfig, approach_of: ApproachOf) -> End | None:
    """Why the next state cannot be asked: its further input was not given."""
    assert position.state is not None
    approach = approach_of(position.state)
    given = {"pr": config.pr, "parts": config.parts}
    for need in approach.needs:
        if given[need] is None:
            why = f"states 0 to {position.state - 1} are used up, and state {position.state} needs {need}=FILE"
            return End("exhausted", why)
    return None


def events_of(view: View, end: End) -> list[Event]:
    """What is appended, in one transaction, where a campaign ends so."""
    campaign = view.campaign
    target, hardware = campaign.target, campaign.hardware
    ended = CampaignEnded(campaign_id=campaign.id, target=target, hardware=hardware, cause=end.cause, why=end.why)
    if end.cause != "floor":
        return [ended]
    return [RegionFrozen(target=target, hardware=hardware, why=f"{end.why} (campaign {campaign.id})"), ended]
