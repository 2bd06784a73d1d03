"""What a worker's lines become in the log: each once, only what fits it, and everything that follows from a verdict."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from bundle_workspace import Desk, two_candidates

from kernelgen import ids
from kernelgen.eventlog.store import EventLog
from kernelgen.events import ChampionNamed, VerdictReached
from kernelgen.judging.ingest import ingest
from kernelgen.ladder.results import Fault, Result
from kernelgen.ladder.work import lines, sums
from kernelgen.ladder.work.jobs import Job

MACHINE = {"gpu": "NVIDIA H200", "torch": "2.11.0+cu130"}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return two_candidates(tmp_path)


def results(job: Job, ratio: float = 1.2) -> list[Result]:
    """What a GPU machine would find of an honest, faster candidate."""
    assert job.champion is not None
    side = {"us": 10.0, "first_call_s": 1.0}
    shape = {"ratio": ratio, "low": ratio - 0.01, "high": ratio + 0.01, "bytes": 1e6, "flops": 1e6, "candidate": side}
    shape["champion"] = {**side, "us": 10.0 * ratio}
    details = {
        "geometric_mean": {"ratio": ratio, "low": ratio - 0.01, "high": ratio + 0.01},
        "recipe": {"id": "sha256:recipe", "terms": {"confidence": 0.99}},
        "champion": {"id": job.champion.id, "digest": job.champion.digest},
    }
    measured = [
        Result(level, "passed", "faster", details={**details, "shapes": {"n": shape}}) for level in ("L3", "L4")
    ]
    return [Result("L1", "passed", "compiled"), Result("L2", "passed", "right"), *measured]


def changed(text: str, **fields: Any) -> str:
    """A line with other fields, and a digest that fits them: as somebody would forge it."""
    record = {name: value for name, value in {**json.loads(text), **fields}.items() if name != "line"}
    return json.dumps({**record, "line": sums.digest_text(sums.canonical(record))})


def test_a_refused_line_keeps_no_other_back(desk: Desk) -> None:
    made = desk.bundled("good", "other")
    first, second = (lines.line(made.id, job, results(job), MACHINE) for job in made.jobs)
    unknown = changed(first, iteration_id="f20261201t000000000000_000000000000")
    other = changed(first, candidate=ids.digest_text("other text"))
    champion = changed(first, champion={"id": "naive", "digest": ids.digest_text("no champion")})
    taken = desk.ingested(first[:-9], "[1]", first.replace("faster", "slower"), unknown, other, champion, "", second)
    sentences = [one.refused for one in taken[:-1]]
    assert all(sentences), sentences
    for sentence, words in zip(
        sentences,
        (
            "no whole line",
            "other fields",
            "own digest differs",
            "no verdict in this log",
            "was changed",
            "never had here",
        ),
        strict=True,
    ):
        assert words in str(sentence)
    assert (taken[-1].refused, taken[-1].is_new) == (None, True)


def test_another_line_of_an_ingested_job_is_refused(desk: Desk) -> None:
    made = desk.bundled("good")
    job = made.jobs[0]
    slower, faster = (lines.line(made.id, job, results(job, ratio), MACHINE) for ratio in (1.02, 1.5))
    assert [one.is_new for one in desk.ingested(slower, slower)] == [True, False]
    assert "ingested with other results" in str(desk.ingested(faster)[0].refused)


def test_an_ingest_that_was_cut_off_goes_on_without_doubling_and_learns_what_it_had_not(desk: Desk) -> None:
    made = desk.bundled("good", "other")
    texts = [lines.line(made.id, job, results(job), MACHINE) for job in made.jobs]
    before = len(desk.verdicts())
    with desk.session() as judging:
        next(ingest(texts, judging))
    assert [one.is_new for one in desk.ingested(*texts)] == [False, True]
    assert len(desk.verdicts()) == before + 2


def test_a_win_that_comes_back_names_the_champion_and_the_next_bundle_measures_against_it(desk: Desk) -> None:
    made = desk.bundled("good")
    (job,) = made.jobs
    assert job.champion is not None
    assert job.champion.id == "naive"
    (taken,) = desk.ingested(lines.line(made.id, job, results(job), MACHINE))
    assert taken.row is not None
    assert isinstance(taken.row.event, VerdictReached)
    assert (taken.row.event.highest, taken.row.event.verdict.speedup) == ("L4", 1.2)
    with EventLog.read(desk.log) as log:
        (named,) = [row.event for row in log.rows(kinds=("champion_named",)) if isinstance(row.event, ChampionNamed)]
    assert named.champion_id == job.iteration_id
    desk.out = desk.folder / "next"
    (following,) = desk.bundled("other").jobs
    assert following.champion is not None
    assert (following.champion.id, following.champion.digest) == (job.iteration_id, job.digest)


def test_numbers_that_json_cannot_hold_do_not_stop_a_line(desk: Desk) -> None:
    job = desk.bundled("good", level="L2").jobs[0]
    odd = Result("L1", "failed", "\ud800 is no text", (Fault("compile.error", "x"),), details={"worst": float("nan")})
    line = lines.parsed(lines.line("sha256:b", job, [odd], MACHINE))
    assert line.results[0].details == {"worst": "nan"}
    assert line.results[0].reason == odd.reason
    assert asdict(line.results[0].faults[0])["check"] == "compile.error"
    assert os.linesep not in lines.line("sha256:b", job, [odd], MACHINE)
