"""A bundle goes to another machine, is judged there whatever happens, and its verdicts come back once each."""

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

from bundle_workspace import BLOCKED, KERNEL, Desk, bare_machine, kernel, two_candidates, work, worker_command

from kernelgen import ids
from kernelgen.errors import BadInput, Refused
from kernelgen.eventlog.store import EventLog
from kernelgen.judging.bundle import bundle
from kernelgen.judging.subjects import Place, find
from kernelgen.ladder.results import Fault, Result
from kernelgen.ladder.servers import Servers
from kernelgen.ladder.work import levels, lines, sums
from kernelgen.ladder.work.jobs import Settings, read_work
from kernelgen.ladder.work.levels import Bench, ends, same_card

CLOCK_READING = "import time\n" + KERNEL.replace("SIZE", "128").replace("FACTOR", "3.0 + 0 * time.time()")


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


def test_the_same_bundle_is_left_alone_and_another_folder_is_not_written_into(desk: Desk) -> None:
    first = desk.bundled("good")
    text = (desk.out / "jobs.json").read_text()
    again = desk.bundled("good")
    assert (again.is_new, again.id) == (False, first.id)
    assert (desk.out / "jobs.json").read_text() == text
    with pytest.raises(BadInput, match="holds something else"):
        desk.bundled("good", "other")
    (desk.folder / "mine" / "target" / "tripled.py").write_text("# changed\n")
    with pytest.raises(BadInput, match="another kernelgen or other targets"):
        desk.bundled("good")
    assert [path.name for path in desk.folder.glob(".bundle*")] == []


def test_what_l0_refuses_gets_its_verdict_here_and_no_gpu_time(desk: Desk) -> None:
    desk.candidate("clock", CLOCK_READING)
    with pytest.raises(Refused, match="No candidate is left"):
        desk.bundled("clock")
    assert not desk.out.exists()
    made = desk.bundled("clock", "good")
    assert [job.subject.name for job in made.jobs] == ["good"]
    (left,) = made.left_out
    assert left.why.startswith("L0 failed")
    refused = [event.verdict.refused() for event in desk.verdicts()]
    assert [None if one is None else one.level for one in refused] == ["L0", "L0", None]


def test_a_generation_that_failed_before_stays_here_unless_all_are_asked_for(desk: Desk) -> None:
    profile = Path(__file__).parents[2] / "examples" / "profiles" / "moe_dispatch_384expert.ncu_raw.csv"
    target = "target=moe_dispatch_384expert"
    assert desk.door("constraints", "seed", "hardware=h200")[0] == 0
    assert desk.door("profile", "import", str(profile), target, "shape=t4096")[0] == 0
    code, records, complaints = desk.door("generate", target, "judge=none")
    assert code == 0, complaints
    with desk.session() as judging:
        place = Place(judging.log, judging.rivals.catalog, judging.rivals.catalog.hardware("h200"))
        generated = find(records[0]["iteration_id"], place)
        fault = Fault("correctness.values", "off by 3")
        judging.add(generated, [Result("L2", "failed", fault.reason, (fault,))])
        with pytest.raises(Refused, match="L2 failed \\(off by 3\\); all=true"):
            bundle([generated], desk.out, "L4", judging)
        made = bundle([generated], desk.out, "L4", judging, all_of_them=True)
        assert made.jobs[0].subject.goal.folder is None  # a shipped target travels with kernelgen
        assert made.jobs[0].iteration_id == generated.iteration_id


def test_jobs_come_back_from_their_text_as_they_were(desk: Desk) -> None:
    made = desk.bundled("good", "other")
    assert read_work(desk.out).jobs == made.jobs
    seeds = [seed for job in made.jobs for seed in job.seeds.values()]
    assert len(set(seeds)) == len(seeds) == 6
    assert read_work(desk.out, place=desk.out).jobs[0].subject.goal.folder == str(desk.out / "targets" / "1")
    assert (desk.out / "targets" / "1" / "data" / "factor.txt").read_text() == "3.0\n"


def test_the_sums_are_those_that_sha256sum_checks(desk: Desk) -> None:
    desk.bundled("good")
    command = ["sha256sum", "--check", "--quiet", "--strict", sums.SUMS]
    assert subprocess.run(command, cwd=desk.out, capture_output=True, check=False).returncode == 0
    record = {"text": "Grüße \ud800", "number": 1.5, "list": [1, None]}
    assert sums.canonical(record) == ids.canonical_json(record)
    assert sums.digest_text(sums.canonical(record)) == ids.digest_text(ids.canonical_json(record))


def test_without_a_gpu_nothing_is_measured_and_a_cpu_clock_only_tries_the_protocol(desk: Desk) -> None:
    job = desk.bundled("good").jobs[0]
    job = replace(job, subject=replace(job.subject, goal=replace(job.subject.goal, folder=str(desk.out / "targets/1"))))
    settings = Settings("L4", 60.0, 5, 0.01, 0.02)
    with Servers(contained=True) as servers:
        result = levels.l3(job, Bench(settings, servers.get, "cpu"))
        assert (result.outcome, "no CUDA GPU" in result.reason) == ("inconclusive", True)
        assert ends(result, "gpu")
        trying = Bench(replace(settings, clock="cpu"), servers.get, "cpu")
        for level, shape in ((levels.l3, "n300"), (levels.l4, "n511")):
            result = level(job, trying)
            assert result.outcome == "inconclusive"
            assert list(result.details["shapes"]) == [shape]
            assert result.details["champion"]["id"] == "naive"
            assert not ends(result, "cpu")


def test_another_card_of_the_same_architecture_is_not_the_one_asked_for(desk: Desk) -> None:
    job = desk.bundled("good").jobs[0]
    assert same_card(job, "NVIDIA H200", 90)
    assert not same_card(job, "NVIDIA H100 80GB HBM3", 90)
    assert not same_card(job, "NVIDIA H200", 100)
