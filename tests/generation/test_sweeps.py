"""Sweeps: one log, no lost event, a failed job stops no other, and the exit code says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.generation.conftest import kernelgen, kinds, log

BOTH = "target=moe_dispatch_384expert,mla_decode_fp8"


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]


def test_a_multirun_generates_for_every_combination(workspace: Path, capfd: pytest.CaptureFixture[str]) -> None:
    capfd.readouterr()
    assert kernelgen("generate", "judge=none", "-m", BOTH, "state=0,1", "--json") == 0
    found = {(str(record["target"]), record["state"]) for record in lines(capfd)}
    assert found == {(target, state) for target in BOTH[7:].split(",") for state in (0, 1)}
    assert sorted(path.name for path in workspace.iterdir()) == [
        "constraints.jsonl", "events.db", "events.db.head", "events.db.runs", "scripts"
    ]  # fmt: skip


def test_an_experiment_file_sweeps_by_itself(workspace: Path, capfd: pytest.CaptureFixture[str]) -> None:
    capfd.readouterr()
    assert kernelgen("generate", "judge=none", "experiment=both_targets", "--json") == 0
    assert len(lines(capfd)) == 4


def test_a_failed_job_does_not_stop_the_others_and_the_exit_code_says_so(
    workspace: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    capfd.readouterr()
    assert kernelgen("generate", "judge=none", "-m", "target=mla_decode_fp8", "state=2,1", "--json") == 1
    failed, made = lines(capfd)
    assert failed["error"] == "NoPlay"
    assert made["state"] == 1


def test_the_joblib_launcher_loses_no_event(workspace: Path, capfd: pytest.CaptureFixture[str]) -> None:
    capfd.readouterr()
    assert kernelgen("generate", "judge=none", "-m", BOTH, "state=0,1,2", "hydra/launcher=joblib", "--json") == 1
    assert len(lines(capfd)) == 6
    counted = kinds(workspace)
    assert {kind: counted.count(kind) for kind in set(counted)} == {
        "generation_requested": 6, "reply_received": 4, "candidate_generated": 4, "generation_failed": 2
    }  # fmt: skip
    with log(workspace) as found:
        assert found.verify().problems == ()
    assert kernelgen("replay", "--all") == 0


def test_a_choice_that_is_not_there_stops_the_sweep_before_any_job(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert kernelgen("generate", "judge=none", "-m", "target=mla_decode_fp8,nothing", "state=1") == 2
    assert "There is no target 'nothing'" in capsys.readouterr().err
    assert kinds(workspace) == []
