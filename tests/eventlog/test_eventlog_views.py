"""People read the log with sqlite-utils and Datasette: the views have plain columns."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from eventlog_samples import reply
from sqlite_utils import Database

from kernelgen.eventlog import EventLog
from kernelgen.events import (
    CandidateGenerated,
    ChampionNamed,
    ConstraintAdded,
    ConstraintRetracted,
    GenerationFailed,
    GenerationRefused,
    GenerationRequested,
    ProfileImported,
    VerdictReached,
)
from kernelgen.ids import digest_text
from kernelgen.records import Constraint, LevelResult, Retraction, Scope, Verdict

REGION = {"target": "moe", "hardware": "h200"}


def requested(iteration_id: str) -> GenerationRequested:
    """A request all of whose texts are the same."""
    text = digest_text("{}")
    return GenerationRequested(
        iteration_id=iteration_id,
        **REGION,
        state=1,
        chosen_by="vector",
        lm="playbook",
        program_name="base",
        config=text,
        overrides=("target=moe",),
        constraint_set=text,
        selection=text,
        ask={"profile": text, "champion": text},
        program=text,
        messages=text,
        model="scripted",
        parameters="{}",
        versions="{}",
        out="/out",
    )


@pytest.fixture
def told(path: Path) -> Path:
    """A log with one event of every kind that a view shows."""
    constraint = Constraint(id="c1", severity="soft", statement="Avoid it.", scope=Scope(target="moe"), source="L3")
    levels = (
        LevelResult(level="L0", outcome="passed", reason="fine"),
        LevelResult(level="L1", outcome="failed", reason="out of shared memory"),
    )
    text = digest_text("{}")
    with EventLog.open(path) as log:
        log.append(ConstraintAdded(constraint=constraint, line=text))
        retraction = Retraction(id="r1", retracts="c1", why="It was noise.")
        log.append(ConstraintRetracted(retraction=retraction, line=text))
        log.append(ProfileImported(**REGION, shape="t16", profile=text, raw=text), ["{}"])
        log.append(ChampionNamed(**REGION, champion_id="naive", origin="imported", champion=text))
        log.append(GenerationRefused(**REGION, state=None, reason="The region is frozen.", overrides=()))
        log.append(requested("g1"))
        log.append(reply("g1", "bad"), ["bad", "[]"])
        log.append(reply("g1", "good", attempt=2), ["good"])
        log.append(
            CandidateGenerated(
                iteration_id="g1",
                **REGION,
                state=1,
                attempt=2,
                hypothesis="Fewer bytes.",
                configs="{}",
                honoured=(),
                overridden=("c1",),
                left_out=3,
                out="/out",
                files={"scripts/kernels/moe/g1.py": digest_text("{}")},
            )
        )
        verdict = Verdict(iteration_id="g1", levels=levels)
        log.append(VerdictReached(iteration_id="g1", **REGION, state=1, verdict=verdict, highest="L0"))
        log.append(requested("g2"))
        log.append(GenerationFailed(iteration_id="g2", **REGION, state=1, cause="no_play", reason="No play."))
        log.append(requested("g3"))
    return path


def view(path: Path, name: str) -> list[dict[str, Any]]:
    """The rows of a view, through sqlite-utils."""
    with Database(path) as db:
        return list(db.query(f"SELECT * FROM {name}"))


def test_generations_show_how_each_ended(told: Path) -> None:
    first, second, third = view(told, "generations")
    assert (first["iteration_id"], first["outcome"], first["highest"], first["replies"]) == ("g1", "candidate", "L0", 2)
    assert first["known_cost_usd"] == 0.5
    assert (first["state"], first["lm"], first["program"]) == (1, "playbook", "base")
    assert (second["outcome"], second["replies"]) == ("no_play", 0)
    assert third["outcome"] == "unfinished"


def test_replies_show_what_each_cost(told: Path) -> None:
    rows = view(told, "replies")
    assert [(row["attempt"], row["cost_usd"], row["output_tokens"]) for row in rows] == [
        (1, 0.25, None),
        (2, 0.25, None),
    ]
    assert rows[1]["text_digest"] == digest_text("good")


def test_candidates_and_verdicts_are_readable(told: Path) -> None:
    (candidate,) = view(told, "candidates")
    assert candidate["files"] == "scripts/kernels/moe/g1.py"
    assert (candidate["hypothesis"], candidate["constraints_left_out"]) == ("Fewer bytes.", 3)
    (verdict,) = view(told, "verdicts")
    assert verdict["levels"] == "L0 passed, L1 failed"
    assert verdict["failed_because"] == "out of shared memory"


def test_constraints_show_their_retraction(told: Path) -> None:
    (row,) = view(told, "constraints")
    assert (row["id"], row["severity"], row["target"], row["retracted_because"]) == (
        "c1",
        "soft",
        "moe",
        "It was noise.",
    )


def test_refusals_profiles_and_champions_are_readable(told: Path) -> None:
    assert [row["reason"] for row in view(told, "refusals")] == ["The region is frozen."]
    assert [row["shape"] for row in view(told, "profiles")] == ["t16"]
    assert [row["champion_id"] for row in view(told, "champions")] == ["naive"]


def test_the_sqlite_utils_command_reads_views_and_generated_columns(told: Path) -> None:
    def rows(*arguments: str) -> list[dict[str, Any]]:
        command = [sys.executable, "-m", "sqlite_utils", *arguments]
        found: list[dict[str, Any]] = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
        return found

    assert [row["iteration_id"] for row in rows("rows", str(told), "generations")] == ["g1", "g2", "g3"]
    query = "SELECT seq, target, hardware, state, iteration_id FROM events WHERE kind = 'verdict_reached'"
    assert rows("query", str(told), query) == [
        {"seq": 10, "target": "moe", "hardware": "h200", "state": 1, "iteration_id": "g1"}
    ]


def test_reading_by_region_kind_or_generation_uses_an_index(told: Path) -> None:
    with Database(told) as db:
        for condition in ("kind = 'x' AND target = 'x'", "target = 'x' AND hardware = 'x'", "iteration_id = 'x'"):
            plan = " ".join(
                row[3] for row in db.execute(f"EXPLAIN QUERY PLAN SELECT seq FROM events WHERE {condition}")
            )
            assert "USING" in plan
            assert "INDEX events_" in plan, condition
