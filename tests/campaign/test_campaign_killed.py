"""A campaign that is killed again and again ends, given the same recorded verdicts, as one that was left alone."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from kernelgen.events import CampaignEnded, CampaignRound, CandidateGenerated, VerdictReached
from tests.campaign.campaign_desk import ROOT, RUN, TARGET, Desk, by_digest, of, results

ASKED = (f"target={TARGET}", "gpu=bundle", "judge=L0", "round=2", "budget.iterations=6", "seed=7")
KILLS = 3
# every place where something becomes durable: before it, or right behind it, the process is killed
KILLER = """
import os, signal, sys
from kernelgen import candidates, cli
from kernelgen.constraints.store import ConstraintFile
from kernelgen.eventlog import runs
from kernelgen.eventlog.store import EventLog
from kernelgen.judging import packing
from kernelgen.judging.mark import Mark

behind, left = sys.argv[1] == "behind", int(sys.argv[2])
steps = 0

def wrapped(function):
    def call(*arguments, **named):
        global steps
        steps += 1
        mine = steps
        if mine == left and not behind:
            os.kill(os.getpid(), signal.SIGKILL)
        result = function(*arguments, **named)
        if mine == left:
            os.kill(os.getpid(), signal.SIGKILL)
        return result
    return call

EventLog.append_all = wrapped(EventLog.append_all)
ConstraintFile.append_locked = wrapped(ConstraintFile.append_locked)
candidates.write_files = wrapped(candidates.write_files)
packing.place = wrapped(packing.place)
Mark.advance = wrapped(Mark.advance)
runs.RunLock.acquire = classmethod(wrapped(runs.RunLock.acquire.__func__))
cli.COMMANDS.setdefault("campaign", ("campaign", ""))
code = cli.main(sys.argv[3:])
print("steps", steps, file=sys.stderr)
sys.exit(code)
"""


@dataclass(frozen=True)
class Alone:
    """A campaign that was left alone."""

    desk: Desk
    verdicts: Path
    """What its GPU machine had said."""
    steps: int
    """How often it made something durable."""


def run(desk: Desk, verdicts: Path, script: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", script, *options, "campaign", *ASKED, f"verdicts={verdicts}", *desk.places()]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture(scope="module")
def alone(seeded_campaign: Path, tmp_path_factory: pytest.TempPathFactory) -> Alone:
    """Its verdicts come from a first campaign, round after round; then it is played from them at one go."""
    import shutil

    first, desk = (Desk(tmp_path_factory.mktemp(name)) for name in ("first", "alone"))
    for one in (first, desk):
        for path in seeded_campaign.iterdir():
            if path.is_file():
                shutil.copy(path, one.folder)
        one.command("log", "adopt")
    texts: list[str] = []
    while not of(first.campaign(*ASKED), "ended"):
        texts += first.answered(lambda job: results(job, by_digest(job)))
        first.ingest()
    verdicts = desk.folder / "recorded.jsonl"
    verdicts.write_text("\n".join(texts))
    done = run(desk, verdicts, KILLER, "behind", "0")
    assert done.returncode == 0, done.stderr
    assert desk.champions() == first.champions()
    return Alone(desk, verdicts, int(done.stderr.split()[-1]))


def story(desk: Desk) -> list[tuple[object, ...]]:
    """What was judged how, in order: the same in every log of the same campaign."""
    return [(one.source, one.highest, one.verdict.speedup) for one in desk.events(VerdictReached)]


def is_the_same(desk: Desk, alone: Alone) -> None:
    """The same verdicts, rounds, champions and end; nothing twice, and a log that verifies and replays."""
    assert desk.champions() == alone.desk.champions()
    assert desk.now() == alone.desk.now()
    assert story(desk) == story(alone.desk)
    for kind in (CandidateGenerated, CampaignRound, CampaignEnded):
        assert len(desk.events(kind)) == len(alone.desk.events(kind))
    assert desk.verifies()
    assert not list((desk.folder / "events.db.runs").iterdir())


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_killed_at_three_random_steps_and_resumed_it_ends_with_the_same_champions(
    new_desk: Callable[[str], Desk], alone: Alone, seed: int
) -> None:
    chance, desk = random.Random(seed), new_desk("killed")
    for _ in range(KILLS):
        place, step = chance.choice(("before", "behind")), chance.randint(1, alone.steps // (KILLS + 1))
        done = run(desk, alone.verdicts, KILLER, place, str(step))
        assert done.returncode == -signal.SIGKILL, done.stderr
    done = run(desk, alone.verdicts, RUN)
    assert done.returncode == 0, done.stderr
    assert len(alone.desk.champions()) > 1, "a campaign without promotions shows little"
    is_the_same(desk, alone)


def test_killed_three_times_by_the_clock_it_ends_with_the_same_champions(
    new_desk: Callable[[str], Desk], alone: Alone
) -> None:
    chance, desk, killed = random.Random(5), new_desk("killed"), 0
    command = [sys.executable, "-c", RUN, "campaign", *ASKED, f"verdicts={alone.verdicts}", *desk.places()]
    while killed < KILLS:
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            time.sleep(chance.uniform(0.6, 1.4))
            killed += process.poll() is None
            process.kill()
        if process.returncode == 0:
            break  # it was done before: the machine is faster than thought
    done = run(desk, alone.verdicts, RUN)
    assert done.returncode == 0, done.stderr
    is_the_same(desk, alone)


def test_a_campaign_that_runs_is_left_alone_by_another_command(desk: Desk, alone: Alone) -> None:
    holding = (
        "import sys\nfrom pathlib import Path\nfrom kernelgen.campaign.drive import alone\n"
        f"with alone(Path(sys.argv[1]), '{TARGET}', 'h200'):\n    print('held', flush=True)\n    sys.stdin.readline()\n"
    )
    command = [sys.executable, "-c", holding, str(desk.log)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        refused = run(desk, alone.verdicts, RUN)
        other.communicate("\n")
    assert (refused.returncode, "running in another process" in refused.stderr) == (2, True)
