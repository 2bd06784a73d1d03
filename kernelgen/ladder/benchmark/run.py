"""All shapes of a measuring in turn, in three processes, until a side fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from kernelgen.ladder.benchmark import judgement
from kernelgen.ladder.benchmark.bench import Bench, Mode
from kernelgen.ladder.benchmark.judgement import Measured
from kernelgen.ladder.benchmark.said import Failing, NotCapturable, Role
from kernelgen.ladder.benchmark.seat import Seat
from kernelgen.ladder.benchmark.surroundings import build_digests
from kernelgen.ladder.benchmark.terms import Terms3
from kernelgen.ladder.containment.limits import DEFAULT, Limits
from kernelgen.ladder.correctness.level import HOST_COPIES, SESSION_S, server_kind
from kernelgen.ladder.results import Fault
from kernelgen.ladder.server import Server
from kernelgen.ladder.subject import Shapes, Subject
from kernelgen.targets.code import TargetCode


@dataclass
class Found:
    """What one measuring found, as far as it came."""

    shapes: list[Measured] = field(default_factory=list)
    """Shapes that were measured."""
    failing: Failing | None = None
    """The side that failed, and how."""
    faults: dict[str, Fault] = field(default_factory=dict)
    """What speaks against the candidate, by check."""
    notes: list[str] = field(default_factory=list)
    """What a reader should know."""
    builds: dict[str, list[str]] = field(default_factory=dict)
    """Digests of what was built, by role."""
    mode: Mode = "calls"
    """How calls were made."""
    memory: str = "host"
    """What the processes share."""


class Run:
    """One measuring of some shapes."""

    def __init__(
        self,
        sides: dict[Role, Subject],
        libraries: dict[Role, Path],
        code: TargetCode,
        shapes: Shapes,
        server_for: Callable[[str], Server],
        device: str,
        terms: Terms3,
        seed: int,
    ) -> None:
        self.sides, self.code, self.device, self.terms, self.seed = sides, code, device, terms, seed
        self.recipe = terms.recipe_on(device)
        self.environment: dict[str, str] = {}
        self._libraries, self._shapes, self._server_for = libraries, shapes, server_for

    def measured(self) -> Found:
        """By CUDA graphs on a GPU; by plain calls, all of it, where a side's calls cannot be captured."""
        if self.device == "cpu":
            return self._all("calls")
        try:
            return self._all("graph")
        except NotCapturable as why:
            found = self._all("calls")
            found.notes.append(f"calls of both sides were timed without a CUDA graph, host time included: {why}")
            return found

    def seat(self, role: Role) -> Seat:
        """Start the process of a role."""
        subject = self.sides.get(role)
        kind = server_kind(subject or replace(self.sides["candidate"], dsl="triton"), self.device)
        server = self._server_for(kind)
        self.environment |= server.environment
        return Seat(
            role,
            subject,
            self.sides["candidate"],
            server,
            device=self.device,
            limits=self._limits(subject),
            library=self._libraries.get(role),
        )

    def _limits(self, subject: Subject | None) -> Limits:
        """What a process may use; a GPU's kernels are compiled there."""
        if self.device == "cpu":
            return replace(DEFAULT, seconds=SESSION_S)
        largest = max(self.code.bytes_moved(dims) for dims in self._shapes.values())
        memory_bytes = DEFAULT.memory_bytes + HOST_COPIES * int(largest)
        is_library = subject is not None and subject.dsl == "cuda"
        return replace(DEFAULT, seconds=SESSION_S, memory_bytes=memory_bytes, exec_allowed=not is_library)

    def _all(self, mode: Mode) -> Found:
        """Every shape, until a side fails."""
        found = Found(mode=mode)
        bench = Bench(
            self.sides["candidate"],
            self.code,
            self.seat,
            device=self.device,
            terms=self.terms,
            seed=self.seed,
            mode=mode,
        )
        try:
            with bench:
                found.memory = bench.memory
                for name, dims in self._shapes.items():
                    found.shapes.append(self._shape(bench, name, dims))
                self._close(bench, found)
        except Failing as failing:
            found.failing = failing
        found.notes += [*bench.notes, *dict.fromkeys(note for seat in bench.seats.values() for note in seat.notes)]
        return found

    def _shape(self, bench: Bench, name: str, dims: dict[str, int]) -> Measured:
        shape = bench.begin(name, dims, self.terms.pairs)
        pairs = [bench.pair() for _ in range(shape.pairs)]
        bench.finish(pairs)
        bytes_of = self.code.bytes_of
        moved = self.code.bytes_moved(dims) if bytes_of is None else bytes_of(bench.first.inputs)
        return judgement.measured(shape, pairs, self.terms.confidence, moved, self.code.flops(dims))

    def _close(self, bench: Bench, found: Found) -> None:
        """Digests of what was built, suspicions, and what the candidate's process tried that it may not."""
        for role, seat in bench.seats.items():
            if role != "blank":
                found.builds[role] = build_digests(seat.session.folder)
        found.faults |= bench.seats["candidate"].suspicions
        attempts = bench.close().get("candidate")
        if attempts:
            reason = f"the candidate tried to {', to '.join(attempts)}, which it may not"
            found.faults["process.reached_out"] = Fault("process.reached_out", reason)
