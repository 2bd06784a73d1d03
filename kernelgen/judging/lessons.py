"""What a logged verdict teaches, made again from its event and the stored source alone.

Any verdict gives the same lessons whenever it is asked, so what is learned of it can be learned late, and what came of
it can be found again when it proves wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Self

from kernelgen.catalog import Catalog
from kernelgen.config import Dsl, Hardware, Target
from kernelgen.constraints.distil import Judged, Lesson, lessons
from kernelgen.constraints.facts import NO_TABLE, facts_before_compiling
from kernelgen.errors import BadInput
from kernelgen.eventlog.chain import Row
from kernelgen.eventlog.store import EventLog
from kernelgen.events import VerdictReached
from kernelgen.generation.region import retracted_verdicts

LEARNED_LEVELS = ("L0", "L1", "L2")


@dataclass(frozen=True)
class Regions:
    """Looks up what a verdict names; None for what no config describes any more."""

    target: Callable[[str], Target | None]
    """A target by name."""
    hardware: Callable[[str], Hardware | None]
    """A hardware by name."""

    @classmethod
    def of(cls, catalog: Catalog) -> Self:
        """Those of the configs."""

        def target(name: str) -> Target | None:
            try:
                return catalog.target(name)[0]
            except BadInput:
                return None

        def hardware(name: str) -> Hardware | None:
            try:
                return catalog.hardware(name)
            except BadInput:
                return None

        return cls(target, hardware)


def taught(row: Row, log: EventLog, regions: Regions) -> list[Lesson]:
    """The lessons of a verdict's event; none where no config describes its hardware any more."""
    event = row.event
    assert isinstance(event, VerdictReached)
    failed, hardware, target = event.verdict.failed(), regions.hardware(event.hardware), regions.target(event.target)
    if failed is None or failed.level not in LEARNED_LEVELS or hardware is None:
        return []
    # rules are made of L0's and L1's failures alone
    source = None if event.source is None or failed.level == "L2" else log.text(event.source)
    dsl = _dsl(event, source)
    dtypes = {} if target is None else {tensor.name: tensor.dtype for tensor in target.inputs}
    facts = [] if source is None else facts_before_compiling(source, NO_TABLE, dsl, arch=hardware.arch, dtypes=dtypes)
    return lessons(failed, Judged(event.target, hardware, dsl, facts))


def standing(log: EventLog, *, after: int = 0) -> Iterator[Row]:
    """Every verdict that was not retracted, oldest first."""
    gone = retracted_verdicts(log)
    return (row for row in log.rows(kinds=("verdict_reached",), after=after) if row.id not in gone)


def _dsl(event: VerdictReached, source: str | None) -> Dsl:
    """What compiled the candidate: as a level says, else by its source."""
    said = {result.environment.get("compiler") for result in event.verdict.levels}
    if "nvcc" in said:
        return "cuda"
    if "tilelang" in said or "triton" in said:
        return "tilelang" if "tilelang" in said else "triton"
    if source is None or "import triton" in source or "from triton" in source:
        return "triton"
    if "import tilelang" in source or "from tilelang" in source:
        return "tilelang"
    return "cuda" if "#include" in source or "__global__" in source else "triton"
