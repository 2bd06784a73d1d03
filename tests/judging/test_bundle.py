"""Which candidates go into a bundle, what it holds, and where it may be written."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

from bundle_workspace import KERNEL, Desk, two_candidates

from kernelgen import ids
from kernelgen.errors import BadInput, Refused
from kernelgen.judging.bundle import bundle
from kernelgen.judging.subjects import Place, find
from kernelgen.ladder.results import Fault, Result
from kernelgen.ladder.servers import Servers
from kernelgen.ladder.work import levels, sums
from kernelgen.ladder.work.jobs import Settings, read_work
from kernelgen.ladder.work.levels import Bench, ends, same_card

CLOCK_READING = "import time\n" + KERNEL.replace("SIZE", "128").replace("FACTOR", "3.0 + 0 * time.time()")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return two_candidates(tmp_path)


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
