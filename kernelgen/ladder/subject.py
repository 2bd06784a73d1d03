"""What is judged: a candidate's source and the target it claims to compute, as plain data.

The ladder gets this and nothing else. `source` is the model's part alone: kernelgen's header, constants and test are
never part of it and never reach the process that runs it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kernelgen.targets.findings import Dims, Spec

Shapes = dict[str, Dims]


@dataclass(frozen=True)
class Goal:
    """The part of a target, on one hardware, that the ladder needs."""

    name: str
    """The target's name."""
    module: str
    """Its Python: a dotted name, or `file.py` in `folder`. The parent loads it, never the candidate's process."""
    folder: str | None
    """Where that file is."""
    inputs: tuple[Spec, ...]
    """Name, dtype and shape of each tensor passed, in order."""
    scalars: dict[str, str]
    """`float` or `int` by the name of each number passed."""
    outputs: tuple[Spec, ...]
    """Name, dtype and shape of each tensor returned, in order."""
    smoke: Shapes
    """Tiny shapes: for the interpreter."""
    edge: Shapes
    """Odd and boundary sizes, small enough for a CPU."""
    tune: Shapes
    """Timed shapes."""
    heldout: Shapes
    """Shapes only L4 sees."""
    kinds: tuple[str, ...]
    """Kinds of inputs; the first is the plain one."""
    exact_kinds: tuple[str, ...]
    """Those whose right answer has no rounding at all."""
    tolerance: dict[str, tuple[float, float]]
    """rtol and atol by output."""
    deterministic: bool
    """Whether two runs on the same inputs must agree bit for bit."""
    instructions: tuple[str, ...]
    """Machine instructions of which an honest kernel has at least one, such as `QGMMA`; empty for no demand."""
    arch: str
    """Compiler target, as in `sm_90a`."""
    compute_capability: int
    """As Triton counts it: 90 for Hopper."""
    shared_bytes_per_block: int
    """Shared memory a block can have at most."""


@dataclass(frozen=True)
class Subject:
    """One candidate."""

    name: str
    """Its id, or a file's stem; for messages, never told to the candidate."""
    language: Literal["python", "cuda"]
    """How the source is written."""
    dsl: Literal["triton", "tilelang", "cuda"]
    """What compiles it."""
    source: str
    """The model's part, or a user's whole file."""
    preamble: str
    """kernelgen's lines that the source refers to and that stand above it, the table of configurations; or empty."""
    entry_point: str
    """Name of the host function, or of the launcher in CUDA C++."""
    goal: Goal
    """What it claims to compute."""
