"""An OpenAI-compatible endpoint, friendly and hostile: every behaviour ends in an Answer or in one typed sentence."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable

import pytest
from chat_server import MESSAGES, Behaviour, breaks_off, completion, fails, says, says_nothing, sends, serving, trickles

from kernelgen.config import LmConfig
from kernelgen.errors import ModelError
from kernelgen.records import Answer

Config = Callable[..., LmConfig]
Ask = Callable[..., Answer]


def test_a_reply_is_recorded_with_model_tokens_and_cost(config: Config, ask: Ask) -> None:
    priced = {"usd_per_million_input_tokens": 0.6, "usd_per_million_output_tokens": 2.5, "price_source": "a list"}
    with serving(says("a kernel")) as server:
        answer = ask(config(api_base=server.url, **priced))
    assert (answer.text, answer.model, answer.finish_reason) == ("a kernel", "big-model-0905", "stop")
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (1000, 200)
    assert answer.usage.cost_usd == pytest.approx(1000 * 0.6e-6 + 200 * 2.5e-6)
    assert 0 < answer.usage.seconds < 5


def test_an_unknown_price_and_uncounted_tokens_stay_unknown(config: Config, ask: Ask) -> None:
    body = completion("a kernel")
    del body["usage"]
    with serving(sends(200, body)) as server:
        usage = ask(config(api_base=server.url)).usage
    assert (usage.input_tokens, usage.output_tokens, usage.cost_usd) == (None, None, None)


def test_messages_and_set_parameters_are_sent_and_nothing_else(config: Config, ask: Ask) -> None:
    with serving(says("a kernel")) as server:
        ask(config(api_base=server.url, temperature=0.5, max_tokens=100, seed=7))
        ask(config(api_base=server.url))
    full, bare = server.requests
    assert full == {"model": "big-model", "messages": MESSAGES, "temperature": 0.5, "max_tokens": 100, "seed": 7}
    assert bare == {"model": "big-model", "messages": MESSAGES}


def test_a_model_name_with_slashes_arrives_whole(config: Config, ask: Ask) -> None:
    with serving(says("a kernel")) as server:
        ask(config(api_base=server.url, model="openai/gpt-oss:120b"))
    assert server.requests[0]["model"] == "openai/gpt-oss:120b"


def test_the_key_comes_from_the_environment(config: Config, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "k-1234567890\n")
    with serving(says("a kernel")) as server:
        ask(config(api_base=server.url, key_env="SOME_KEY"))
        ask(config(api_base=server.url))
    assert server.keys == ["Bearer k-1234567890", "Bearer none"]


@pytest.mark.parametrize(
    ("failure", "times"),
    [
        (fails(429, "slow down", Retry_After="0.1"), 1),
        (fails(500, "oops", Retry_After="0"), 2),
        (breaks_off, 1),
    ],
    ids=["429", "500", "broken off"],
)
def test_what_may_be_retried_is_and_the_next_reply_counts(
    config: Config, ask: Ask, failure: Behaviour, times: int
) -> None:
    with serving(*[failure] * times, says("a kernel")) as server:
        answer = ask(config(api_base=server.url, retries=2))
    assert answer.text == "a kernel"
    assert len(server.requests) == times + 1


def test_retry_after_is_waited_for(config: Config, ask: Ask) -> None:
    with serving(fails(429, "slow down", Retry_After="0.4"), says("a kernel")) as server:
        assert 0.4 <= ask(config(api_base=server.url, retries=1)).usage.seconds < 2


def test_a_wait_beyond_the_cap_is_refused_at_once(config: Config, ask: Ask) -> None:
    with (
        serving(fails(429, "slow down", Retry_After="61")) as server,
        pytest.raises(ModelError, match=r"asks to wait 61 s .* 60 s at most; try again then") as caught,
    ):
        ask(config(api_base=server.url, retries=5))
    assert caught.value.retryable
    assert len(server.requests) == 1


def test_retries_are_bounded(config: Config, ask: Ask) -> None:
    with (
        serving(fails(503, "overloaded", Retry_After="0")) as server,
        pytest.raises(ModelError, match=r"failed on the provider's side in 3 tries \(HTTP 503: overloaded\)") as caught,
    ):
        ask(config(api_base=server.url, retries=2))
    assert caught.value.retryable
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("behaviour", "sentence"),
    [
        (fails(401, "bad key", "invalid_api_key"), "does not accept the key .*lm.key_env"),
        (fails(402, "no credit"), "is not paid for"),
        (fails(429, "no credit", "insufficient_quota"), "is not paid for"),
        (fails(404, "no such model", "model_not_found"), "is not known there .*; check lm.model"),
        (fails(400, "too long", "context_length_exceeded"), "no room for the prompt in its context"),
        (fails(400, "the request exceeds the available context size"), "no room for the prompt in its context"),
        (fails(400, "flagged", "content_filter"), "content filter"),
        (fails(400, "temperature must be 1"), r"does not take the request \(HTTP 400: temperature must be 1\)"),
        (fails(418, "a teapot"), "cannot be read .*a teapot"),
        (sends(200, b"<html>portal</html>"), "cannot be read .*not JSON.*; check what answers at lm.api_base"),
        (sends(200, b"\xff\xfe\x00"), "cannot be read"),
        (sends(200, b"[]"), "cannot be read"),
        (sends(200, b"[" * 100_000), "cannot be read"),
        (sends(200, {"ok": True}), "no reply of a model; check that lm.api_base"),
        (sends(200, {"choices": [{"message": {"tool_calls": [{}]}}], "model": 1}), "cannot be read|failed on"),
        (sends(200, completion("x" * 10_000_000)), "larger than 8 MiB"),
        (sends(500, b"x" * 10_000_000), "larger than 8 MiB"),
        (sends(302, b"", Location="http://127.0.0.1:1/"), "cannot be read"),
    ],
)
def test_what_cannot_be_retried_ends_at_once_in_one_sentence(
    config: Config, ask: Ask, behaviour: Behaviour, sentence: str
) -> None:
    with serving(behaviour) as server, pytest.raises(ModelError, match=sentence) as caught:
        ask(config(api_base=server.url, retries=2))
    assert not caught.value.retryable
    assert len(server.requests) == 1
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("behaviour", [says_nothing, trickles])
def test_a_reply_that_does_not_end_is_given_up_in_time(config: Config, ask: Ask, behaviour: Behaviour) -> None:
    begun = time.monotonic()
    with (
        serving(behaviour) as server,
        pytest.raises(ModelError, match=r"did not answer in time .*lm\.timeout_s=0\.3") as caught,
    ):
        ask(config(api_base=server.url, timeout_s=0.3))
    assert caught.value.retryable
    assert time.monotonic() - begun < 2


def test_a_server_that_is_not_there_is_named(config: Config, ask: Ask) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: refuses
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        with pytest.raises(ModelError, match=f"The model big-model at {url} cannot be reached.*refused") as caught:
            ask(config(api_base=url))
    assert caught.value.retryable


@pytest.mark.parametrize(
    ("behaviour", "text", "finish_reason"),
    [
        (says(""), "", "stop"),
        (says(None), "", "stop"),
        (says("half", "length"), "half", "length"),
        (says(None, "content_filter", refusal="I will not."), "I will not.", "content_filter"),
        (says("a kernel", reasoning_content="hm"), "a kernel", "stop"),
        (says([{"type": "text", "text": "a "}, {"type": "text", "text": "kernel"}]), "a kernel", "stop"),
        (says("cut \ud83d here"), "cut ? here", "stop"),
    ],
    ids=["empty", "null", "truncated", "refused", "reasoning", "in parts", "lone surrogate"],
)
def test_whatever_was_paid_for_is_an_answer(
    config: Config, ask: Ask, behaviour: Behaviour, text: str, finish_reason: str
) -> None:
    with serving(behaviour) as server:
        answer = ask(config(api_base=server.url))
    assert (answer.text, answer.finish_reason) == (text, finish_reason)
    assert answer.usage.output_tokens == 200
