"""Runs the real ladder on a subject, level by level, as far as no GPU is needed.

The servers are started when first needed and shared by all subjects of a run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import TracebackType

from kernelgen.ladder.benchmark import Terms3, confirm, measure
from kernelgen.ladder.compile import compile_candidate
from kernelgen.ladder.correctness import check_correctness
from kernelgen.ladder.loader import compile_loaded
from kernelgen.ladder.policy import examine
from kernelgen.ladder.results import Result
from kernelgen.ladder.server import Server
from kernelgen.ladder.subject import Subject

TIMEOUT_S = 60.0
TERMS = Terms3(pairs=4, shape_s=30.0)
SEED = 3
SIMILARITY = 0.9
LOADED = re.compile(r'r"""(.*?)"""', re.DOTALL)
REFUSED = ("failed", "suspect")


class Ladder:
    """The levels on the CPU; a context manager."""

    def __init__(self) -> None:
        self._servers: dict[str, Server] = {}

    def __enter__(self) -> Ladder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        while self._servers:
            self._servers.popitem()[1].close()

    def server(self, kind: str) -> Server:
        """The server of a kind."""
        if kind not in self._servers:
            self._servers[kind] = Server(kind)
        return self._servers[kind]

    def judge(self, subject: Subject, known: Mapping[str, str] | None = None) -> list[Result]:
        """The results of the levels in order, the last one the first that refuses."""
        results = [examine(subject, allow=(), deny=(), known=known or {}, similarity=SIMILARITY)]
        if not refused(results[-1]):
            results.append(self.compile(subject))
        if not refused(results[-1]):
            results.append(self.correctness(subject))
        return results

    def compile(self, subject: Subject) -> Result:
        """What L1 says; of CUDA source in a loader, as for other people's candidates."""
        if subject.dsl == "cuda" and subject.language == "python":
            return compile_loaded(subject, LOADED.findall(subject.source), server_for=self.server, timeout_s=TIMEOUT_S)
        return compile_candidate(subject, server_for=self.server, timeout_s=TIMEOUT_S)

    def correctness(self, subject: Subject, device: str = "cpu") -> Result:
        """What L2 alone says: no policy was asked, and nothing compiled."""
        return check_correctness(subject, server_for=self.server, device=device, seed=None, timeout_s=TIMEOUT_S)

    def benchmark(self, subject: Subject, champion: Subject, *, held_out: bool) -> Result:
        """What L3 says on a CPU's clock, or L4 on held-out shapes; the champion is the honest twin."""
        judge = confirm if held_out else measure
        server = self.server("interpreter")
        return judge(subject, champion, server_for=lambda _: server, device="cpu", policy=TERMS, seed=SEED)


def refused(result: Result) -> bool:
    """Whether a candidate goes no further by itself."""
    return result.outcome in REFUSED


def checks_of(result: Result) -> tuple[str, ...]:
    """Ids of the checks that a result rests on."""
    return tuple(fault.check for fault in result.faults)
