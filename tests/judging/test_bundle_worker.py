"""The worker on another machine: killed and resumed, its judge fallen or hung, its folder tampered with."""

from __future__ import annotations

import ast
import json
import shutil
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

from bundle_workspace import BLOCKED, Desk, bare_machine, kernel, two_candidates, work, worker_command

from kernelgen.eventlog.store import EventLog
from kernelgen.judging.bundle import bundle
from kernelgen.judging.subjects import Place, find
from kernelgen.ladder.results import Result
from kernelgen.ladder.work import lines, running, sums
from kernelgen.ladder.work.jobs import Settings


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return two_candidates(tmp_path)


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """Three jobs, the first one's line kept over a SIGKILL of the worker, and the last one's judge falling."""
    made = Desk(tmp_path_factory.mktemp("judged"))
    made.candidate("good", kernel(size=256))
    made.candidate("wrong", kernel(factor=3.5))
    with made.session() as judging:
        good, wrong = made.found(judging, "good", "wrong")
        place = Place(judging.log, judging.rivals.catalog, good.hardware, "crashing")
        falling = find(str(made.folder / "good.py"), place)
        bundle([falling, good, wrong], made.out, "L2", judging)
    _kill_after_first_line(made)
    with (made.out / "verdicts.jsonl").open("a") as file:
        file.write('{"bundle":"sha256:cut in the middle of')
    done = work(made, "out=verdicts.jsonl")
    assert done.returncode == 0, done.stderr
    return made


def _kill_after_first_line(made: Desk) -> None:
    """Run the worker and kill it while its second job is judged; its job's process ends with it."""
    path = made.out / "verdicts.jsonl"
    command = worker_command("out=verdicts.jsonl")
    with subprocess.Popen(command, cwd=made.out, env=bare_machine(made.folder), stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 120
        while not (path.exists() and path.read_bytes().endswith(b"\n")) or not _jobs_running(made):
            assert time.monotonic() < deadline, "the worker wrote no line"
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
    until = time.monotonic() + 10
    while _jobs_running(made) and time.monotonic() < until:
        time.sleep(0.05)
    assert not _jobs_running(made)
    (made.folder / "first").write_bytes(path.read_bytes())


def _jobs_running(made: Desk) -> list[str]:
    """Processes of jobs of this bundle."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            text = (entry / "cmdline").read_bytes().decode(errors="replace") if entry.name.isdigit() else ""
        except OSError:  # gone meanwhile
            continue
        if str(made.out) in text and "work.one" in text:
            found.append(text)
    return found


def test_a_killed_worker_keeps_whole_lines_and_goes_on(judged: Desk) -> None:
    text = (judged.out / "verdicts.jsonl").read_text()
    assert text.startswith((judged.folder / "first").read_text())
    found = [lines.parsed(line) for line in text.splitlines()]  # the cut one is gone
    assert [line.job for line in found] == [1, 2, 3]
    assert [[(r.level, r.outcome) for r in line.results] for line in found] == [
        [("L1", "passed"), ("L2", "inconclusive")],
        [("L1", "passed"), ("L2", "passed")],
        [("L1", "passed"), ("L2", "failed")],
    ]
    assert {"containment", "torch", "triton", "python", "kernelgen", "judged_at"} <= set(found[1].machine)


def test_a_judge_that_falls_costs_only_its_own_job_and_is_no_verdict_on_the_candidate(judged: Desk) -> None:
    first = lines.parsed((judged.out / "verdicts.jsonl").read_text().splitlines()[0])
    assert first.results[-1].reason == "the harness's process ended at L2: killed by SIGSEGV"


def test_a_worker_that_has_all_lines_prints_them_again_and_judges_nothing(judged: Desk) -> None:
    shutil.copy(judged.out / "verdicts.jsonl", judged.out / "journal.jsonl")
    began = time.monotonic()
    done = work(judged)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (judged.out / "verdicts.jsonl").read_text()
    assert time.monotonic() - began < 5


def test_nothing_of_the_worker_needs_what_a_gpu_machine_lacks(judged: Desk) -> None:
    # it ran on a machine where importing these fails
    for name in BLOCKED:
        done = subprocess.run(
            [worker_command()[0], "-c", f"import {name}"],
            env=bare_machine(judged.folder),
            capture_output=True,
            check=False,
        )
        assert b"is not on this machine" in done.stderr
    imported = set()
    for path in judged.out.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            imported |= {name.partition(".")[0] for name in names}
    assert "torch" in imported
    assert not imported & {*BLOCKED, "yaml", "tiktoken", "json_repair"}


def test_a_folder_that_is_not_as_it_was_made_is_refused_before_anything_runs(judged: Desk, tmp_path: Path) -> None:
    def refused(change: str) -> str:
        copy = Desk(tmp_path / change)
        shutil.copytree(judged.out, copy.out, ignore=shutil.ignore_patterns("*.jsonl"))
        {"edited": _edit, "missing": _remove, "added": _add}[change](copy.out)
        done = work(copy, "out=v.jsonl")
        assert done.returncode == 2
        assert not (copy.out / "v.jsonl").exists()
        return done.stderr

    for change in ("edited", "missing", "added"):
        (tmp_path / change).mkdir()
    assert "tripled.py is not what the bundle was made with" in refused("edited")
    assert "is missing" in refused("missing")
    assert "torch.py is no part of the bundle" in refused("added")


def _edit(folder: Path) -> None:
    (path,) = folder.glob("targets/*/tripled.py")
    path.write_text(path.read_text().replace("off <= ", "True or off <= "))


def _remove(folder: Path) -> None:
    next(folder.glob("targets/*/data/factor.txt")).unlink()


def _add(folder: Path) -> None:
    (folder / "torch.py").write_text("print('not torch')\n")


def test_ingest_appends_each_line_once_and_holds_it_against_the_log(judged: Desk, tmp_path: Path) -> None:
    before = len(judged.verdicts())
    for appended in (3, 0):
        code, records, complaints = judged.door("ingest", str(judged.out / "verdicts.jsonl"))
        assert (code, complaints) == (0, "")
        assert sum(record["is_new"] for record in records) == appended
        assert [record["highest"] for record in records] == ["L1", "L2", "L1"]
    assert len(judged.verdicts()) == before + 3
    event = judged.verdicts()[-2]
    assert [result.level for result in event.verdict.levels] == ["L0", "L1", "L2"]
    assert json.loads(event.machine)["bundle"] == sums.bundle_id(judged.out)
    assert event.origin == "file"
    with EventLog.read(judged.log) as log:
        assert log.verify().ok


def test_a_judge_that_hangs_is_ended_and_its_level_is_not_known(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    job = desk.bundled("good", level="L1").jobs[0]
    for seconds in ("START_S", "BESIDE_S"):
        monkeypatch.setattr(running, seconds, 0.1)
    results, lasted = running.results_of(job, Settings("L1", 0.0, 5, 0.01, 0.02), desk.out, contained=True)
    assert (lasted, [(result.level, result.outcome) for result in results]) == (False, [("L1", "inconclusive")])
    assert "the harness did not end L1 in" in results[0].reason
    assert not _jobs_running(desk)


def test_a_target_that_does_not_load_there_costs_its_own_jobs_alone(desk: Desk) -> None:
    job = desk.bundled("good", level="L1").jobs[0]
    (path,) = desk.out.glob("targets/*/tripled.py")
    path.write_text("import a_package_that_only_this_machine_has\n")
    results, lasted = running.results_of(job, Settings("L1", 60.0, 5, 0.01, 0.02), desk.out, contained=True)
    assert (lasted, results[0].outcome) == (False, "inconclusive")
    assert "needs 'a_package_that_only_this_machine_has'" in results[0].reason


def test_a_process_that_ends_behind_a_known_level_leaves_that_level_as_it_is() -> None:
    settings = Settings("L3", 60.0, 5, 0.01, 0.02)
    known = [Result("L1", "passed", "compiled"), Result("L2", "passed", "right")]
    assert running.unknown_level("L2", known[:1], settings) == "L2"
    assert running.unknown_level("L2", known, settings) == "L3"
    assert running.unknown_level("L2", known, replace(settings, level="L2")) is None
    assert running.unknown_level("L2", [known[0], Result("L2", "failed", "wrong")], settings) is None
