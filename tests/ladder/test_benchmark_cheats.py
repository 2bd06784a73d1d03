"""Cheats of timing are refused by the benchmark alone, on a CPU's clock, each by its own check; their twins are not.

The corpus' kinds A7, A8, A12, A13, A14 and C12, and faces of them that only this level can see.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

from rows_candidates import GOAL, HONEST, LAUNCH, RETURN, changed, subject

from kernelgen.ladder.benchmark import Terms3, confirm, measure
from kernelgen.ladder.results import Result
from kernelgen.ladder.server import Server
from tests.attacks.attack import Attack
from tests.attacks.corpus import attacks

TERMS = Terms3(pairs=4, shape_s=30.0)
SMALL = replace(GOAL, tune={"t4_n128": {"T": 4, "N": 128}}, heldout={"t3_n96": {"T": 3, "N": 96}})
# by kind: what may refuse it
REFUSED_BY = {
    "A7": {"benchmark.remembered"},
    "A8": {"benchmark.remembered"},
    "A12": {"benchmark.stale", "benchmark.wrong", "process.crashed"},
    "A13": {"benchmark.remembered", "benchmark.stale", "benchmark.wrong"},
    "A14": {"benchmark.late_work", "benchmark.wrong"},
    "C12": {"benchmark.wrong"},
}
CORPUS = [attack for attack in attacks() if attack.id in REFUSED_BY and not attack.gpu]

CHEATS = {
    # what a call has seen decides which contents it is right for
    "benchmark.stale": "KNOWN = []\n"
    + changed(RETURN, "    KNOWN.append((y, total))\n    return tuple(t.clone() for t in KNOWN[0])\n"),
    # the row sums come when nobody waits for them any more
    "benchmark.late_work": "import threading\n\n"
    + changed(
        LAUNCH,
        LAUNCH.replace("y, total,", "y, total := torch.zeros_like(total),")
        + "    late = total.clone()\n    total.zero_()\n"
        + "    threading.Timer(0.05, total.copy_, (late,)).start()\n",
    ),
    # right until it has been called a few times, as a judge does before it counts
    "benchmark.wrong": "CALLS = []\n"
    + changed(LAUNCH, "    CALLS.append(1)\n" + LAUNCH.replace("factor,", "factor if len(CALLS) < 7 else 0.5,")),
    "benchmark.raised": "CALLS = []\n"
    + changed(LAUNCH, "    CALLS.append(1)\n    assert len(CALLS) < 7, 'enough'\n" + LAUNCH),
    "benchmark.incomplete": "import time\n\nCALLS = []\n"
    + changed(LAUNCH, "    CALLS.append(1)\n    time.sleep(60 if len(CALLS) > 6 else 0)\n" + LAUNCH),
    "process.exited": "import os\n\nCALLS = []\n"
    + changed(LAUNCH, "    CALLS.append(1)\n    if len(CALLS) > 6:\n        os._exit(0)\n" + LAUNCH),
    "benchmark.flags": "CALLS = []\n"
    + changed(LAUNCH, "    CALLS.append(1)\n    if len(CALLS) > 6:\n        torch.set_num_threads(2)\n" + LAUNCH),
    "benchmark.remembered": "HELD = []\n"
    + changed(
        "def rows(x, w, factor):\n",
        "def rows(x, w, factor):\n    for known, answer in HELD:\n        if torch.equal(known, x):\n"
        "            return tuple(t.clone() for t in answer)\n",
    ).replace(RETURN, "    HELD[:] = [(x.clone(), (y.clone(), total.clone()))]\n" + RETURN),
}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server("interpreter") as running:
        yield running


def _measured(attack: Attack, source: str, server: Server) -> Result:
    judge = confirm if attack.name.endswith("held-out") else measure
    twin = attack.subject(attack.twin)
    return judge(attack.subject(source), twin, server_for=lambda _: server, device="cpu", policy=TERMS, seed=3)


@pytest.mark.parametrize("attack", CORPUS, ids=lambda attack: attack.name)
def test_a_cheat_of_the_corpus_is_refused(attack: Attack, server: Server) -> None:
    result = _measured(attack, attack.cheat, server)
    assert result.outcome in ("failed", "suspect"), result.reason
    assert result.faults[0].check in REFUSED_BY[attack.id], result.reason


@pytest.mark.parametrize("attack", CORPUS, ids=lambda attack: attack.name)
def test_its_honest_twin_is_not(attack: Attack, server: Server) -> None:
    result = _measured(attack, attack.twin, server)
    assert not result.faults, result.reason
    assert result.outcome in ("passed", "inconclusive")


def test_the_corpus_has_every_kind_that_a_cpu_can_show() -> None:
    assert {attack.id for attack in CORPUS} == set(REFUSED_BY)


@pytest.mark.parametrize("check", CHEATS)
def test_each_check_refuses_what_it_is_for(check: str, server: Server) -> None:
    terms = replace(TERMS, shape_s=3.0) if check == "benchmark.incomplete" else TERMS
    candidate, champion = subject(CHEATS[check], goal=SMALL), subject(HONEST, goal=SMALL)
    result = measure(candidate, champion, server_for=lambda _: server, device="cpu", policy=terms, seed=3)
    assert result.outcome == ("suspect" if check == "benchmark.remembered" else "failed"), result.reason
    assert result.faults[0].check == check, result.reason
    assert result.details["roles"]["candidate"] != result.details["roles"]["champion"]


def test_the_honest_kernel_of_those_is_refused_by_none(server: Server) -> None:
    honest = subject(HONEST, goal=SMALL)
    result = measure(honest, honest, server_for=lambda _: server, device="cpu", policy=TERMS, seed=3)
    assert result.outcome == "inconclusive"
    assert result.faults == ()
    assert result.details["shapes"]["t4_n128"]["answers_checked"] >= 2 * TERMS.pairs
