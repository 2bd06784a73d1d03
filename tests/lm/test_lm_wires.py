"""Every wire: what is sent, what comes back, and each way it fails, end alike behind every door."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from chat_server import completion, sends, serving

from kernelgen.config import LmConfig
from kernelgen.errors import ConfigError, ModelError
from kernelgen.lm import Unanswered, check
from kernelgen.records import Answer

Config = Callable[..., LmConfig]
Ask = Callable[..., Answer]
KEY = "k-1234567890-abcdefghij"


class Wire(NamedTuple):
    """One provider's way to say things."""

    path: str
    key_header: str
    reply: Callable[[str, str], Any]
    error: Callable[[str, str], Any]
    refusal: Any


def claude(text: str, stop_reason: str) -> Any:
    content = [{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": text}]
    usage = {"input_tokens": 1000, "output_tokens": 200}
    return {"type": "message", "model": "big-0905", "content": content, "stop_reason": stop_reason, "usage": usage}


def gemini(text: str, finish_reason: str) -> Any:
    parts = [{"text": "hm", "thought": True}, {"text": text}]
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": finish_reason}
    usage = {"promptTokenCount": 1000, "candidatesTokenCount": 150, "thoughtsTokenCount": 50, "totalTokenCount": 1200}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "big-0905"}


WIRES = {
    "openai_compatible": Wire(
        "/v1/chat/completions",
        "authorization",
        completion,
        lambda code, words: {"error": {"message": words, "code": code}},
        completion(None, "content_filter", refusal="I will not."),
    ),
    "anthropic": Wire(
        "/v1/messages",
        "x-api-key",
        lambda text, reason: claude(text, {"stop": "end_turn", "length": "max_tokens"}[reason]),
        lambda code, words: {"type": "error", "error": {"type": code, "message": words}},
        claude("I will not.", "refusal"),
    ),
    "gemini": Wire(
        "/v1/models/big-model:generateContent",
        "x-goog-api-key",
        lambda text, reason: gemini(text, {"stop": "STOP", "length": "MAX_TOKENS"}[reason]),
        lambda code, words: {"error": {"code": 400, "status": code, "message": words}},
        None,  # it sends no refusal as a reply
    ),
}
each_wire = pytest.mark.parametrize("door", list(WIRES))


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", KEY)


@each_wire
def test_a_reply_and_its_tokens_come_back_and_the_reasoning_stays_out(config: Config, ask: Ask, door: str) -> None:
    wire = WIRES[door]
    priced = {"usd_per_million_input_tokens": 1.0, "usd_per_million_output_tokens": 10.0, "price_source": "a list"}
    with serving(sends(200, wire.reply("a kernel", "stop"))) as server:
        answer = ask(config(door=door, api_base=server.url, key_env="SOME_KEY", max_tokens=500, **priced))
    assert (answer.text, answer.finish_reason) == ("a kernel", "stop")
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (1000, 200)  # Gemini's with its reasoning
    assert answer.usage.cost_usd == pytest.approx(0.003)
    assert server.paths == [wire.path]
    assert server.headers[0][wire.key_header].removeprefix("Bearer ") == KEY
    assert KEY not in server.paths[0]
    assert "litellm" not in sys.modules


@each_wire
def test_a_truncated_reply_says_so(config: Config, ask: Ask, door: str) -> None:
    with serving(sends(200, WIRES[door].reply("half", "length"))) as server:
        answer = ask(config(door=door, api_base=server.url))
    assert (answer.text, answer.finish_reason) == ("half", "length")


@each_wire
def test_a_key_in_a_reply_is_hidden_before_anything_sees_it(config: Config, ask: Ask, door: str) -> None:
    said = f"import os  # your key is {KEY}, or {KEY[2:20]}, and my_key = 'k-1234'"
    with serving(sends(200, WIRES[door].reply(said, "stop"))) as server:
        answer = ask(config(door=door, api_base=server.url, key_env="SOME_KEY"))
    assert answer.text == "import os  # your key is [redacted], or [redacted], and my_key = 'k-1234'"


def test_other_secrets_of_the_environment_are_hidden_in_replies(
    config: Config, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLOUD_ACCESS_TOKEN", "zq8-not-for-you-77")
    monkeypatch.setenv("SORT_KEY", "name")  # too short to be a secret: hiding it would spoil texts
    with serving(sends(200, completion("the name is zq8-not-for-you-77"))) as server:
        assert ask(config(api_base=server.url)).text == "the name is [redacted]"


@pytest.mark.parametrize("door", ["openai_compatible", "anthropic"])
def test_a_refusal_is_an_answer_with_its_words(config: Config, ask: Ask, door: str) -> None:
    with serving(sends(200, WIRES[door].refusal)) as server:
        answer = ask(config(door=door, api_base=server.url))
    assert (answer.text, answer.finish_reason) == ("I will not.", "content_filter")


@pytest.mark.parametrize(
    "body",
    [
        {"promptFeedback": {"blockReason": "SAFETY"}},
        {"candidates": [{"finishReason": "PROHIBITED_CONTENT"}], "usageMetadata": {}},
    ],
)
def test_what_gemini_blocks_is_a_refusal(config: Config, ask: Ask, body: Any) -> None:
    with serving(sends(200, body)) as server, pytest.raises(Unanswered, match="content filter") as caught:
        ask(config(door="gemini", api_base=server.url))
    assert caught.value.cause == "refused"


@pytest.mark.parametrize(
    ("door", "status", "code", "words", "cause"),
    [
        ("openai_compatible", 400, "context_length_exceeded", "too long", "context_overflow"),
        ("anthropic", 400, "invalid_request_error", "prompt is too long: 9 tokens > 8 maximum", "context_overflow"),
        ("gemini", 400, "INVALID_ARGUMENT", "The input token count (9) exceeds the maximum", "context_overflow"),
        ("openai_compatible", 429, "rate_limit_exceeded", "slow down", "rate_limited"),
        ("anthropic", 429, "rate_limit_error", "slow down", "rate_limited"),
        ("gemini", 429, "RESOURCE_EXHAUSTED", "slow down", "rate_limited"),
        ("openai_compatible", 504, "timeout", "gateway", "timeout"),
        ("anthropic", 504, "timeout_error", "gateway", "timeout"),
        ("gemini", 504, "DEADLINE_EXCEEDED", "gateway", "timeout"),
    ],
)
def test_each_end_has_its_type(
    config: Config, ask: Ask, door: str, status: int, code: str, words: str, cause: str
) -> None:
    with (
        serving(sends(status, WIRES[door].error(code, words))) as server,
        pytest.raises(Unanswered) as caught,
    ):
        ask(config(door=door, api_base=server.url))
    assert caught.value.cause == cause
    assert words.split(":")[0] in str(caught.value)


@each_wire
def test_other_json_than_a_reply_is_named(config: Config, ask: Ask, door: str) -> None:
    with serving(sends(200, {"ok": True})) as server, pytest.raises(ModelError, match=r"check that lm\.api_base"):
        ask(config(door=door, api_base=server.url))


@each_wire
def test_the_key_in_an_error_is_hidden(config: Config, ask: Ask, door: str) -> None:
    with (
        serving(sends(401, WIRES[door].error("authentication_error", f"{KEY} of {{...}} is not valid"))) as server,
        pytest.raises(ModelError) as caught,
    ):
        ask(config(door=door, api_base=server.url, key_env="SOME_KEY"))
    assert KEY[:8] not in str(caught.value)
    assert "[redacted]" in str(caught.value)


@pytest.mark.parametrize(
    ("door", "sent"),
    [
        ("openai_compatible", {"temperature": 0.5, "max_tokens": 100, "seed": 7}),
        ("anthropic", {"temperature": 0.5, "max_tokens": 100}),
        ("gemini", {"generationConfig": {"temperature": 0.5, "maxOutputTokens": 100, "seed": 7}}),
    ],
)
def test_the_sampling_parameters_arrive_under_the_wires_names(
    config: Config, ask: Ask, door: str, sent: dict[str, Any]
) -> None:
    seed = {} if door == "anthropic" else {"seed": 7}
    with serving(sends(200, WIRES[door].reply("a kernel", "stop"))) as server:
        ask(config(door=door, api_base=server.url, temperature=0.5, max_tokens=100, **seed))
    assert {name: server.requests[0][name] for name in sent} == sent


def test_the_reasoning_effort_arrives(config: Config, ask: Ask) -> None:
    with serving(sends(200, completion("a kernel"))) as server:
        ask(config(api_base=server.url, dialect="vllm", reasoning_effort="low"))
        ask(config(api_base=server.url, dialect="openrouter", reasoning_effort="high"))
    plain, routed = server.requests
    assert plain["reasoning_effort"] == "low"
    assert routed["reasoning"]["effort"] == "high"


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"seed": 1}, "takes no seed"),
        ({"temperature": 1.5}, "between 0 and 1"),
        ({"temperature": 0.5, "reasoning_effort": "low"}, "take null or 1"),
    ],
)
def test_what_anthropics_wire_would_leave_out_is_refused(
    config: Config, changed: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ConfigError, match=sentence):
        check(config(door="anthropic", api_base="https://api.anthropic.com/v1", **changed))
