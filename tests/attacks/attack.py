"""What a file of the corpus states: the cheat, its honest twin, the judge it fools and the level that must refuse it.

A file is named after its id in the list of known kinds (README.md) and holds `ATTACKS`, a cheat for each face of the
kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from kernelgen.ladder.subject import Goal, Subject

Level = Literal["target", "header", "L0", "L1", "L2", "L3", "L4"]
CLOSED_LOOP = ("L3", "L4")
PORT = "SOLVER_PORT"
"""In a cheat, the port of `solver.Solver`, which is known when it runs."""


@dataclass(frozen=True)
class Naive:
    """The kind of judge that the cheat is made for; the defaults are the commonest."""

    shape: str | None = None
    """Shape it judges at; None for the first timed one."""
    reference_first: bool = True
    """Whether the expected outputs are there before the candidate is called."""
    compare: Literal["allclose", "norm", "worst", "counted", "own test"] = "allclose"
    """allclose with rtol = atol = 1e-2; the relative norm; `not worst > limit`; a count of errors; the file's test."""
    believes: Literal["printed", "exit code", "token", "pipe"] = "printed"
    """What its caller takes for the verdict."""
    times: Literal["calls", "adaptive"] = "calls"
    """A fixed number of calls, or as many as fit a budget by the first."""
    input_sets: int = 1
    """Sets of inputs made beforehand, handed out in turn while it times."""
    trials: int = 1
    """Correctness is checked on that many draws from torch's global generator, in place of one of its own."""
    rereads: bool = False
    """Whether it reads tolerance and reference from its folder only when it compares."""
    runs: int = 1
    """It is started that often in the same folder, and the last run counts."""
    tries: int = 1
    """It is asked up to that often until it accepts, where a cheat needs luck."""


@dataclass(frozen=True)
class Attack:
    """One way to win without earning it, and the honest candidate that looks like it."""

    id: str
    """Id of the kind, as in `A2`."""
    face: str
    """Which face of it, in a few words."""
    level: Level
    """The lowest level that must refuse it; `target` is the target's own check, `header` what a judge verb checks."""
    checks: tuple[str, ...]
    """Beginnings of the check ids of which the refusal has one."""
    goal: Goal
    """What it claims to compute."""
    cheat: str
    """The candidate that cheats."""
    twin: str
    """The honest one."""
    naive: Naive = field(default_factory=Naive)
    """The judge that accepts the cheat."""
    faster: bool = False
    """Whether the naive judge also measures it as faster than its twin."""
    past_policy: tuple[str, ...] | None = None
    """Where L0 refuses it: beginnings of the check ids by which L2 alone refuses it; None where L2 cannot see it."""
    wins_nothing: bool = False
    """Whether no level refuses it: what it does reaches nothing, and the verdict is what its honest part earns."""
    gpu: bool = False
    """Whether it needs a GPU to win."""
    seen_on_gpu: bool = False
    """Whether the level that refuses it needs a GPU to see it."""
    dsl: Literal["triton", "tilelang", "cuda"] = "triton"
    """What compiles it."""
    language: Literal["python", "cuda"] = "python"
    """How it is written."""
    known: Mapping[str, str] = field(default_factory=dict)
    """Sources that it must not be a copy of, by name."""
    entry_point: str | None = None
    """Name of the host function; None where it is the target's."""

    @property
    def name(self) -> str:
        """Id and face as one word, for tests and tables."""
        return f"{self.id}-{'-'.join(self.face.split())}"

    @property
    def closed_loop(self) -> bool:
        """Whether only the benchmark or the promotion can refuse it."""
        return self.level in CLOSED_LOOP

    def asking(self, port: int) -> str:
        """The cheat, its solver listening on this port."""
        return str.replace(self.cheat, PORT, str(port))

    def subject(self, source: str) -> Subject:
        """Its cheat or its twin as the ladder takes it."""
        return Subject(
            name="candidate",
            language=self.language,
            dsl=self.dsl,
            source=source,
            preamble="",
            entry_point=self.entry_point or self.goal.name,
            goal=self.goal,
        )
