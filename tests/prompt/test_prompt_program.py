"""Programs: DSPy's saved state read as data; the shipped one is DSPy's own, and broken ones end in one sentence."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kernelgen.errors import ConfigError
from kernelgen.prompt.assemble import messages
from kernelgen.prompt.inputs import inputs_of
from kernelgen.prompt.program import load_program
from kernelgen.prompt.reply import parse
from kernelgen.prompt.texts import text
from tests import factories as sample

DEFAULT = sample.ROOT / "conf" / "program" / "default.json"


def saved(path: Path, **changes: Any) -> Path:
    state = json.loads(DEFAULT.read_text(encoding="utf-8"))
    file = path / "program.json"
    file.write_text(json.dumps({**state, **changes}), encoding="utf-8")
    return file


def demo(state: int = 0, **changes: Any) -> dict[str, Any]:
    inputs = {name: value.model_dump(mode="json") for name, value in inputs_of(sample.ask(state)).items()}
    return {**inputs, **sample.reply().model_dump(mode="json"), **changes}


def test_the_shipped_program_has_the_default_instructions_and_no_demonstrations() -> None:
    program = load_program("default", DEFAULT)
    assert program.instructions == text("instructions")
    assert program.demonstrations == ()


def test_the_shipped_program_is_what_dspy_saves_and_loads(tmp_path: Path) -> None:
    import dspy

    from kernelgen.prompt.signature import GenerateKernel

    predict = dspy.Predict(GenerateKernel)
    predict.save(str(tmp_path / "again.json"))
    again, shipped = (json.loads(file.read_text(encoding="utf-8")) for file in (tmp_path / "again.json", DEFAULT))
    assert {**again, "metadata": None} == {**shipped, "metadata": None}
    predict.load(str(DEFAULT))
    assert predict.signature.instructions == text("instructions")


def test_the_default_instructions_leave_room_for_the_rest() -> None:
    from kernelgen.tokens import count

    assert count(text("instructions"), "o200k_base") <= 350


def test_a_demonstration_is_an_earlier_pair_without_section_headings(tmp_path: Path) -> None:
    program = load_program("tuned", saved(tmp_path, demos=[demo(0), demo(1)]))
    system, *pairs, user = messages(sample.ask(), program)
    assert system["content"].startswith("[SYSTEM] You are a GPU kernel engineer optimizing for ")
    assert user == messages(sample.ask(), sample.program())[-1]
    assert [pair["role"] for pair in pairs] == ["user", "assistant"] * 2
    assert pairs[0]["content"].startswith("An earlier example, of another request")
    assert not any(line.startswith("[") for line in pairs[0]["content"].splitlines())
    assert parse(pairs[1]["content"], sample.ask()) == sample.reply()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "is not DSPy's saved state"),
        ("{}", "is not DSPy's saved state"),
        ('{"signature": {"instructions": "x"}}', "is not DSPy's saved state"),
        ('{"signature": {"instructions": 1}, "demos": []}', "the instructions must be a text"),
        ('{"signature": {"instructions": "x"}, "demos": {}}', "the demos a list"),
        ('{"signature": {"instructions": "x"}, "demos": [1]}', "demo 1 is not a mapping"),
        ('{"signature": {"instructions": "x"}, "demos": [{}]}', "demo 1: The prompt's input 'hardware' is missing"),
        ('{"signature": {"instructions": "[TASK] x"}, "demos": []}', r"begins with [TASK"),
    ],
)
def test_a_broken_program_ends_in_one_sentence(tmp_path: Path, content: str, said: str) -> None:
    file = tmp_path / "broken.json"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_program("broken", file)
    assert said in str(caught.value)
    assert str(caught.value).startswith("Program broken: ")
    assert "\n" not in str(caught.value)


def test_a_missing_program_ends_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.json cannot be read \(No such file or directory\)"):
        load_program("gone", tmp_path / "nowhere.json")


@pytest.mark.parametrize("changes", [{"kernel": None}, {"hypothesis": ""}, {"kernel": {"code": "x"}}])
def test_a_demonstration_that_is_no_reply_is_refused_by_number(tmp_path: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="demo 2 is not a mapping of the signature's fields"):
        load_program("tuned", saved(tmp_path, demos=[demo(), demo(**changes)]))


def test_prompts_programs_and_replies_need_no_dspy() -> None:
    code = (
        "import sys, kernelgen.candidates, kernelgen.prompt.program, kernelgen.prompt.assemble\n"
        "assert not {'dspy', 'torch', 'triton', 'hydra', 'litellm'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
