"""A configuration of an autotune space and what became of it, as plain data; imports nothing heavy."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from kernelgen.ladder.subject import Subject

Value = bool | int | float | str | None


@dataclass(frozen=True)
class Config:
    """One configuration of one kernel."""

    kernel: str
    """Name of the `@triton.jit` function."""
    kwargs: dict[str, Value]
    """Compile-time arguments."""
    num_warps: int = 4
    """Warps of a block."""
    num_stages: int = 3
    """Pipeline stages."""


@dataclass(frozen=True)
class Tried:
    """What became of one configuration."""

    config: Config
    """Which."""
    runs: bool
    """Whether it can run at every tune shape at which its kernel is launched."""
    check: str = ""
    """Id of the check that refuses it; empty where it runs."""
    why: str = ""
    """In a sentence, with the compiler's place; empty where it runs."""
    detail: str = ""
    """The compiler's words, uncut."""
    registers: int = 0
    """32-bit registers of a thread, at most over the shapes."""
    stack_bytes: int = 0
    """Local memory of a thread, at most."""
    shared_bytes: int = 0
    """Shared memory of a block, at most."""
    seconds: float = 0.0
    """Wall time."""


def key(subject: Subject, config: Config, versions: Mapping[str, str]) -> str:
    """Digest of what a result depends on: the source, the shapes, the configuration, the compiler, the card."""
    goal = subject.goal
    parts: list[Any] = [subject.preamble, subject.source, subject.entry_point, asdict(config), dict(versions)]
    parts += [goal.name, goal.tune, goal.smoke, goal.arch, goal.shared_bytes_per_block]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def tried_from(record: Mapping[str, Any]) -> Tried:
    """What `asdict` made of a `Tried`. Raises KeyError or TypeError for another form."""
    return Tried(**{**record, "config": Config(**record["config"])})
