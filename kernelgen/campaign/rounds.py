"""Rounds: which candidates go to the GPU next, their bundle, and the verdicts that answer it.

Two candidates of a round can both beat the champion, and only the first becomes champion. So beside the new ones go
those that won against a champion which was overtaken since, where by the figures so far they would beat the one now.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kernelgen import champions
from kernelgen.campaign.cost import is_undecided_there, lines_of
from kernelgen.campaign.recorded import Recorded
from kernelgen.campaign.settings import Campaign
from kernelgen.campaign.view import Generation, View, verdict_of
from kernelgen.constraints.measured import read_comparison
from kernelgen.errors import BadInput, Refused
from kernelgen.events import CampaignRound
from kernelgen.judging import promotion
from kernelgen.judging.bundle import Bundled, bundle
from kernelgen.judging.ingest import Taken, ingest
from kernelgen.judging.session import Session
from kernelgen.judging.subjects import Judged
from kernelgen.ladder.work.jobs import Clock, WorkLevel, read_work

LEVEL: WorkLevel = "L4"


def folder_of(campaign: Campaign, number: int, out: Path) -> Path:
    """Where a round's bundle lies: two campaigns never share one."""
    return out / campaign.id / f"round-{number}"


def ready(view: View, session: Session) -> list[Generation]:
    """The candidates that the next bundle takes along, those that were there before first."""
    return [*rematches(view, session), *undecided(view), *view.never_sent()]


def undecided(view: View) -> list[Generation]:
    """Candidates of which a GPU machine could not tell, for a second time and no third one."""
    once = [one for one in view.candidates if one.survives() and view.times_sent(one) == 1]
    return [one for one in once if one.standing is not None and is_undecided_there(verdict_of(one.standing))]


def rematches(view: View, session: Session) -> list[Generation]:
    """Candidates that won against an earlier champion, and by more than the one that holds now did."""
    campaign = view.campaign
    line = promotion.lineage(session.log, campaign.target, campaign.hardware)
    names = {one.champion.id for one in line if one.link.fate == "stands"}
    won = [one for one in view.candidates if one.survives() and one.id not in names]
    return [one for one in won if _would_win(one, line, session)]


def _would_win(one: Generation, line: list[promotion.Ancestor], session: Session) -> bool:
    """Whether it beat a champion that was overtaken, by more than those who overtook it did."""
    assert one.standing is not None
    now, event = promotion.current(line), verdict_of(one.standing)
    if now is None or event.highest != "L4" or LEVEL not in event.details:
        return False
    try:
        measured = read_comparison(session.log.text(event.details["L3"]))
    except (BadInput, KeyError):
        return False
    since = gain_since(line, now, measured.champion_id)
    return since is not None and measured.over_all.ratio / since >= 1 + session.policy.minimum_effect


def gain_since(line: list[promotion.Ancestor], now: promotion.Ancestor, rival: str) -> float | None:
    """How many times as fast the champion is as an earlier one; None where it is that one, or no line leads there."""
    by_place = {one.link.place: one for one in line}
    product, link = 1.0, now.link
    while link.event.champion_id != rival:
        measured = by_place[link.place].measured
        if measured is None:
            return None
        product *= measured.over_all.ratio
        if link.parent is None:
            return product if rival == champions.NAIVE else None
        link = link.parent
    return product if link is not now.link else None


def write(view: View, candidates: list[Judged], out: Path, session: Session, clock: Clock) -> Bundled | None:
    """Bundle a round and append that it was; None where L0, with what was learned since, refuses all of them.

    Killed between the two, the next start finds the same bundle in the folder.
    """
    campaign, number = view.campaign, len(view.rounds) + 1
    count = session.log.count()
    try:
        made = bundle(candidates, folder_of(campaign, number, out), LEVEL, session, clock=clock)
    except Refused:
        if session.log.count() == count:  # it refused for another reason than fresh verdicts
            raise
        return None
    session.log.append(
        CampaignRound(
            campaign_id=campaign.id,
            target=campaign.target,
            hardware=campaign.hardware,
            round=number,
            bundle=made.id,
            folder=str(made.folder),
            candidates=tuple(job.iteration_id for job in made.jobs),
        )
    )
    return made


def take(view: View, recorded: Recorded, session: Session) -> Iterator[Taken]:
    """Ingest the recorded lines that answer what the last round waits for, in the order of its jobs."""
    last, wanted = view.rounds[-1], {one.id: one for one in view.waiting()}
    jobs = [job for job in read_work(Path(last.folder)).jobs if job.iteration_id in wanted]
    used = {id: {line for row in one.verdicts for line in lines_of(verdict_of(row))} for id, one in wanted.items()}
    answers = [recorded.answer(last.bundle, job, used[job.iteration_id]) for job in jobs]
    yield from ingest([text for text in answers if text is not None], session)
