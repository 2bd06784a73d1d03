"""`n=` candidates of one prompt at the same time, and budgets that hold for all of them."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from chat_server import Handler, completion, fails, says, serving
from lm_workspace import REPLY, TARGET, Workspace

from kernelgen.door import compose
from kernelgen.errors import ConfigError, GenerationError, Refused
from kernelgen.eventlog.store import EventLog
from kernelgen.events import GenerationRequested, ReplyReceived
from kernelgen.generation.models import open_model
from kernelgen.generation.prepare import prepare
from kernelgen.generation.run import Outcome
from kernelgen.generation.several import Result, run_all

PRICES = ("lm.usd_per_million_input_tokens=1", "lm.usd_per_million_output_tokens=10", "lm.price_source='a list'")
RunAll = Callable[..., list[Result]]


@pytest.fixture
def ask(workspace: Workspace) -> RunAll:
    def run(*overrides: str) -> list[Result]:
        resolved = compose.compose([f"target={TARGET}", "state=1", *overrides], [])
        place = resolved.workspace
        with EventLog.open(place.events) as log:
            model = open_model(resolved.config.lm, log)
            return run_all(prepare(resolved, log), log=log, model=model, out=place.out)

    return run


def choice(base: str, *further: str) -> list[str]:
    return ["lm=openai_compatible", "lm.model=big", f"lm.api_base={base}", "lm.retries=0", *further]


def test_all_are_asked_at_once_and_each_is_an_iteration_of_its_own(workspace: Workspace, ask: RunAll) -> None:
    together = threading.Barrier(4, timeout=30)

    def waits_for_the_others(handler: Handler) -> None:
        together.wait()
        says(REPLY)(handler)

    with serving(waits_for_the_others) as server:
        found = ask(*choice(server.url), "n=4")
    assert len({outcome.iteration_id for outcome in found if isinstance(outcome, Outcome)}) == 4
    assert len({json.dumps(request) for request in server.requests}) == 1
    assert len(list(Path(f"scripts/kernels/{TARGET}").glob("g*.py"))) == 4
    assert workspace.replays()


def test_each_takes_a_seed_of_its_own_and_logs_it(workspace: Workspace, ask: RunAll) -> None:
    with serving(says(REPLY)) as server:
        ask(*choice(server.url), "n=3", "lm.seed=7")
    assert sorted(request["seed"] for request in server.requests) == [7, 8, 9]
    logged = [e for e in workspace.events("generation_requested") if isinstance(e, GenerationRequested)]
    assert sorted(json.loads(event.parameters)["seed"] for event in logged) == [7, 8, 9]
    replies = [event for event in workspace.events("reply_received") if isinstance(event, ReplyReceived)]
    assert len({reply.request_key for reply in replies}) == 3
    assert workspace.replays()


def test_one_that_fails_leaves_the_others_as_they_are(workspace: Workspace, ask: RunAll) -> None:
    with serving(fails(500, "oops"), says(REPLY)) as server:
        found = ask(*choice(server.url), "n=3")
    assert sorted(type(result).__name__ for result in found) == ["ModelError", "Outcome", "Outcome"]
    assert workspace.causes() == ["model_error"]
    assert workspace.replays()


@pytest.mark.parametrize("lm", ["playbook", "recorded"])
def test_several_answers_of_a_door_that_has_one_are_refused(ask: RunAll, lm: str) -> None:
    with pytest.raises(ConfigError, match=f"n=2 asks one prompt 2 times, and lm={lm} has one answer to it"):
        ask(f"lm={lm}", "n=2")


# ---- budgets --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        ("max_calls=2", r"lm\.max_calls=2 of lm=openai_compatible is used up in this log: 2 replies, 2400 tokens"),
        ("max_total_tokens=2400", r"lm\.max_total_tokens=2400 .* is used up"),
        ("max_usd=0.006", r"lm\.max_usd=0\.006 .* 0\.006 USD; raise it, or begin another log"),
    ],
)
def test_a_budget_that_is_used_up_refuses_and_logs_the_refusal(
    workspace: Workspace, ask: RunAll, limit: str, said: str
) -> None:
    with serving(says(REPLY)) as server:
        asked = choice(server.url, f"lm.{limit}", *PRICES)
        for _ in range(2):
            ask(*asked)
        with pytest.raises(Refused, match=said):
            ask(*asked)
        assert len(server.requests) == 2
    assert len(workspace.events("generation_refused")) == 1
    assert workspace.replays()


def test_several_at_once_keep_to_the_calls_that_are_left(workspace: Workspace, ask: RunAll) -> None:
    with serving(says(REPLY)) as server:
        found = ask(*choice(server.url, "lm.max_calls=3"), "n=5")
        assert len(server.requests) == 3
    assert sum(isinstance(result, Outcome) for result in found) == 3
    assert workspace.causes() == ["over_budget"] * 2


def test_asking_again_counts_too(workspace: Workspace, ask: RunAll) -> None:
    with serving(says("no section")) as server:
        (result,) = ask(*choice(server.url, "lm.max_calls=2"))
        assert len(server.requests) == 2
    assert isinstance(result, GenerationError)
    assert workspace.causes() == ["over_budget"]


def test_a_budget_is_of_its_choice_alone(ask: RunAll) -> None:
    with serving(says(REPLY)) as server:
        ask(*choice(server.url, "lm.max_calls=1"))
        ask("lm=vllm", "lm.model=big", f"lm.api_base={server.url}", "lm.max_calls=1")
        ask("lm=playbook")
        with pytest.raises(Refused, match="lm=vllm is used up"):
            ask("lm=vllm", "lm.model=big", f"lm.api_base={server.url}", "lm.max_calls=1")


def test_what_is_not_known_is_named_in_the_sum(ask: RunAll) -> None:
    def uncounted(handler: Handler) -> None:
        body = completion(REPLY)
        del body["usage"]
        handler.send(200, json.dumps(body).encode())

    with serving(uncounted) as server:
        ask(*choice(server.url))
        with pytest.raises(Refused, match=r"1 replies, 0 tokens \(1 replies uncounted\), 0 USD \(1 replies of unknown"):
            ask(*choice(server.url, "lm.max_calls=1"))
