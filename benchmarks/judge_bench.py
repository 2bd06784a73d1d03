"""Times of the judge on a CPU: L0 of every play, L2 of every naive champion, and what a verdict costs beside its work.

L2 is the whole level through Triton's interpreter in a contained child: every smoke shape and kind, edge shapes, faults
injected. The cost beside a candidate's own work is a session opened, answered and closed on a server that is up.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable

from kernelgen.catalog import Catalog, shipped_conf
from kernelgen.judging.subjects import goal
from kernelgen.ladder import policy
from kernelgen.ladder.correctness import check_correctness
from kernelgen.ladder.server import Server
from kernelgen.ladder.subject import Subject
from kernelgen.playbook import library
from kernelgen.targets.code import champion_source

REPEATS = 5
SESSIONS = 10
TIMEOUT_S = 300.0
SEED = 1
# answers the first frame as the called side of L2 does, and has loaded nothing
JOB = "kernelgen.ladder.correctness.caller:serve"


def run() -> dict[str, object]:
    """All figures, in seconds."""
    champions, plays = _subjects()
    with Server("interpreter") as server:
        _session(server)  # from here on the server is up
        sessions = [_timed(lambda: _session(server)) for _ in range(SESSIONS)]
        l2 = {name: _l2(subject, server) for name, subject in champions.items()}
    l0 = {name: _l0(subject) for name, subject in plays.items()}
    return {
        "l0_largest_s": max(l0.values()),
        "l0_s": l0,
        "session_median_s": statistics.median(sessions),
        "session_worst_s": max(sessions),
        "l2_largest_s": max(l2.values()),
        "l2_s": l2,
    }


def _subjects() -> tuple[dict[str, Subject], dict[str, Subject]]:
    """Naive champions by target, and plays by target and name."""
    catalog = Catalog([shipped_conf()])
    hardware = catalog.hardware("h200")
    champions, plays = {}, {}
    for name in catalog.names("target"):
        target, located = catalog.target(name)
        asked = goal(target, hardware, target.module, None)

        naive = champion_source(target.champion, located.folder)
        champions[name] = Subject(name, "python", "triton", naive, "", target.entry_point, asked)
        plays |= {
            f"{name} {play.name}": Subject(play.name, "python", "triton", play.source, "", target.entry_point, asked)
            for play in library.plays(name)
        }
    return champions, plays


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return round(time.perf_counter() - started, 4)


def _l0(subject: Subject) -> float:
    return statistics.median(_timed(lambda: policy.examine(subject)) for _ in range(REPEATS))


def _session(server: Server) -> None:
    with server.open(JOB) as session:
        session.send({"do": "forget", "ticket": "1", "keep": "nothing"})
        session.receive(TIMEOUT_S)


def _l2(subject: Subject, server: Server) -> float:
    """Seconds of a champion's L2. Raises AssertionError where it does not pass."""
    started = time.perf_counter()
    result = check_correctness(subject, server=server, device="cpu", seed=SEED, timeout_s=TIMEOUT_S)
    assert result.outcome == "passed", f"{subject.name}: {result.reason}"
    return round(time.perf_counter() - started, 2)


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
