"""When a campaign is over, and what it refuses to begin with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kernelgen.campaign.recorded import Recorded
from kernelgen.events import (
    CampaignEnded,
    CampaignRound,
    CampaignStarted,
    CandidateGenerated,
    GenerationFailed,
    RegionFrozen,
    VerdictReached,
)
from kernelgen.ladder.work import lines
from kernelgen.ladder.work.jobs import Job, read_work
from tests.campaign.campaign_desk import MACHINE, TARGET, Desk, of, results

ASKED = (f"target={TARGET}", "gpu=bundle", "judge=L0", "round=2", "budget.iterations=4")


def at_the_floor(job: Job) -> list[object]:
    """A win that takes 96% of its floor at every timed shape, by the figures of the measurement."""
    found = []
    for result in results(job, 1.3):
        details = dict(result.details)
        if "shapes" in details:
            shapes = details["shapes"]
            details["shapes"] = {
                name: {**shape, "candidate": {**shape["candidate"], "of_floor": 0.96}} for name, shape in shapes.items()
            }
        found.append(replace(result, details=details))
    return found  # type: ignore[return-value]


def test_at_the_floor_the_region_is_frozen_with_that_reason(desk: Desk) -> None:
    desk.campaign(*ASKED)
    desk.answered(at_the_floor)  # type: ignore[arg-type]
    desk.ingest()
    said = desk.campaign(*ASKED)
    assert of(said, "ended")[0]["cause"] == "floor"
    (frozen,) = desk.events(RegionFrozen)
    assert "96.0% of its measured floor at t4096" in frozen.why
    (refused,) = desk.campaign(*ASKED, "--again", code=2)
    assert "is frozen" in refused["message"]
    assert len(desk.events(CampaignStarted)) == 1


def test_when_every_state_is_used_up_it_is_exhausted(desk: Desk) -> None:
    """State 2 has no play at all: three requests, and the one state that was asked for is used up."""
    said = desk.campaign(f"target={TARGET}", "gpu=bundle", "judge=L0", "state=2")
    assert [one["state"] for one in of(said, "no_candidate")] == [2, 2, 2]
    (summary,) = of(said, "summary")
    assert (summary["cause"], summary["iterations"], summary["candidates"]) == ("exhausted", 0, 0)


def test_the_vector_goes_through_the_states_and_stops_at_one_that_lacks_its_input(desk: Desk) -> None:
    said = desk.campaign(f"target={TARGET}", "gpu=bundle", "judge=L0", "round=30", "budget.iterations=30")
    states = [one["state"] for one in said if one["record"] in ("judged", "no_candidate")]
    assert states == sorted(states)
    assert set(states) == {0, 1, 2, 3}
    (waiting,) = of(said, "waiting")
    assert waiting["of"] == len(desk.events(CandidateGenerated)) > 2
    desk.answered(lambda job: results(job, 1.0))
    desk.ingest()
    desk.campaign(f"target={TARGET}", "gpu=bundle", "judge=L0", "round=30", "budget.iterations=30")
    assert desk.events(CampaignEnded)[0].cause == "exhausted"
    assert "state 4 needs pr=FILE" in desk.events(CampaignEnded)[0].why


def test_a_budget_of_minutes_counts_what_the_gpu_machine_took(desk: Desk) -> None:
    asked = (*ASKED[:-1], "budget.minutes=1")
    desk.campaign(*asked)
    desk.answered(lambda job: results(job, 1.0))
    desk.ingest()
    said = desk.campaign(*asked)
    (ended,) = of(said, "ended")
    assert ended["cause"] == "budget"
    assert "of 1 minutes" in ended["why"]
    (summary,) = of(said, "summary")
    assert summary["minutes"] >= 1


def test_several_candidates_an_iteration_where_the_policy_says_so(desk: Desk) -> None:
    said = desk.campaign(*ASKED[:3], "round=4", "budget.iterations=2", "policy.candidates_per_iteration=2")
    assert [one["number"] for one in of(said, "judged")] == [1, 1, 2, 2]
    assert of(said, "waiting")[0]["of"] == 4


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (["budget.iterations=0"], "leaves nothing to do"),
        (["budget.minutes=soon"], "is not a time"),
        (["gpu=bundle", "judge=L4"], "needs the GPU"),
        (["gpu=there"], "is not one of auto, here, bundle"),
        (["learned=maybe"], "is not one of on, off"),
        (["target=nothing_like_it"], "There is no target"),
        (["verdicts=nowhere.jsonl"], "cannot be read"),
        (["target=auto"], "needs one target"),
        (["lm=openai_compatible"], "lm.model"),
    ],
)
def test_a_command_that_cannot_be_is_one_sentence_and_begins_nothing(
    desk: Desk, changes: list[str], words: str
) -> None:
    given = [f"target={TARGET}", *changes] if not changes[0].startswith("target=") else changes
    (refused,) = desk.campaign(*given, code=2)
    assert words in refused["message"]
    assert not desk.events(CampaignStarted)


def test_a_region_without_a_profile_is_refused_before_anything_begins(desk: Desk) -> None:
    (refused,) = desk.campaign("target=moe_combine", "gpu=bundle", "judge=L0", code=2)
    assert "No profile has identified moe_combine" in refused["message"]
    assert not desk.events(CampaignStarted)


def test_a_recorded_line_answers_only_for_its_text_its_champion_and_its_card(desk: Desk) -> None:
    desk.campaign(*ASKED)
    sent = desk.events(CampaignRound)[0]
    job, other = read_work(Path(sent.folder)).jobs
    texts = desk.answered(lambda job: results(job, 1.2))
    elsewhere = lines.line("sha256:other", job, results(job, 1.1), MACHINE)
    own = Recorded([texts[0], elsewhere]).answer(sent.bundle, job)
    assert own == texts[0]
    told_again = Recorded([elsewhere]).answer(sent.bundle, job)
    assert told_again is not None
    found = lines.parsed(told_again)
    assert (found.bundle, found.job, found.machine["recorded_line"]) == (
        sent.bundle,
        job.number,
        lines.parsed(elsewhere).digest,
    )
    assert Recorded([elsewhere]).answer(sent.bundle, other) is None
    assert job.champion is not None
    rival = replace(job, champion=replace(job.champion, digest="sha256:another"))
    assert Recorded([elsewhere]).answer(sent.bundle, rival) is None
    on_another_card = lines.line("sha256:other", job, results(job, 1.1), {**MACHINE, "gpu": "NVIDIA H100"})
    assert Recorded([on_another_card]).answer(sent.bundle, job) is None
    assert Recorded(["{", *texts]).unread


def test_where_the_gpu_is_here_every_candidate_is_judged_before_the_next_is_asked_for(desk: Desk) -> None:
    said = desk.campaign(f"target={TARGET}", "gpu=here", "judge=L0", "budget.iterations=2")
    assert [one["record"] for one in said] == ["campaign", "judged", "judged", "ended", "summary"]
    kinds = [type(one) for one in desk.events((CandidateGenerated, VerdictReached))]
    assert kinds == [CandidateGenerated, VerdictReached] * 2
    assert not desk.events(CampaignRound)


def test_a_door_that_never_answers_stops_the_command_and_leaves_the_campaign_open(desk: Desk) -> None:
    door = ["lm=openai_compatible", "lm.model=any", "lm.api_base=http://127.0.0.1:9/v1", "lm.retries=0"]
    said = desk.campaign(f"target={TARGET}", "gpu=bundle", "judge=L0", "budget.iterations=9", *door, code=1)
    assert said[-1]["error"]
    causes = [one.cause for one in desk.events(GenerationFailed)]
    assert causes == ["model_error"] * 3
    assert not desk.events(CampaignEnded)
