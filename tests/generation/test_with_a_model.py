"""The whole path through a model behind an endpoint: a scripted one on loopback, which answers any prompt in form."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernelgen.candidates import read_header
from kernelgen.eventlog.store import EventLog
from kernelgen.events import ChampionNamed, GenerationFailed, GenerationRequested, ReplyReceived
from kernelgen.ids import digest_text
from kernelgen.records import Champion, to_text
from tests.generation.conftest import TARGETS, kernelgen, kinds, log, scripted_reply
from tests.lm.chat_server import Behaviour, Handler, completion, says, sends, serving
from tests.prompt.spec_check import missing_from_candidate, missing_from_prompt

Generated = Callable[..., dict[str, Any]]
MODEL = ("lm=openai_compatible", "lm.model=scripted", "lm.retries=0", "lm.timeout_s=20")
DIFF = "Repository: sgl-project/sglang\nNumber: 25835\nLicence: Apache-2.0\n\n--- a/x.py\n+++ b/x.py\n+    return 1\n"


def answers(**changes: Any) -> Behaviour:
    """A model that reads the prompt it gets and answers in form."""

    def behaviour(handler: Handler) -> None:
        prompt = "\n".join(message["content"] for message in handler.server.requests[-1]["messages"])
        handler.send(200, json.dumps(completion(scripted_reply(prompt, **dict(changes)))).encode())

    return behaviour


def promote(folder: Path) -> None:
    """Make a promoted champion of each target, as L4 will."""
    with EventLog.open(folder / "events.db") as found:
        for target in TARGETS:
            champion = Champion(
                id=f"g_{target}", target=target, hardware="h200", origin="promoted", language="python",
                entry_point=target, source=f"def {target}(**inputs):\n    return ()\n",
            )  # fmt: skip
            text = to_text(champion)
            event = ChampionNamed(
                target=target, hardware="h200", champion_id=champion.id, origin="promoted", champion=digest_text(text)
            )
            found.append(event, [text])


def test_all_six_states_of_both_targets_in_one_sweep_each_in_form_and_replayed(
    workspace: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    promote(workspace)
    (workspace / "x.diff").write_text(DIFF)
    (workspace / "ref.py").write_text("def reference(x):\n    return x\n")
    (workspace / "parts.yaml").write_text(f"targets: [{', '.join(TARGETS)}]\nreference: ref.py\n")
    with serving(answers()) as server:
        states = ("state=0,1,2,3,4,5", "pr=x.diff", "parts=parts.yaml")
        sweep = ("generate", "judge=none", "-m", f"target={','.join(TARGETS)}", *states)
        assert kernelgen(*sweep, *MODEL, f"lm.api_base={server.url}", "--json") == 0
    records = [json.loads(line) for line in capfd.readouterr().out.splitlines() if line.startswith("{")]
    assert {(r["target"], r["state"]) for r in records} == {(t, n) for t in TARGETS for n in range(6)}
    for record in records:
        files = {Path(f).relative_to(workspace).as_posix(): Path(f).read_text() for f in record["files"]}
        assert missing_from_candidate(files, autotuned=False) == [], record
        assert [Path(f).suffix for f in record["files"]] == ([".cu", ".py"] if record["state"] == 3 else [".py"])
    _prompts_are_whole(workspace)
    assert kernelgen("replay", "--all") == 0
    assert kernelgen("log", "verify") == 0


def _prompts_are_whole(folder: Path) -> None:
    with log(folder) as found:
        for row in found.rows(kinds=("generation_requested",)):
            assert isinstance(row.event, GenerationRequested)
            messages = json.loads(found.text(row.event.messages))
            assert missing_from_prompt(messages) == []
            told = {4: "sgl-project/sglang", 5: "def reference(x):"}.get(row.event.state, "")
            assert told in messages[-1]["content"]


def test_usage_and_cost_are_recorded_and_an_unknown_price_stays_unknown(workspace: Path, generated: Generated) -> None:
    with serving(answers()) as server:
        base = (*MODEL, f"lm.api_base={server.url}", "target=mla_decode_fp8", "state=1")
        free = generated(*base)
        prices = ("lm.usd_per_million_input_tokens=3", "lm.usd_per_million_output_tokens=15", "lm.price_source=a test")
        paid = generated(*base, *prices)
    with log(workspace) as found:
        usages = []
        for record in (free, paid):
            reply = found.iteration(record["iteration_id"])[1].event
            assert isinstance(reply, ReplyReceived)
            usages.append((reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.cost_usd))
    assert usages == [(1000, 200, None), (1000, 200, pytest.approx(0.006))]


def test_an_unusable_reply_is_asked_for_again_with_the_reason(workspace: Path, generated: Generated) -> None:
    with serving(says("I cannot do that."), answers()) as server:
        record = generated(*MODEL, f"lm.api_base={server.url}", "target=mla_decode_fp8", "state=1")
        first, second = (request["messages"] for request in server.requests)
    assert second[: len(first)] == first
    assert second[len(first)]["content"] == "I cannot do that."
    assert "HYPOTHESIS" in second[-1]["content"]
    assert record["files"]
    assert kinds(workspace) == ["generation_requested", "reply_received", "reply_received", "candidate_generated"]
    assert kernelgen("replay", "--all") == 0


def test_replies_that_stay_unusable_end_as_a_failure_after_a_bounded_number(
    workspace: Path, generated: Generated
) -> None:
    with serving(says("[HYPOTHESIS]\nx\n\n[KERNEL]\n```python\ndef mla", "length")) as server:
        base = (*MODEL, f"lm.api_base={server.url}", "target=mla_decode_fp8", "state=1")
        record = generated(*base, "policy.reply_attempts=2", code=1)
        assert len(server.requests) == 2
    assert record["error"] == "UnusableReply"
    assert "truncated" in record["message"]
    with log(workspace) as found:
        last = list(found.rows())[-1].event
    assert isinstance(last, GenerationFailed)
    assert last.cause == "unusable_reply"
    assert kernelgen("replay", "--all") == 0


def test_a_model_that_does_not_answer_is_a_row_and_a_sentence(workspace: Path, generated: Generated) -> None:
    with serving(sends(500, {"error": {"message": "overloaded"}})) as server:
        record = generated(*MODEL, f"lm.api_base={server.url}", "target=mla_decode_fp8", code=1)
    assert (record["error"], "\n" in record["message"]) == ("ModelError", False)
    assert kinds(workspace) == ["generation_requested", "generation_failed"]


def test_a_soft_constraint_is_set_aside_with_its_reason_and_a_hard_one_cannot_be(
    workspace: Path, generated: Generated, capsys: pytest.CaptureFixture[str]
) -> None:
    assert kernelgen("constraints", "add", "Avoid atomics.", "severity=soft", "--json") == 0
    soft = json.loads(capsys.readouterr().out.splitlines()[-1])["id"]
    hard = [{"id": "h200_waves", "reason": "I know better"}]
    aside = [{"id": soft, "reason": "one counter only"}]
    with serving(answers(overrides=hard), answers(overrides=aside)) as server:
        record = generated(*MODEL, f"lm.api_base={server.url}", "target=mla_decode_fp8", "state=1")
        assert re.search(r"h200_waves", server.requests[1]["messages"][-1]["content"])
    assert record["overridden"] == [soft]
    header = read_header(Path(record["files"][0]).read_text())
    assert header["overrides"] == (f"{soft}: one counter only",)


def test_a_missing_key_names_the_variable(
    workspace: Path, generated: Generated, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("A_KEY_FOR_THIS_TEST", raising=False)
    key = "lm.key_env=A_KEY_FOR_THIS_TEST"
    record = generated(*MODEL, "lm.api_base=http://127.0.0.1:9/v1", key, "target=mla_decode_fp8", code=2)
    assert "A_KEY_FOR_THIS_TEST" in record["message"]
