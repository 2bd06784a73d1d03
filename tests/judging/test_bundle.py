"""A bundle goes to another machine, is judged there whatever happens, and its verdicts come back once each."""

from __future__ import annotations

import ast
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

from bundle_workspace import BLOCKED, KERNEL, Workspace, bare_machine, kernel, work, worker_command

from kernelgen import ids
from kernelgen.catalog import Catalog, shipped_conf
from kernelgen.door import compose
from kernelgen.errors import BadInput, Refused
from kernelgen.eventlog.store import EventLog
from kernelgen.events import ChampionNamed, VerdictReached
from kernelgen.judging.bundle import Bundled, bundle
from kernelgen.judging.ingest import Taken, ingest
from kernelgen.judging.session import Session, session
from kernelgen.judging.subjects import Judged, Place, find
from kernelgen.ladder.results import Fault, Result
from kernelgen.ladder.servers import Servers
from kernelgen.ladder.work import levels, lines, sums
from kernelgen.ladder.work.jobs import Job, Settings, WorkLevel, read_work
from kernelgen.ladder.work.levels import Bench, ends, same_card

POLICY = compose.compose(["policy.benchmark_pairs=5"], ()).config.policy
MACHINE = {"gpu": "NVIDIA H200", "torch": "2.11.0+cu130"}
CLOCK_READING = "import time\n" + KERNEL.replace("SIZE", "128").replace("FACTOR", "3.0 + 0 * time.time()")


class Desk(Workspace):
    """A workspace whose verbs are called in this process."""

    @contextmanager
    def session(self) -> Iterator[Session]:
        catalog = Catalog([shipped_conf(), self.folder / "mine"])
        with (
            EventLog.open(self.log) as log,
            session(log, self.folder / "constraints.jsonl", catalog, POLICY) as judging,
        ):
            yield judging

    def found(self, judging: Session, *names: str) -> list[Judged]:
        catalog = judging.rivals.catalog
        place = Place(judging.log, catalog, catalog.hardware("h200"), "tripled")
        return [find(str(self.folder / f"{name}.py"), place) for name in names]

    def bundled(self, *names: str, level: WorkLevel = "L4", **how: Any) -> Bundled:
        with self.session() as judging:
            return bundle(self.found(judging, *names), self.out, level, judging, **how)

    def ingested(self, *texts: str) -> list[Taken]:
        with self.session() as judging:
            return list(ingest(texts, judging))


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    made = Desk(tmp_path)
    made.candidate("good", kernel(size=256))
    made.candidate("other", kernel(size=512))
    return made


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
    code, records, complaints = desk.door("generate", "target=moe_combine", "lm=playbook", "judge=none", "state=1")
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


def test_numbers_that_json_cannot_hold_do_not_stop_a_line(desk: Desk) -> None:
    job = desk.bundled("good", level="L2").jobs[0]
    odd = Result("L1", "failed", "\ud800 is no text", (Fault("compile.error", "x"),), details={"worst": float("nan")})
    line = lines.parsed(lines.line("sha256:b", job, [odd], MACHINE))
    assert line.results[0].details == {"worst": "nan"}
    assert line.results[0].reason == odd.reason
    assert asdict(line.results[0].faults[0])["check"] == "compile.error"
    assert os.linesep not in lines.line("sha256:b", job, [odd], MACHINE)
