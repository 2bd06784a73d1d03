"""What a level of the ladder found, as plain data that also crosses to machines without pydantic.

Every level is a function to a `Result`. A fault names its check by a dotted id that never changes its meaning, such as
`policy.clock`, `compile.shared_memory` or `correctness.values`: constraints, tables and tests refer to it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Outcome = Literal["passed", "failed", "suspect", "inconclusive"]
"""suspect: refused until a person looks at it; inconclusive: this machine cannot tell."""
Fact = bool | int | float | str


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong with a candidate."""

    check: str
    """Dotted id of the check that found it."""
    reason: str
    """In a sentence."""
    detail: str = ""
    """The decisive lines, uncut: a compiler's place, source and caret; a comparison's figures."""
    line: int | None = None
    """Line of the judged source, from 1, where it has one."""
    facts: dict[str, Fact] = field(default_factory=dict)
    """What a rule can be made of, keys as in `kernelgen.constraints.rules.FACTS`, `block.NAME` for a constexpr."""


@dataclass(frozen=True)
class Result:
    """What one level found."""

    level: Literal["L0", "L1", "L2", "L3", "L4"]
    """Which level."""
    outcome: Outcome
    """Whether the candidate may go on."""
    reason: str
    """In a sentence: the decisive fault, what is missing on this machine, or what was checked."""
    faults: tuple[Fault, ...] = ()
    """Everything that was found wrong, the decisive one first; empty where it passed."""
    notes: tuple[str, ...] = ()
    """What a reader should know beside: configurations pruned, a licence, a check that could not be made."""
    details: dict[str, Any] = field(default_factory=dict)
    """Figures by name, as JSON can hold them: builds of L1, worst elements of L2."""
    environment: dict[str, str] = field(default_factory=dict)
    """What it depends on: versions of compilers, the GPU, what contained the candidate."""
    seconds: float = 0.0
    """Wall time."""

    def as_dict(self) -> dict[str, Any]:
        """The result as JSON can hold it."""
        return asdict(self)


def result_from(record: dict[str, Any]) -> Result:
    """The result that `as_dict` wrote. Raises TypeError or KeyError for another form."""
    faults = tuple(Fault(**fault) for fault in record["faults"])
    return Result(**{**record, "faults": faults, "notes": tuple(record["notes"])})
