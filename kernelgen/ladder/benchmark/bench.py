"""Three timed processes at one shape after another: candidate, champion, and one with no call in its blocks.

The third one's blocks are taken from the others': flush, requests and copies cost the same everywhere, and no process
that runs a candidate can make what is subtracted larger. Every block ends with an answer that is checked; sets of
inputs are made anew for each pair, as far as time goes, and written to a side just before its block.
"""

from __future__ import annotations

import functools
import math
import random
import statistics
import time
from collections.abc import Callable
from types import TracebackType
from typing import Literal

from kernelgen.ladder.benchmark.answers import Checker
from kernelgen.ladder.benchmark.contents import SEEDS, Maker
from kernelgen.ladder.benchmark.pairs import LEAST_S, Pair, Shape
from kernelgen.ladder.benchmark.said import Block, Failing, Role
from kernelgen.ladder.benchmark.seat import CALL, NOTHING, WARM_CALL, WARM_NOTHING, Seat
from kernelgen.ladder.benchmark.terms import Recipe, Terms3
from kernelgen.ladder.correctness.checks import Expected
from kernelgen.ladder.subject import Subject
from kernelgen.targets.code import TargetCode
from kernelgen.targets.findings import Dims

Mode = Literal["graph", "calls"]
Open = Callable[[Role], Seat]
SIDES: tuple[Role, ...] = ("candidate", "champion", "blank")
PILOTS, PILOT_CALLS = 2, 8


class Bench:
    """The three processes; a context manager."""

    def __init__(
        self, subject: Subject, code: TargetCode, seats: Open, *, device: str, terms: Terms3, seed: int, mode: Mode
    ) -> None:
        """Args: candidate, target, how to start a process, device, terms, seed of inputs and order, how to call."""
        self.mode, self.memory = mode, "host"
        self.notes: list[str] = []
        self.recipe: Recipe = terms.recipe_on(device)
        self._subject, self._code, self._device, self._terms = subject, code, device, terms
        self._draw = random.Random(seed)
        self._open = seats
        self.seats: dict[Role, Seat] = {}
        self._done, self._per_set = 0, 1

    def __enter__(self) -> Bench:
        try:
            for role in SIDES:
                self.seats[role] = seat = self._open(role)
                seat.patience.left_s = seat.patience.seconds = self._terms.shape_s
                seat.prepare()
            self._share()
            for seat in self.seats.values():
                seat.load()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> dict[Role, tuple[str, ...]]:
        """End the processes; what each tried that it may not, by role."""
        return {role: seat.session.close().attempts for role, seat in self.seats.items()}

    def begin(self, name: str, dims: Dims, pairs: int) -> Shape:
        """Begin a shape: first inputs and calls, rounds prepared, numbers fixed for so many pairs. Raises Failing."""
        goal = self._subject.goal
        self.shape = shape = Shape(name, dims)
        outputs = [output for output, _, _ in goal.outputs]
        self.maker = Maker(self._code, outputs, name, dims, goal.kinds[0], self._device)
        self._checker = Checker(self._code, goal, self._device)
        first = self.first = self._fresh()
        for role, seat in self.seats.items():
            seat.patience.left_s = self._terms.shape_s
            seat.reveal(first)
            said, answer = seat.warm(first)
            shape.setup_s[role] = said.figure("seconds")
            if role != "blank":
                again = functools.partial(seat.again, CALL, 0)
                self._checker.first(role, first, said, answer, again, self.recipe.settle_s)
        self._choose_calls()
        self._choose_rounds(pairs)
        self._choose_sets()
        return shape

    def pair(self) -> Pair:
        """One block of each side. Raises Failing."""
        if self._done and self._done % self._per_set == 0:
            self._set = self._fresh()
        self._done += 1
        order = list(SIDES)
        self._draw.shuffle(order)
        blocks = {role: self._block(role, self._set) for role in order}
        return Pair(
            {role: block.wall_s for role, block in blocks.items()},
            {role: block.said_us / 1e6 for role, block in blocks.items()},
        )

    def finish(self, pairs: list[Pair]) -> None:
        """What is measured once a shape: calls on unchanged contents, an empty kernel, what speaks against a side."""
        shape, blank_s = self.shape, statistics.median(pair.walls["blank"] for pair in pairs)
        counts = shape.calls * shape.rounds
        if not shape.far:
            walls = [self._block("candidate", self._set, delta=0).wall_s for _ in range(self.recipe.probes)]
            shape.unchanged_s = max(LEAST_S, (max(walls) - blank_s) / counts)
        walls = [self._block("blank", self._set, name=CALL).wall_s for _ in range(self.recipe.probes)]
        shape.launch_s = max(0.0, (statistics.median(walls) - blank_s) / counts)
        if self.recipe.flush_bytes and not shape.far:
            shape.warm_s = self._warm_s(counts)
        candidate = self.seats["candidate"]
        self.maker.write(candidate.shared, self._fresh(), rounds=0, call=0, delta=0)
        candidate.settle()
        candidate.twice()
        for role in ("candidate", "champion"):
            seat = self.seats[role]
            seat.look()
            if seat.chosen:
                shape.chosen[role] = seat.chosen

    def _warm_s(self, counts: int) -> float:
        """Time of a call of the candidate that no flush precedes."""
        names: dict[Role, str] = {"candidate": WARM_CALL, "blank": WARM_NOTHING}
        walls = {}
        for role, name in names.items():
            self._capture(role, name)
            blocks = [self._block(role, self._set, name=name) for _ in range(self.recipe.probes)]
            walls[role] = min(block.wall_s for block in blocks)
        return max(LEAST_S, (walls["candidate"] - walls["blank"]) / counts)

    def _capture(self, role: Role, name: str) -> None:
        steps = [step.as_list() for step in self.maker.steps]
        self.seats[role].capture(name, steps, self.recipe.flush_bytes, graph=self.mode == "graph")

    def _share(self) -> None:
        """Whether all sides can map the judge's GPU memory."""
        if self._device == "cpu":
            return
        reasons = [reason for reason in (seat.try_sharing() for seat in self.seats.values()) if reason]
        self.memory = "host" if reasons else "device"
        for seat in self.seats.values():
            seat.memory = self.memory
        if reasons:
            self.notes.append(f"GPU memory cannot be shared here ({reasons[0]}): the clock stops at the process' word")

    def _fresh(self) -> Expected:
        self.shape.sets += 1
        return self.maker.fresh(self._draw.randrange(SEEDS))

    def _choose_calls(self) -> None:
        """Fix the calls of a round by the champion's time, which the candidate cannot change, and prepare them."""
        recipe = self.recipe
        room = max(1, recipe.answer_bytes // max(1, sum(output.nbytes for output in self.first.outputs)))
        most = min(recipe.calls, int(room))
        self._prepare(min(most, PILOT_CALLS))
        if self._device == "cpu":
            return
        whole_s = self._usual("champion") / (self.shape.calls * self.shape.rounds)
        calls = max(1, min(most, int(recipe.block_s / (recipe.rounds * whole_s))))
        if calls != self.shape.calls:
            self._prepare(calls)

    def _prepare(self, calls: int) -> None:
        """Prepare rounds of so many calls; of one on a CPU, where contents cannot change between calls."""
        self.maker.choose_steps(calls, self._draw)
        if not self.maker.changes and self._device == "cpu":
            self.maker.choose_steps(1, self._draw)
        self.shape.calls, self.shape.rounds = len(self.maker.steps), self.recipe.rounds
        for role in SIDES:
            for name in (CALL, NOTHING) if role == "blank" else (CALL,):
                self._capture(role, name)

    def _choose_rounds(self, pairs: int) -> None:
        """Fix the rounds of a block by the champion's time; few rounds and pairs for a candidate that is far slower."""
        recipe, shape = self.recipe, self.shape
        blank_s, champion_s, candidate_s = (self._usual(role) for role in ("blank", "champion", "candidate"))
        call_s = max(LEAST_S, (champion_s - blank_s) / (shape.calls * recipe.rounds))
        shape.far = (candidate_s - blank_s) > recipe.far * max(LEAST_S, champion_s - blank_s)
        shape.pairs = min(pairs, recipe.far_pairs) if shape.far else pairs
        if recipe.call_s and not shape.far:
            wanted = math.ceil(recipe.call_s / (call_s * shape.calls))
            shape.rounds = max(recipe.rounds, min(wanted, int(recipe.block_s * recipe.rounds / champion_s)))

    def _usual(self, role: Role) -> float:
        """Seconds of a block, the first of which may be slow."""
        return min(self._block(role, self.first).wall_s for _ in range(PILOTS))

    def _choose_sets(self) -> None:
        """How many pairs share a set of inputs, so that making them takes no more time than it may."""
        began = time.perf_counter()
        self._set = self._fresh()
        cost_s = time.perf_counter() - began
        sets = max(self.recipe.sets, min(self.shape.pairs, int(self.recipe.renewal_s / max(cost_s, LEAST_S))))
        self._per_set, self._done = max(1, math.ceil(self.shape.pairs / sets)), 0

    def _block(self, role: Role, expected: Expected, *, name: str | None = None, delta: int = 1) -> Block:
        """A block of a side with its answer checked: of calls, or of none for the blank one, if nothing is named."""
        seat, rounds = self.seats[role], self.shape.rounds
        name = name or (NOTHING if role == "blank" else CALL)
        call = self._draw.randrange(self.shape.calls)
        self.maker.write(seat.shared, expected, rounds=rounds, call=call, delta=delta)
        block = seat.block(name, rounds, call, delta=delta)
        if role != "blank":
            self.shape.checked += 1
            again = functools.partial(seat.again, name, call)
            fault = self._checker.wrong(role, expected, block.outputs, again, self.recipe.settle_s)
            if fault is not None:
                raise Failing(role, fault)
        return block
