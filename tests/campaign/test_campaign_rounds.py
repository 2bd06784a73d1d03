"""Campaigns in rounds: what goes to the GPU, what comes of its verdicts, and recorded ones that play it again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from kernelgen.events import (
    CampaignEnded,
    CampaignRound,
    CampaignStarted,
    CandidateGenerated,
    GenerationRequested,
    VerdictReached,
)
from kernelgen.ladder.results import Result
from kernelgen.ladder.work.jobs import Job, read_work
from tests.campaign.campaign_desk import TARGET, Desk, by_digest, no_build, of, results

ROUNDS = (f"target={TARGET}", "gpu=bundle", "judge=L0", "round=3", "budget.iterations=6")


def measured_by_digest(job: Job) -> list[Result]:
    return results(job, by_digest(job))


def played(desk: Desk, *arguments: str) -> list[str]:
    """A campaign to its end, a round after another; every line that a worker left."""
    texts: list[str] = []
    while True:
        said = desk.campaign(*arguments)
        if of(said, "ended"):
            return texts
        assert of(said, "waiting"), said
        texts += desk.answered(measured_by_digest)
        desk.ingest()


def test_a_round_takes_along_what_was_generated_and_the_same_command_waits_for_it(desk: Desk) -> None:
    first = desk.campaign(*ROUNDS)
    (waiting,) = of(first, "waiting")
    assert [one["number"] for one in of(first, "judged")] == [1, 2, 3]
    assert waiting["candidates"] == [one["iteration_id"] for one in of(first, "judged")]
    jobs = read_work(Path(waiting["folder"])).jobs
    assert [job.iteration_id for job in jobs] == waiting["candidates"]
    assert {job.champion.id for job in jobs if job.champion is not None} == {"naive"}
    again = desk.campaign(*ROUNDS)
    assert (of(again, "waiting"), of(again, "judged")) == ([waiting], [])
    assert len(desk.events(CampaignRound)) == len(desk.events(CampaignStarted)) == 1


def test_what_a_round_brings_back_is_in_the_prompts_that_follow(desk: Desk) -> None:
    desk.campaign(*ROUNDS)
    desk.answered(lambda job: results(job, 0.8 if job.number < 3 else 1.3))
    desk.ingest()
    said = desk.campaign(*ROUNDS)
    returned = of(said, "judged")[:3]
    assert [one["level"] for one in returned] == ["L3", "L3", "L4"]
    assert [bool(one["learned"]) for one in returned] == [True, True, True]
    assert "is champion" in returned[2]["promotion"]
    desk.answered(lambda job: results(job, 1.0))
    desk.ingest()
    (summary,) = of(desk.campaign(*ROUNDS), "summary")
    assert (summary["cause"], summary["iterations"], summary["rounds"]) == ("budget", 6, 2)
    assert [one["over"] for one in summary["champions"]] == ["naive"]
    # a compile and three measured levels of the winner, one fewer of each other: all of its round came before
    assert summary["champions"][0]["gpu_seconds"] == 10.0 * (3 + 3 + 4)
    assert summary["gpu_seconds"] == 10.0 * (3 + 3 + 4) + 10.0 * 9
    assert (len(summary["constraints_learned"]), summary["prompts_with_learned"]) == (3, 3)
    assert desk.verifies()


def test_recorded_verdicts_play_a_whole_campaign_again_to_the_same_champions(
    new_desk: Callable[[str], Desk],
) -> None:
    first, second = new_desk("first"), new_desk("second")
    texts = played(first, *ROUNDS)
    file = second.folder / "recorded.jsonl"
    file.write_text("\n".join(texts))
    said = second.campaign(*ROUNDS, f"verdicts={file}")
    assert of(said, "ended")
    assert not of(said, "waiting")
    assert first.champions()
    assert second.champions() == first.champions()
    assert second.verifies()


def test_a_candidate_that_won_beside_a_slower_winner_is_measured_against_it_next(desk: Desk) -> None:
    desk.campaign(*ROUNDS)
    desk.answered(lambda job: results(job, (1.1, 1.5, 1.105)[job.number - 1]))
    desk.ingest()
    first, second, third = desk.events(CampaignRound)[0].candidates
    said = desk.campaign(*ROUNDS)
    assert ["is champion" in one["promotion"] for one in of(said, "judged")[:3]] == [True, False, False]
    (waiting,) = of(said, "waiting")
    assert waiting["candidates"][0] == second
    assert not {first, third} & set(waiting["candidates"])
    jobs = read_work(Path(waiting["folder"])).jobs
    assert {job.champion.id for job in jobs if job.champion is not None} == {first}
    desk.answered(lambda job: results(job, 1.5 / 1.1 if job.number == 1 else 1.0))
    desk.ingest()
    assert [one["champion"] for one in desk.campaign("show")[0]["champions"]] == [first, second]


@pytest.mark.parametrize("learned", ["on", "off"])
def test_a_learned_rule_keeps_a_candidate_from_the_gpu_unless_it_is_blanked_out(desk: Desk, learned: str) -> None:
    """A compiler's refusal of one candidate prunes another one that would have gone to the GPU again."""
    asked = (*ROUNDS, f"learned={learned}")
    desk.campaign(*asked)
    # what is refused of the third is a tile that the second has in every configuration of a kernel
    rows = json.loads(desk.events(CandidateGenerated)[1].configs)["gather_kernel"]
    tile = next(iter(rows[0]["kwargs"]))

    def found(job: Job) -> list[Result]:
        if job.number == 3:
            return no_build("compile.registers", **{f"block.{tile}": 16, "num_stages": 1})
        return results(job, (1.1, 1.5)[job.number - 1])

    desk.answered(found)
    desk.ingest()
    second = desk.events(CampaignRound)[0].candidates[1]
    said = desk.campaign(*asked)
    going = [one for waiting in of(said, "waiting") for one in waiting["candidates"]]
    assert (second in going) == (learned == "off")
    (summary,) = desk.campaign("show")
    assert (second in summary["pruned"]) == (learned == "on")
    assert set(summary["pruned"].values()) <= set(summary["constraints_learned"])
    assert bool(summary["prompts_with_learned"]) == (learned == "on")
    requests = desk.events(GenerationRequested)
    assert {"learned=false" in one.overrides for one in requests} == {learned == "off"}
    assert desk.verifies()


def test_two_commands_of_one_campaign_must_ask_for_the_same(desk: Desk) -> None:
    desk.campaign(*ROUNDS)
    (refused,) = desk.campaign(*ROUNDS[:-1], "budget.iterations=7", code=2)
    assert "iterations 6, not 7" in refused["message"]
    desk.campaign("end", f"target={TARGET}", "--why", "another budget")
    assert desk.events(CampaignEnded)[0].cause == "stopped"
    assert of(desk.campaign(*ROUNDS[:-1], "budget.iterations=7"), "waiting")


def test_an_ended_campaign_is_told_again_and_another_is_asked_for(desk: Desk) -> None:
    asked = (f"target={TARGET}", "gpu=bundle", "judge=L0", "round=3", "budget.iterations=3")
    played(desk, *asked)
    before = len(desk.events(CandidateGenerated))
    assert [one["record"] for one in desk.campaign(*asked)] == ["summary"]
    assert len(desk.events(CandidateGenerated)) == before
    desk.campaign(*asked, "--again")
    assert (len(desk.events(CampaignStarted)), len(desk.events(CampaignEnded))) == (2, 1)


def test_a_candidate_of_which_a_disturbed_machine_could_not_tell_goes_once_more(
    new_desk: Callable[[str], Desk],
) -> None:
    desk = new_desk("work")
    asked = (*ROUNDS[:-1], "budget.iterations=3")
    sends: list[tuple[str, ...]] = []
    texts: list[str] = []
    said = desk.campaign(*asked)
    while waiting := of(said, "waiting"):
        sends.append(tuple(waiting[0]["candidates"]))
        disturbed = {desk.events(CampaignRound)[0].candidates[0]} | ({sends[0][1]} if len(sends) == 1 else set())
        texts += desk.answered(
            lambda job, out=disturbed: could_not_tell(job) if job.iteration_id in out else results(job, 1.0)
        )
        desk.ingest()
        said = desk.campaign(*asked)
    assert sends == [sends[0], sends[0][:2]]
    again = new_desk("again")
    file = again.folder / "recorded.jsonl"
    file.write_text("\n".join(texts))
    again.campaign(*asked, f"verdicts={file}")
    highest = [[one.highest for one in where.events(VerdictReached)] for where in (desk, again)]
    assert highest[0] == highest[1]


def could_not_tell(job: Job) -> list[Result]:
    """What a worker leaves where something else ran on its GPU."""
    return [*results(job, 1.0)[:2], Result("L3", "inconclusive", "something else ran")]


def test_the_playbook_is_told_of_every_attempt_so_that_it_repeats_none(desk: Desk) -> None:
    desk.campaign(*ROUNDS[:-2], "round=5", "budget.iterations=5", "policy.attempts_shown=1")
    sources = [one.source for one in desk.events(VerdictReached)]
    assert len(sources) == len(set(sources)) == 5
    assert all("policy.attempts_shown=1000" in one.overrides for one in desk.events(GenerationRequested))
