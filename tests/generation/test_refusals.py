"""The refusals: each in one sentence with the mend, exit code 2, and a row of the log."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.generation.conftest import kernelgen, kinds

Generated = Callable[..., dict[str, Any]]
MLA = "target=mla_decode_fp8"


def refusal(record: dict[str, Any], *words: str) -> None:
    assert record["error"] == "Refused"
    assert "\n" not in record["message"]
    for word in words:
        assert word in record["message"]


def test_no_profile_has_identified_the_target(workspace: Path, generated: Generated) -> None:
    assert kernelgen("constraints", "seed", "hardware=h100") == 0
    refusal(generated(MLA, "hardware=h100", code=2), "No profile", "kernelgen profile import FILE")
    refusal(generated(MLA, "shape=b16_s8192_h16", code=2), "No profile", "b16_s8192_h16")
    assert kinds(workspace) == ["generation_refused"] * 2


def test_the_region_is_frozen_until_it_is_unfrozen(workspace: Path, generated: Generated) -> None:
    assert kernelgen("freeze", "mla_decode_fp8", "--why", "at 96% of its floor") == 0
    refusal(generated(MLA, code=2), "frozen", "at 96% of its floor", "kernelgen unfreeze mla_decode_fp8")
    assert generated()["target"] == "moe_dispatch_384expert"
    assert kernelgen("unfreeze", "target=mla_decode_fp8", "--why", "new driver") == 0
    assert generated(MLA)["target"] == "mla_decode_fp8"


def test_the_constraint_database_is_empty(workspace: Path, generated: Generated) -> None:
    record = generated(MLA, "constraints=none.jsonl", "events=new.db", code=2)
    refusal(record, "none.jsonl is empty", "kernelgen constraints seed hardware=h200")
    assert not (workspace / "none.jsonl").exists()


@pytest.mark.parametrize(("state", "need"), [(4, "pr=FILE"), (5, "parts=FILE")])
def test_a_state_without_its_input(generated: Generated, state: int, need: str) -> None:
    refusal(generated(MLA, f"state={state}", code=2), need)


def test_parts_that_were_not_promoted(workspace: Path, generated: Generated) -> None:
    (workspace / "parts.yaml").write_text("targets: [mla_decode_fp8, moe_dispatch_384expert]\nreference: ref.py\n")
    (workspace / "ref.py").write_text("def reference(x):\n    return x\n")
    refusal(generated(MLA, "state=5", "parts=parts.yaml", code=2), "promoted")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be read"),
        ("diff --git a b\n", "lacks Repository, Number, Licence"),
        ("Repository: a/b\nNumber: seven\nLicence: MIT\n+x\n", "not a number"),
        ("Repository: a/b\nNumber: 7\nLicence: MIT\n", "no changed line"),
    ],
)
def test_a_diff_file_that_is_none(workspace: Path, generated: Generated, content: str | None, words: str) -> None:
    if content is not None:
        (workspace / "x.diff").write_text(content)
    record = generated(MLA, "state=4", "pr=x.diff", code=2)
    assert (record["error"], words in record["message"]) == ("BadInput", True)


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (["target=mla_decode_fp9"], "There is no target 'mla_decode_fp9'; did you mean 'mla_decode_fp8'?"),
        (["state=9"], "There is no state '9'; known: 0, 1, 2, 3, 4, 5, auto"),
        ([MLA, "+target.x=1"], "target.x is not a key; known: "),
        ([MLA, "target.titel=1"], "target.titel is not a key; did you mean 'title'?"),
        (["policy.reply_attempts=abc"], "policy.reply_attempts: Input should be a valid integer"),
        (["hardwre=h200"], "hardwre is not a key; did you mean 'hardware'?"),
        (["-x"], "kernelgen generate has no flag -x"),
    ],
)
def test_a_wrong_override_is_told_with_the_place_and_the_nearest_right_name(
    workspace: Path, generated: Generated, overrides: list[str], sentence: str
) -> None:
    record = generated(*overrides, code=2)
    assert record["message"].startswith(sentence)
    assert kinds(workspace) == []
