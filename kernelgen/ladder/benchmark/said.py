"""What passes between a timed process and the judge: roles, blocks, what is said of them, and how a side fails."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import torch

from kernelgen.ladder.correctness.calls import Answer
from kernelgen.ladder.correctness.tensors import bytes_of
from kernelgen.ladder.results import Fault

Role = Literal["candidate", "champion", "blank"]
Outputs = tuple[torch.Tensor, ...]
NOTHING_SOURCE = """\
import triton


@triton.jit
def nothing_kernel(pointer):
    pass


def nothing(**inputs):
    nothing_kernel[(1,)](next(value for value in inputs.values() if hasattr(value, "data_ptr")))
    return ()
"""


class Failing(Exception):
    """A side failed; `fault` says how, `role` which."""

    def __init__(self, role: Role, fault: Fault) -> None:
        super().__init__(fault.reason)
        self.role = role
        self.fault = fault


class NotCapturable(Exception):
    """A side's calls cannot be captured in a CUDA graph; the message says why."""


class Said(Answer):
    """An answer with figures."""

    def figure(self, name: str) -> float:
        """A finite number, or 0."""
        value = self._fields.get(name)
        return float(value) if isinstance(value, int | float) and math.isfinite(value) else 0.0

    def numbers(self, name: str) -> list[Any]:
        """A list of whatever."""
        value = self._fields.get(name)
        return value if isinstance(value, list) else []


@dataclass(frozen=True)
class Block:
    """A block of calls as the judge saw it."""

    wall_s: float
    """By the judge's clock, from the request to the judge's own copy of an answer."""
    said_us: float
    """By the events in the process, its calls alone."""
    outputs: Outputs
    """The judge's copy of one answer."""


def same(one: Outputs, other: Outputs) -> bool:
    """Whether two answers are the same bit for bit."""
    return all(
        torch.equal(bytes_of(first.contiguous()), bytes_of(second.contiguous()))
        for first, second in zip(one, other, strict=True)
    )
