"""Replay: from the log alone, byte for byte; a change of one byte in code or a template is named."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.generation.conftest import ROOT, kernelgen, kinds, log

Generated = Callable[..., dict[str, Any]]


def replayed(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> dict[str, Any]:
    capsys.readouterr()
    assert kernelgen("replay", *arguments, "--json") == code
    record: dict[str, Any] = json.loads(capsys.readouterr().out)
    return record


def test_every_generation_replays_equal_also_those_without_a_candidate(
    workspace: Path, generated: Generated, capsys: pytest.CaptureFixture[str]
) -> None:
    for state in (0, 1):
        generated("target=mla_decode_fp8", f"state={state}")
    generated("target=moe_dispatch_384expert", "state=3", code=1)
    found = replayed(capsys, "--all")
    assert [(g["ended"], g["equal"]) for g in found["generations"]] == [
        ("candidate", True), ("candidate", True), ("failed", True)
    ]  # fmt: skip
    assert found["differing"] == 0


def test_replay_needs_neither_the_constraint_file_nor_the_candidates_nor_the_configs_of_today(
    workspace: Path, generated: Generated, capsys: pytest.CaptureFixture[str]
) -> None:
    record = generated("target=mla_decode_fp8", "state=1", "policy.constraint_tokens=500")
    (workspace / "constraints.jsonl").unlink()
    shutil.rmtree(workspace / "scripts")
    assert replayed(capsys, record["iteration_id"])["equal"]


def test_constraints_added_or_retracted_later_do_not_change_a_replay(
    workspace: Path, generated: Generated, capsys: pytest.CaptureFixture[str]
) -> None:
    record = generated("target=mla_decode_fp8", "state=1")
    assert kernelgen("constraints", "add", "Never use two stages.", "severity=hard") == 0
    assert kernelgen("constraints", "retract", "h200_waves", "--why", "a test") == 0
    assert replayed(capsys, record["iteration_id"])["equal"]
    assert generated("target=mla_decode_fp8", "state=1")["constraints"] == record["constraints"]


def test_a_candidate_file_that_was_changed_is_named_with_line_and_column(
    workspace: Path, generated: Generated, capsys: pytest.CaptureFixture[str]
) -> None:
    record = generated("target=mla_decode_fp8", "state=1")
    path = Path(record["files"][0])
    path.write_text(path.read_text().replace("# target: mla", "# target: Mla", 1))
    found = replayed(capsys, record["iteration_id"], code=1)
    assert "differs at line 2, column 11" in found["difference"]


def test_an_id_may_be_shortened_and_an_unknown_one_is_a_sentence(
    generated: Generated, capsys: pytest.CaptureFixture[str]
) -> None:
    record = generated("target=mla_decode_fp8", "state=1")
    assert replayed(capsys, record["iteration_id"][:20])["iteration_id"] == record["iteration_id"]
    assert "begins with 'gx'" in replayed(capsys, "gx", code=2)["message"]


@pytest.mark.parametrize(
    ("file", "before", "after", "named"),
    [
        ("prompt/text/task.md", "improves on", "improves  on", "the prompt differs at line"),
        ("prompt/sections.py", "You are at State", "You are  at State", "the prompt differs at line"),
        ("constraints/render.py", "prefer to avoid", "prefer to  avoid", "selection of constraints differs"),
        ("candidates/text/test_python.txt", "assert not wrong", "assert not  wrong", "differs at line"),
    ],
)
def test_one_byte_changed_in_code_or_a_template_is_the_first_difference_named(
    workspace: Path, generated: Generated, tmp_path: Path, file: str, before: str, after: str, named: str
) -> None:
    generated("target=mla_decode_fp8", "state=1")
    shutil.copytree(ROOT / "kernelgen", tmp_path / "kernelgen", ignore=shutil.ignore_patterns("__pycache__"))
    changed = tmp_path / "kernelgen" / file
    text = changed.read_text()
    assert before in text
    changed.write_text(text.replace(before, after, 1))
    done = subprocess.run(
        [sys.executable, "-m", "kernelgen.cli", "replay", "--all", "--json"],
        cwd=workspace,
        env={**os.environ, "PYTHONPATH": str(tmp_path), "KERNELGEN_CONF": str(ROOT / "conf")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    (replay,) = json.loads(done.stdout)["generations"]
    assert named in replay["difference"]


def test_with_a_model_named_the_same_prompt_is_asked_anew(
    workspace: Path, generated: Generated, capsys: pytest.CaptureFixture[str]
) -> None:
    first = generated("target=mla_decode_fp8", "state=1")
    assert kernelgen("replay", first["iteration_id"], "lm=playbook", "--json") == 0
    second = json.loads(capsys.readouterr().out)
    assert second["iteration_id"] != first["iteration_id"]
    assert second["hypothesis"] == first["hypothesis"]
    assert kinds(workspace) == ["generation_requested", "reply_received", "candidate_generated"] * 2
    assert replayed(capsys, "--all")["differing"] == 0


def test_recorded_replies_answer_the_same_prompt_and_no_other(
    workspace: Path, generated: Generated, capsys: pytest.CaptureFixture[str]
) -> None:
    first = generated("target=mla_decode_fp8", "state=1")
    assert kernelgen("replay", first["iteration_id"], "lm=recorded", "lm.model=playbook", "--json") == 0
    assert json.loads(capsys.readouterr().out)["hypothesis"] == first["hypothesis"]
    missed = generated("target=mla_decode_fp8", "state=0", "lm=recorded", "lm.model=playbook", code=1)
    assert (missed["error"], "no reply" in missed["message"]) == ("ModelError", True)


def test_the_log_verifies_after_all_of_it(workspace: Path, generated: Generated) -> None:
    generated("target=mla_decode_fp8", "state=1")
    assert kernelgen("log", "verify") == 0
    with log(workspace) as found:
        assert found.verify().problems == ()
