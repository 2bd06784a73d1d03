"""No key, wherever it was put and whoever sends it back, reaches a message, a record or a representation."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path

import pytest
from chat_server import Behaviour, Handler, echoes_the_key, fails, request_of, says, sends, serving
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelgen.config import LmConfig
from kernelgen.errors import BadInput, ConfigError, ModelError
from kernelgen.lm import build, check, redact
from kernelgen.records import Answer

KEY = "sk-proj-Ab3dEf6hIj9lMn2pQr5t"
PLAIN_KEY = "Zx8cVb4nMq1wEr7tYu0pAs"  # looks like nothing in particular

Config = Callable[..., LmConfig]
Ask = Callable[..., Answer]


def quotes_half_of_the_key(handler: Handler) -> None:
    key = handler.headers["Authorization"].removeprefix("Bearer ")
    fails(401, f"Incorrect API key {key[:14]}… of length {len(key)}")(handler)


@pytest.mark.parametrize("key", [KEY, PLAIN_KEY, 'odd/key+with=signs&"quotes"'])
@pytest.mark.parametrize(
    "behaviour",
    [
        echoes_the_key(401, "Incorrect API key provided: {key}."),
        echoes_the_key(400, "bad header Authorization: {key}, url https://x/?api_key={key}"),
        echoes_the_key(500, "stack trace: {key!r}"),
        echoes_the_key(403, "x" * 230 + "{key}"),
        lambda handler: sends(200, json.dumps({"you": handler.headers["Authorization"]})[:-1].encode())(handler),
        quotes_half_of_the_key,
    ],
    ids=["told", "in headers and url", "quoted", "at the cut", "in garbage", "half"],
)
def test_a_provider_that_sends_the_key_back_leaks_nothing(
    config: Config,
    ask: Ask,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    key: str,
    behaviour: Behaviour,
) -> None:
    monkeypatch.setenv("SOME_KEY", key)
    caplog.set_level(logging.DEBUG)
    with serving(behaviour) as server, pytest.raises(ModelError) as caught:
        ask(config(api_base=server.url, key_env="SOME_KEY"))
    shown = str(caught.value) + caplog.text + "".join(capfd.readouterr())
    assert "http://127.0.0.1" in shown
    for at in range(len(key) - 7):
        assert key[at : at + 8] not in shown


def test_the_language_model_holds_no_key_to_be_shown_or_saved(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", KEY)
    with serving(says("a kernel")) as server:
        lm = build(config(api_base=server.url, key_env="SOME_KEY"))
        lm(request_of(lm.model))
        assert server.keys == [f"Bearer {KEY}"]
    for shown in (repr(lm), repr(vars(lm)), repr(lm.kwargs), repr(lm.history), repr(vars(lm.copy().engine))):
        assert KEY not in shown


@pytest.mark.parametrize("value", [None, "", "  \n"])
def test_a_missing_key_names_its_variable(config: Config, monkeypatch: pytest.MonkeyPatch, value: str | None) -> None:
    monkeypatch.delenv("SOME_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("SOME_KEY", value)
    with pytest.raises(BadInput, match="lm=test needs a key: set the environment variable SOME_KEY"):
        build(config(api_base="http://127.0.0.1:1/v1", key_env="SOME_KEY"))


@pytest.mark.parametrize("key", ["two words-1234", "line\nbreak-1234", "kéy-123456789"])
def test_what_cannot_be_a_key_is_refused_without_repeating_it(
    config: Config, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("SOME_KEY", key)
    with pytest.raises(BadInput, match="SOME_KEY does not hold a key") as caught:
        build(config(api_base="http://127.0.0.1:1/v1", key_env="SOME_KEY"))
    assert key not in str(caught.value)


@pytest.mark.parametrize("pasted", [KEY, "abc123def456ghi789"])
def test_a_key_pasted_in_place_of_its_variable_is_not_repeated(config: Config, pasted: str) -> None:
    with pytest.raises(BadInput, match="environment variable") as caught:
        build(config(api_base="http://127.0.0.1:1/v1", key_env=pasted))
    assert pasted not in str(caught.value)


@pytest.mark.parametrize(
    "base",
    [
        "https://me:secret@host/v1",
        "me:secret@host/v1",
        "https://host/v1?api_key=secret",
        "https://host/v1?key=secret",
        "https://host/sk-secret-1234567890/v1",
        "https://host/v1#secret",
    ],
)
def test_a_key_in_the_url_is_refused_before_it_is_logged(config: Config, base: str) -> None:
    with pytest.raises(ConfigError, match="may not hold a user, a query or a key") as caught:
        check(config(api_base=base))
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Authorization: Bearer abc.def-123", "Authorization: [redacted]"),
        ("'x-api-key': 'abcdef'", "'x-api-key': '[redacted]'"),
        ("see https://me:pw@host/a?token=abc&page=2", "see https://[redacted]@host/a?token=[redacted]&page=2"),
        ("key sk-ant-api03-abcdef0123456789 is bad", "key [redacted] is bad"),
        ("token ghp_0123456789abcdefghij", "token [redacted]"),
        ("too many tokens: 4096 > 2048; skip_constraints_now", "too many tokens: 4096 > 2048; skip_constraints_now"),
    ],
)
def test_credentials_of_others_are_hidden_and_prose_is_not(config: Config, text: str, shown: str) -> None:
    hidden = redact(text, config())
    assert hidden == shown


@settings(deadline=None, max_examples=60)
@given(before=st.text(max_size=40), after=st.text(max_size=40), start=st.integers(0, 13), end=st.integers(14, 22))
def test_any_part_of_the_key_is_hidden_in_any_text(before: str, after: str, start: int, end: int) -> None:
    config = LmConfig(name="t", door="openai_compatible", model="m", key_env="KERNELGEN_TEST_KEY")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KERNELGEN_TEST_KEY", PLAIN_KEY)
        hidden = redact(before + PLAIN_KEY[start:end] + after, config)
    assert not any(PLAIN_KEY[at : at + 8] in hidden for at in range(len(PLAIN_KEY) - 7))


def test_shipped_choices_hold_no_key() -> None:
    for file in sorted((Path(__file__).parents[2] / "conf" / "lm").glob("*.yaml")):
        text = file.read_text(encoding="utf-8")
        assert redact(text, LmConfig(name="t", door="playbook", model="m")) == text
