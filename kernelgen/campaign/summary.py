"""What came of a campaign, told from the log alone: champions, GPU seconds, what was learned and what that spared.

A candidate counts as pruned where L0 refused it by a rule that a verdict taught: it took no GPU time. So does a request
to which the playbook had no answer within such a rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from kernelgen.campaign.cost import bundle_of, gpu_seconds
from kernelgen.campaign.ends import floor_share
from kernelgen.campaign.settings import Campaign
from kernelgen.campaign.view import View, read_view, verdict_of
from kernelgen.config import Target
from kernelgen.constraints.learned import is_learned
from kernelgen.eventlog.chain import Row
from kernelgen.eventlog.store import EventLog
from kernelgen.events import ConstraintAdded, VerdictReached
from kernelgen.judging import promotion
from kernelgen.judging.rules_check import CHECK
from kernelgen.records import Selection

_PRUNED = re.compile(r"^pruned .*hard constraint (\S+), rule ", re.DOTALL)


@dataclass(frozen=True)
class Won:
    """A champion that the campaign made."""

    champion: str
    """Its id."""
    over: str
    """The champion it beat."""
    ratio: float | None
    """That one's time over its own, geometric mean over the timed shapes."""
    times_us: dict[str, float]
    """Its time by timed shape."""
    gpu_seconds: float
    """Of the campaign, up to the verdict that promoted it."""
    fate: str
    """Whether it stands."""


@dataclass(frozen=True)
class Summary:
    """A campaign in figures."""

    campaign: str
    """Its id."""
    target: str
    """Target name."""
    hardware: str
    """Hardware name."""
    learned: bool
    """Whether prompts and rules had what verdicts taught."""
    ended: str | None
    """Why it is over; None while it is open."""
    cause: str | None
    """In a word."""
    iterations: int
    """Generations that the budget counts."""
    candidates: int
    """Candidates written."""
    measured: int
    """Candidates that were measured against a champion."""
    rounds: int
    """Bundles."""
    champions: tuple[Won, ...]
    """Made by it, the first one first."""
    champion: str
    """The region's now; `naive` for the target's own."""
    over_first: float | None
    """How many times as fast that is as the first of its line."""
    share_of_floor: float | None
    """Its measured floor over its time at the profile shape."""
    gpu_seconds: float
    """Of all its verdicts."""
    minutes: float
    """Of asking and judging."""
    constraints_learned: tuple[str, ...]
    """Ids of the constraints that its verdicts taught."""
    prompts_with_learned: int
    """Prompts that carried what a verdict taught."""
    pruned: dict[str, str]
    """Candidates, or requests, that a learned rule refused before any GPU time: the constraint by iteration."""
    configurations_pruned: int
    """Configurations of other candidates that such a rule excluded."""


def summarize(log: EventLog, campaign: Campaign, target: Target) -> Summary:
    """The figures of a campaign as the log has it now."""
    view = read_view(log, campaign)
    line = promotion.lineage(log, campaign.target, campaign.hardware)
    now = promotion.current(line)
    gain = None if now is None else promotion.gain(line, now)
    learned = {constraint for ids in learned_of(log, view).values() for constraint in ids}
    rules = _learned_ids(log)
    verdicts = [row for one in view.generations for row in one.verdicts]
    return Summary(
        campaign=campaign.id,
        target=campaign.target,
        hardware=campaign.hardware,
        learned=campaign.settings.learned,
        ended=None if campaign.ended is None else campaign.ended.why,
        cause=None if campaign.ended is None else campaign.ended.cause,
        iterations=view.counted,
        candidates=len(view.candidates),
        measured=sum(any("L3" in verdict_of(row).details for row in one.verdicts) for one in view.candidates),
        rounds=len(view.rounds),
        champions=tuple(_champions(view, line, verdicts)),
        champion="naive" if now is None else now.champion.id,
        over_first=None if gain is None else gain[0],
        share_of_floor=floor_share(log, target, campaign.hardware),
        gpu_seconds=round(sum(gpu_seconds(verdict_of(row)) for row in verdicts), 3),
        minutes=round(view.minutes, 3),
        constraints_learned=tuple(sorted(learned)),
        prompts_with_learned=sum(_carried(log, one.asked.selection, rules) for one in view.generations),
        pruned=dict(_pruned(view, rules)),
        configurations_pruned=sum(len(list(_configurations(verdict_of(row), rules))) for row in verdicts),
    )


def learned_of(log: EventLog, view: View) -> dict[str, tuple[str, ...]]:
    """Ids of the constraints that the campaign's verdicts taught, by the verdict's event."""
    own = {row.id for one in view.generations for row in one.verdicts}
    found: dict[str, tuple[str, ...]] = {}
    for row in log.rows(kinds=("constraint_added",), after=view.campaign.seq):
        assert isinstance(row.event, ConstraintAdded)
        events = [event for event in row.event.constraint.evidence.events if event in own]
        if events:
            found[events[-1]] = (*found.get(events[-1], ()), row.event.constraint.id)
    return found


def _learned_ids(log: EventLog) -> frozenset[str]:
    """Every constraint that a verdict taught, retracted ones too."""
    rows = log.rows(kinds=("constraint_added",))
    constraints = [row.event.constraint for row in rows if isinstance(row.event, ConstraintAdded)]
    return frozenset(constraint.id for constraint in constraints if is_learned(constraint))


def _champions(view: View, line: list[promotion.Ancestor], verdicts: list[Row]) -> Iterator[Won]:
    """The region's champions whose verdicts are the campaign's."""
    own = {row.id: row for row in verdicts}
    for one in line:
        verdict = own.get(one.link.event.verdict or "")
        if verdict is None:
            continue
        spent = sum(gpu_seconds(verdict_of(row)) for row in verdicts if row.seq <= verdict.seq)
        shapes = {} if one.measured is None else one.measured.shapes
        yield Won(
            champion=one.champion.id,
            over=one.link.event.parent or "",
            ratio=None if one.measured is None else one.measured.over_all.ratio,
            times_us={name: shape.candidate_us for name, shape in shapes.items()},
            gpu_seconds=round(spent, 3),
            fate=one.link.fate,
        )


def _carried(log: EventLog, selection: str, learned: frozenset[str]) -> bool:
    chosen = Selection.model_validate_json(log.text(selection)).chosen
    return any(not learned.isdisjoint(one.ids) for one in chosen)


def _pruned(view: View, learned: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Iterations that a learned rule ended before any GPU time, with the constraint."""
    for one in view.generations:
        if one.failed is not None and one.failed.cause == "no_play":
            named = set(re.findall(r"[\w.]+\w", one.failed.reason)) & learned
            yield from ((one.id, name) for name in sorted(named)[:1])
        for row in one.verdicts:
            refused = verdict_of(row).verdict.refused()
            check = refused.findings[0].check if refused is not None and refused.findings else ""
            if refused is not None and refused.level == "L0" and check.removeprefix(CHECK) in learned:
                yield one.id, check.removeprefix(CHECK)


def _configurations(event: VerdictReached, learned: frozenset[str]) -> Iterator[str]:
    """Configurations that a learned rule excluded; a verdict that came back repeats the log's own L0."""
    if bundle_of(event) is not None:
        return
    for note in event.verdict.levels[0].notes:
        found = _PRUNED.match(note)
        if found is not None and found[1] in learned:
            yield note
