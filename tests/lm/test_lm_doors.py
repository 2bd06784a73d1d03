"""Each choice of `lm=` becomes a language model that answers as promised, and loads and touches nothing else."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from chat_server import MESSAGES, Handler, request_of, says, serving

import kernelgen
from kernelgen.config import LmConfig
from kernelgen.errors import ConfigError, HarnessError, ModelError, NoPlay
from kernelgen.lm import build, check, parameters, request_key, translate, versions
from kernelgen.records import Answer, Usage

CONF = Path(__file__).parents[2] / "conf" / "lm"
PROMPT = "You are an engineer.\n\nAn example?\n\nOne.\n\nWrite a kernel."

Config = Callable[..., LmConfig]
Ask = Callable[..., Answer]


def shipped(name: str, **changed: Any) -> LmConfig:
    values = yaml.safe_load((CONF / f"{name}.yaml").read_text(encoding="utf-8"))
    return LmConfig.model_validate(values | changed)


def test_every_door_has_a_choice_and_every_choice_the_name_of_its_file() -> None:
    choices = {file.stem: shipped(file.stem, model="m") for file in CONF.glob("*.yaml")}
    assert {name: config.name for name, config in choices.items()} == {name: name for name in choices}
    doors = get_args(LmConfig.model_fields["door"].annotation)
    assert {config.door for config in choices.values()} == set(doors)
    dialects = {config.dialect for config in choices.values()} - {None}
    assert dialects == {"openai", "ollama", "vllm", "sglang", "openrouter"}


# ---- playbook -------------------------------------------------------------------------------------------------------


def test_the_playbook_reads_the_whole_prompt_and_costs_nothing(ask: Ask) -> None:
    read: list[str] = []

    def play(prompt: str) -> str:
        read.append(prompt)
        return "a kernel"

    first, second = (ask(shipped("playbook"), play=play) for _ in range(2))
    assert read == [PROMPT, PROMPT]
    assert (first.text, first.model, first.finish_reason) == ("a kernel", "playbook", "stop")
    assert (first.usage.input_tokens, first.usage.output_tokens, first.usage.cost_usd) == (None, None, 0.0)
    assert first.text == second.text


@pytest.mark.parametrize("raised", [NoPlay("The playbook has none."), HarnessError("A play is broken.")])
def test_what_a_play_raises_comes_out_as_it_was(ask: Ask, raised: Exception) -> None:
    def play(prompt: str) -> str:
        raise raised

    with pytest.raises(type(raised)) as caught:
        ask(shipped("playbook"), play=play)
    assert caught.value is raised


def test_a_fault_in_a_play_is_a_fault_of_the_harness_not_of_a_model(ask: Ask) -> None:
    def play(prompt: str) -> str:
        raise KeyError("BLOCK")

    with pytest.raises(HarnessError, match=r"Asking lm=playbook broke kernelgen: KeyError \('BLOCK'\)"):
        ask(shipped("playbook"), play=play)


def test_copies_of_a_language_model_share_its_engine() -> None:
    lm = build(shipped("playbook"), play=str.upper)
    assert copy.deepcopy(lm).engine is lm.engine


# ---- recorded -------------------------------------------------------------------------------------------------------


def test_a_recorded_reply_is_found_by_its_question(ask: Ask, config: Config) -> None:
    asked = {"model": "big-model", "temperature": 0.5, "max_tokens": 100, "seed": 7}
    with serving(says("half a kernel", "length")) as server:
        live = config(api_base=server.url, **asked)
        log = {request_key(live.model, parameters(live), MESSAGES): ask(live)}
    again = ask(shipped("recorded", **asked), recorded=log.get)
    assert (again.text, again.model, again.finish_reason) == ("half a kernel", "big-model-0905", "length")
    assert (again.usage.input_tokens, again.usage.output_tokens, again.usage.cost_usd) == (1000, 200, 0.0)


@pytest.mark.parametrize("changed", [{"model": "other"}, {"temperature": 0.6}, {"max_tokens": 1}, {"seed": None}])
def test_another_question_is_a_miss_that_names_the_mend(ask: Ask, changed: dict[str, Any]) -> None:
    asked = {"model": "big-model", "temperature": 0.5, "max_tokens": 100, "seed": 7}
    usage = Usage(input_tokens=1, output_tokens=1, cost_usd=None, seconds=1)
    key = request_key("big-model", {"temperature": 0.5, "max_tokens": 100, "seed": 7}, MESSAGES)
    log = {key: Answer(text="a", model="big-model", finish_reason="stop", usage=usage)}
    assert ask(shipped("recorded", **asked), recorded=log.get).text == "a"
    with pytest.raises(ModelError, match=r"The log has no reply of .* use the lm\.model") as caught:
        ask(shipped("recorded", **asked | changed), recorded=log.get)
    assert not caught.value.retryable


def test_the_playbooks_own_replies_can_be_recorded(ask: Ask) -> None:
    playbook = shipped("playbook")
    key = request_key(playbook.model, parameters(playbook), MESSAGES)
    log = {key: ask(playbook, play=str.upper)}
    assert ask(shipped("recorded"), recorded=log.get).text == PROMPT.upper()


def test_a_request_key_depends_on_every_word_and_not_on_the_order_of_parameters() -> None:
    key = request_key("m", {"seed": 1, "temperature": 0.5}, MESSAGES)
    assert key == request_key("m", {"temperature": 0.5, "seed": 1}, [dict(message) for message in MESSAGES])
    changed = [*MESSAGES[:-1], {"role": "user", "content": "Write a kernel!"}]
    assert len({key, request_key("m", {"seed": 1}, MESSAGES), request_key("m", {"seed": 1}, changed)}) == 3
    assert key.startswith("sha256:")


# ---- checks ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"api_base": None}, r"lm=test needs lm\.api_base, as in"),
        ({"api_base": "localhost:8000/v1"}, "begins with http:// or https://"),
        ({"api_base": "http:///v1"}, "begins with http:// or https://"),
        ({"api_base": "http://[::1/v1"}, "begins with http:// or https://"),
        ({"api_base": "http://host:99999/v1"}, "begins with http:// or https://"),
        ({"model": " "}, "give the model's name"),
        ({"model": "openai/"}, "give the model's name"),
        ({"temperature": 2.5}, r"lm\.temperature is 2\.5: it lies between 0 and 2"),
        ({"temperature": float("nan")}, r"lm\.temperature is nan"),
    ],
)
def test_a_config_that_cannot_work_is_refused_in_a_sentence(
    config: Config, changed: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ConfigError, match=sentence):
        check(config(**{"api_base": "http://127.0.0.1:1/v1"} | changed))


@pytest.mark.parametrize("changed", [{"temperature": 0.2}, {"max_tokens": 100}])
def test_the_rules_of_reasoning_models_are_told_before_anything_is_sent(
    config: Config, changed: dict[str, Any]
) -> None:
    with pytest.raises(ConfigError, match=r"gpt-5 is a reasoning model of OpenAI's: set lm\.temperature to null or 1"):
        build(config(api_base="http://127.0.0.1:1/v1", model="gpt-5", **changed))


def test_openai_gets_the_field_its_newer_models_want(config: Config) -> None:
    from kernelgen.lm.wire import WireEngine

    engine = WireEngine(config(api_base="https://api.openai.com/v1", max_tokens=20_000, model="gpt-5"), "none")
    request = engine._client.build_request(request_of("gpt-5"), stream=False)
    assert "max_tokens" not in json.loads(request.body)
    sampled = engine._sampled(request_of("gpt-5").config)
    assert sampled.max_tokens == 20_000


def test_errors_of_other_kinds_are_faults_of_the_harness(config: Config) -> None:
    assert isinstance(translate(ValueError("odd"), config()), HarnessError)


def test_versions_are_read_from_metadata() -> None:
    found = versions()
    assert found["kernelgen"] == kernelgen.__version__
    assert found["python"].startswith(f"{sys.version_info.major}.{sys.version_info.minor}")
    assert found["dspy"].startswith("3.")


# ---- what is loaded and touched -------------------------------------------------------------------------------------

ASK_BOTH = """
import socket, sys
base, port = sys.argv[1], int(sys.argv[2])
connect = socket.socket.connect
def only_the_server(self, address):
    assert address == ("127.0.0.1", port), f"a connection to {address} was tried"
    return connect(self, address)
socket.socket.connect = only_the_server
import kernelgen.lm as lm
assert not {"dspy", "litellm", "torch", "hydra"} & set(sys.modules), "importing kernelgen.lm loads too much"
from kernelgen.config import LmConfig
playbook = LmConfig(name="p", door="playbook", model="playbook")
endpoint = LmConfig(name="e", door="openai_compatible", model="m", api_base=base)
for config, doors in ((playbook, {"play": str.upper}), (endpoint, {})):
    model = lm.build(config, **doors)
    from dspy.lm15 import Message, Request
    response = model(Request(model=model.model, messages=(Message.user("hello"),)))
    print(lm.to_answer(response, config, 0.0).text)
assert not {"litellm", "torch", "triton", "hydra"} & set(sys.modules), "asking a model loads too much"
"""


def test_no_litellm_no_other_connection_no_cache_folder_no_warning(tmp_path: Path) -> None:
    with serving(says("a kernel", "length")) as server:
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", ASK_BOTH, server.url, str(server.server_address[1])],
            env={**os.environ, "HOME": str(tmp_path)},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert (done.returncode, done.stdout, done.stderr) == (0, "HELLO\na kernel\n", "")
    assert list(tmp_path.iterdir()) == []


def test_one_language_model_answers_several_threads_at_once(config: Config) -> None:
    together = threading.Barrier(4, timeout=10)

    def waits_for_the_others(handler: Handler) -> None:
        together.wait()
        says("a kernel")(handler)

    with serving(waits_for_the_others) as server, ThreadPoolExecutor(4) as pool:
        lm = build(config(api_base=server.url))
        replies = list(pool.map(lm, [request_of(lm.model)] * 4))
    assert [reply.text for reply in replies] == ["a kernel"] * 4
