"""Which calls L2 makes, and in what order: plain data, from the target and where it runs.

On a CPU, through the interpreter: every smoke shape with every kind and edge shapes, plain; then the smallest timed
shape and an autotuned kernel's other configurations, as far as a budget goes. On a GPU: smoke, edge and timed shapes
with every kind, as far as memory goes. Order is drawn from the seed, so that no call is known to be the first or the
last of its kind.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Literal

import torch

from kernelgen.ladder.subject import Goal
from kernelgen.targets.extents import extent
from kernelgen.targets.findings import Dims

Group = Literal["smoke", "edge", "tune", "rescaled"]
# seconds for what is checked beside smoke and edge shapes, on a CPU
BUDGET_S = 5.0


@dataclass(frozen=True)
class Case:
    """One set of inputs a candidate is called on."""

    shape: str
    """Name of the shape."""
    dims: Dims
    """Its dimensions."""
    kind: str
    """Kind of the inputs."""
    group: Group
    """Where the shape comes from; `rescaled`: a smoke shape whose plain inputs are scaled by the judge."""

    @property
    def place(self) -> str:
        """The case in words."""
        rescaled = ", scaled by row and with a late spike" if self.group == "rescaled" else ""
        dims = ", ".join(f"{name}={extent}" for name, extent in self.dims.items())
        return f"shape {self.shape} ({dims}), {self.kind} inputs{rescaled}"


@dataclass(frozen=True)
class Plan:
    """The calls of one verdict."""

    thorough: Case
    """Checked with changed contents, repeated, and with failing kernels."""
    cases: tuple[Case, ...]
    """Checked in any case, in order."""
    timed: tuple[Case, ...]
    """Timed shapes that are no part of `cases`, smallest first: the first is checked where the budget allows it."""
    budget_s: float | None
    """Seconds for that one and the other configurations with the smoke shapes; None where there is neither."""


def plan_for(goal: Goal, device: str, seed: int, budget_s: float = BUDGET_S) -> Plan:
    """The plan of a target on `cpu` or `cuda`."""
    draw = random.Random(seed)
    plain = goal.kinds[0]
    smoke = [Case(shape, dims, kind, "smoke") for shape, dims in goal.smoke.items() for kind in goal.kinds]
    # the largest one that is cheap: a tiny answer may be right by luck
    shape, dims = list(goal.smoke.items())[-1]
    thorough = Case(shape, dims, plain, "smoke")
    required = [case for case in smoke if case != thorough] + [Case(shape, dims, plain, "rescaled")]
    edge = [Case(name, extents, plain, "edge") for name, extents in goal.edge.items()]
    if device == "cpu":
        required += edge
        draw.shuffle(required)
        timed = [Case(name, extents, plain, "tune") for name, extents in goal.tune.items()]
        timed.sort(key=lambda case: size_of(goal, case))
        return Plan(thorough, tuple(required), tuple(timed), budget_s)
    draw.shuffle(required)
    kinds = goal.kinds
    edge = [Case(name, extents, kind, "edge") for name, extents in goal.edge.items() for kind in kinds]
    tune = [Case(name, extents, kind, "tune") for name, extents in goal.tune.items() for kind in kinds]
    draw.shuffle(edge)
    return Plan(thorough, (*required, *edge, *tune), (), None)


def size_of(goal: Goal, case: Case) -> int:
    """Bytes of a case's inputs and outputs together."""
    total = 0
    for _, dtype, shape in (*goal.inputs, *goal.outputs):
        nbytes: int = getattr(torch, dtype).itemsize
        for part in shape:
            nbytes *= extent(part, case.dims)
        total += nbytes
    return total
