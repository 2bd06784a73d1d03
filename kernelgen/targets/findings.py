"""What a target's check is given and what it leaves: plain data, as JSON between two processes."""

from __future__ import annotations

from dataclasses import dataclass, field

# a line names this many faults, and counts the others
FAULTS_SHOWN = 2

Dims = dict[str, int]
Spec = tuple[str, str, list[str | int]]


@dataclass(frozen=True)
class Task:
    """What the check needs of a target's yaml."""

    module: str
    """The target's Python: a dotted name, or `file.py` in `folder`."""
    folder: str
    """Where the yaml lies."""
    inputs: list[Spec]
    """Name, dtype and shape of each tensor passed, in order."""
    scalars: dict[str, str]
    """`float` or `int` by the name of each number passed."""
    outputs: list[Spec]
    """Name, dtype and shape of each tensor returned, in order."""
    smoke: dict[str, Dims]
    """Tiny shapes: what is run here."""
    shapes: dict[str, Dims]
    """All shapes: what costs are counted at."""
    kinds: list[str]
    """Kinds of inputs."""
    tolerance: dict[str, tuple[float, float]]
    """rtol and atol by output."""


@dataclass
class Findings:
    """What was found, by check: how often it was made, and what was wrong."""

    made: dict[str, int] = field(default_factory=dict)
    """Number of times each check was made."""
    faults: dict[str, list[str]] = field(default_factory=dict)
    """Sentences by check."""

    def add(self, check: str, fault: str | None) -> None:
        """Note one making of a check; None where nothing was wrong."""
        self.made[check] = self.made.get(check, 0) + 1
        if fault is not None:
            self.faults.setdefault(check, []).append(fault)

    def lines(self) -> list[dict[str, str]]:
        """Each check with its name, status `passed` or `failed`, and a note."""
        return [self._line(check, count) for check, count in self.made.items()]

    def _line(self, check: str, count: int) -> dict[str, str]:
        faults = self.faults.get(check, [])
        if not faults:
            return {"name": check, "status": "passed", "note": f"{count} of {count}"}
        more = len(faults) - FAULTS_SHOWN
        note = "; ".join(faults[:FAULTS_SHOWN]) + (f"; and {more} more" if more > 0 else "")
        return {"name": check, "status": "failed", "note": note}


def raised(error: BaseException) -> str:
    """What a target's code raised, in a sentence."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
