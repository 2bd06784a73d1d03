"""A hostile or unlucky server behind the whole `generate`: every end is a typed row, nothing leaks, nothing hangs."""

from __future__ import annotations

import json
import time

import pytest
from chat_server import (
    Behaviour,
    breaks_off,
    completion,
    echoes_the_key,
    fails,
    says,
    says_nothing,
    sends,
    serving,
    trickles,
)
from lm_workspace import REPLY, TARGET, Workspace

from kernelgen.events import CandidateGenerated, ReplyReceived

KEY = "Zx8cVb4nMq1wEr7tYu0pAs"
CHOICE = ("lm=openai_compatible", "lm.model=big", "lm.retries=0", "lm.timeout_s=0.5", "lm.key_env=SOME_KEY")
GOOD = REPLY.replace("Fewer launches.", "Fewer launches, I hope.")


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", KEY)


def says_the_key(handler: object) -> None:
    says(f"Your key is {KEY}.\n" + GOOD.replace("raise", f"my_key = {KEY!r}\n    raise"))(handler)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("behaviour", "cause", "replies"),
    [
        (sends(200, b"<html>\xff\x00</html>"), "model_error", 0),
        (sends(200, {"choices": [{"message": 5}]}), "empty_reply", 3),
        (says("no section at all"), "unusable_reply", 3),
        (says(GOOD[: len(GOOD) // 2]), "unusable_reply", 3),
        (says(GOOD, "length"), "unusable_reply", 3),
        (says("x" * 2_000_000), "unusable_reply", 3),
        (says("\x00\ud83d"), "unusable_reply", 3),
        (says(" \n"), "empty_reply", 3),
        (says(None, "content_filter", refusal="I will not."), "refused", 1),
        (breaks_off, "model_error", 0),
        (says_nothing, "timeout", 0),
        (trickles, "timeout", 0),
        (fails(429, "slow down", Retry_After="86400"), "rate_limited", 0),
        (fails(429, "slow down", Retry_After="0"), "rate_limited", 0),
        (fails(400, "too long", "context_length_exceeded"), "context_overflow", 0),
        (fails(400, "flagged", "content_filter"), "refused", 0),
        (fails(500, "oops"), "model_error", 0),
        (sends(200, completion("x" * 10_000_000)), "model_error", 0),
        (echoes_the_key(401, "Incorrect API key provided: {key}"), "model_error", 0),
    ],
    ids=[
        *("garbage", "wrong shape", "prose", "half a reply", "truncated", "2 MB of x", "no text", "empty", "refusal"),
        *("broken off", "hang", "trickle", "429 for a day", "429", "too long", "filtered", "500", "10 MB", "key back"),
    ],
)
def test_every_end_is_one_typed_row_in_time_and_replays(
    workspace: Workspace, behaviour: Behaviour, cause: str, replies: int
) -> None:
    begun = time.monotonic()
    with serving(behaviour) as server:
        assert workspace.generate(*CHOICE, f"lm.api_base={server.url}") == 1
        assert len(server.requests) <= 3
    assert time.monotonic() - begun < 10
    assert workspace.causes() == [cause]
    assert len(workspace.events("reply_received")) == replies
    assert "kernelgen: " in workspace.shown
    assert workspace.replays()
    assert not list(workspace.folder.glob("scripts/kernels/*/*"))
    assert not list(workspace.folder.glob("events.db.runs/*"))
    assert_no_part_of_the_key(workspace)


def test_a_key_in_a_usable_reply_is_in_no_file_and_the_candidate_is_written(workspace: Workspace) -> None:
    with serving(says_the_key) as server:
        assert workspace.generate(*CHOICE, f"lm.api_base={server.url}") == 0
        assert server.keys == [f"Bearer {KEY}"]
    (candidate,) = workspace.folder.glob(f"scripts/kernels/{TARGET}/*.py")
    assert "my_key = '[redacted]'" in candidate.read_text(encoding="utf-8")
    assert workspace.replays()
    assert_no_part_of_the_key(workspace)


def test_a_reply_that_cannot_be_used_is_asked_for_again_and_the_good_one_counts(workspace: Workspace) -> None:
    with serving(says("no section"), says(""), says(GOOD)) as server:
        assert workspace.generate(*CHOICE, f"lm.api_base={server.url}") == 0
    generated = workspace.events("candidate_generated")
    assert [event.attempt for event in generated if isinstance(event, CandidateGenerated)] == [3]
    asked_again = server.requests[2]["messages"]
    assert [message["role"] for message in asked_again] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert "HYPOTHESIS" in asked_again[3]["content"]
    assert workspace.replays()


def test_an_unpriced_reply_is_logged_as_such(workspace: Workspace) -> None:
    with serving(says(GOOD)) as server:
        assert workspace.generate(*CHOICE, f"lm.api_base={server.url}") == 0
    (reply,) = workspace.events("reply_received")
    assert isinstance(reply, ReplyReceived)
    assert (reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.cost_usd) == (1000, 200, None)


def assert_no_part_of_the_key(workspace: Workspace) -> None:
    everything = workspace.everything()
    for at in range(len(KEY) - 15):
        assert KEY[at : at + 16] not in everything


# ---- secrets everywhere --------------------------------------------------------------------------------------------

VARIABLES = (
    *("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "OPENROUTER_API_KEY"),
    *("HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "SOME_KEY", "SOME_PASSWORD"),
)


@pytest.fixture
def canaries(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A secret of its own in every variable that may hold one."""
    planted = {name: f"canary{number:02d}-{name.lower().replace('_', '')}-Qx7" for number, name in enumerate(VARIABLES)}
    for name, secret in planted.items():
        monkeypatch.setenv(name, secret)
    return planted


def test_no_secret_of_the_environment_reaches_log_prompt_file_or_terminal(
    workspace: Workspace, canaries: dict[str, str]
) -> None:
    everything_said = " ".join(canaries.values())
    told = GOOD.replace("Fewer launches", f"Fewer launches {everything_said}")
    failures = [
        fails(401, f"bad key {everything_said}"),
        fails(500, f"https://x/?key={canaries['SOME_KEY']} {everything_said}"),
        sends(200, {"choices": [], "you": everything_said}),
        sends(200, f"<p>{everything_said}</p>".encode()),
        says(everything_said),
        says(told),
    ]
    prompts: list[str] = []
    for behaviour in failures:
        for choice in ("openai", "openrouter", "vllm"):
            with serving(behaviour) as server:
                key_env = () if choice != "vllm" else ("lm.key_env=SOME_KEY",)
                workspace.generate(
                    f"lm={choice}", "lm.model=big", "lm.retries=0", f"lm.api_base={server.url}", *key_env
                )
                prompts += [json.dumps(request) for request in server.requests]
    assert len(workspace.events("candidate_generated")) == 3
    assert workspace.replays()
    everything = workspace.everything() + "\n".join(prompts)
    assert "[redacted]" in everything
    assert [name for name, secret in canaries.items() if secret in everything] == []


@pytest.mark.parametrize(
    "override",
    [
        "lm.api_base=https://me:{}@127.0.0.1:1/v1",
        "lm.api_base='http://127.0.0.1:1/v1?key={}'",
        "lm.api_base='http://127.0.0.1:1/{}/v1'",
        "lm.key_env={}",
        "lm.model={}",
    ],
    ids=["user", "query", "path", "variable", "model"],
)
@pytest.mark.parametrize("profile", [True, False], ids=["could be asked", "would be refused"])
def test_a_secret_in_the_lm_settings_is_refused_before_anything_is_logged(
    workspace: Workspace, canaries: dict[str, str], override: str, profile: bool
) -> None:
    secret = canaries["SOME_KEY"]
    asked = () if profile else ("target=mla_decode_fp8",)  # nothing was imported for it
    code = workspace.run(
        "generate", f"target={TARGET}", *asked, "lm=openai_compatible", "lm.model=m",
        "lm.api_base=http://127.0.0.1:1/v1", override.format(secret),
    )  # fmt: skip
    assert code == 2
    assert workspace.shown.count("\n") == 1
    assert secret not in workspace.everything()


def test_secret_files_of_the_user_are_not_read(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    home = workspace.folder / "home"
    for name in (".netrc", ".anthropic", ".openai"):
        path = home / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("machine 127.0.0.1 login me password canary-netrc-Qx7", encoding="utf-8")
    monkeypatch.setenv("HOME", str(home))
    with serving(says(GOOD)) as server:
        assert workspace.generate("lm=vllm", "lm.model=m", f"lm.api_base={server.url}") == 0
        assert "canary" not in json.dumps(server.headers)
