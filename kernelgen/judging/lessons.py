"""What a logged verdict teaches, made again from its event and the stored source alone.

Any verdict gives the same lessons whenever it is asked, so what is learned of it can be learned late, and what came of
it can be found again when it proves wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Self

from kernelgen import champions
from kernelgen.catalog import Catalog
from kernelgen.config import Dsl, Hardware, Target
from kernelgen.constraints.distil import Judged, Lesson, lessons
from kernelgen.constraints.facts import NO_TABLE, facts_before_compiling
from kernelgen.constraints.measured import MEASURED
from kernelgen.errors import BadInput
from kernelgen.eventlog.chain import Row
from kernelgen.eventlog.store import EventLog
from kernelgen.events import VerdictReached
from kernelgen.generation.region import named_champion, retracted_verdicts
from kernelgen.records import Champion
from kernelgen.targets.code import champion_source


def _unknown(_: str) -> str | None:
    return None


@dataclass(frozen=True)
class Regions:
    """Looks up what a verdict names; None for what no config describes any more."""

    target: Callable[[str], Target | None]
    """A target by name."""
    hardware: Callable[[str], Hardware | None]
    """A hardware by name."""
    naive: Callable[[str], str | None] = _unknown
    """Source of a target's naive champion by the target's name."""

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

        def naive(name: str) -> str | None:
            try:
                found, located = catalog.target(name)
                return champion_source(found.champion, located.folder)
            except BadInput:
                return None

        return cls(target, hardware, naive)


def taught(row: Row, log: EventLog, regions: Regions) -> list[Lesson]:
    """The lessons of a verdict; none of an outside problem, or where no config describes its hardware any more."""
    event = row.event
    assert isinstance(event, VerdictReached)
    failed, hardware, target = event.verdict.failed(), regions.hardware(event.hardware), regions.target(event.target)
    if hardware is None or event.origin == "problem":
        return []
    if failed is None or failed.level in MEASURED:
        from kernelgen.judging.trials import measured_lessons

        return measured_lessons(row, log, regions)
    # rules are made of L0's and L1's failures alone
    source = None if event.source is None or failed.level == "L2" else log.text(event.source)
    dsl = dsl_of(event, source)
    dtypes = {} if target is None else {tensor.name: tensor.dtype for tensor in target.inputs}
    facts = [] if source is None else facts_before_compiling(source, NO_TABLE, dsl, arch=hardware.arch, dtypes=dtypes)
    return lessons(failed, Judged(event.target, hardware, dsl, facts))


def standing(log: EventLog, *, after: int = 0) -> Iterator[Row]:
    """Every verdict that was not retracted, oldest first."""
    gone = retracted_verdicts(log)
    return (row for row in log.rows(kinds=("verdict_reached",), after=after) if row.id not in gone)


def champion_now(log: EventLog, target: str, hardware: str, regions: Regions) -> Champion | None:
    """The kernel to beat; None where it is the naive one and no config has that."""
    found = named_champion(log, target, hardware)
    described, source = regions.target(target), regions.naive(target)
    if found is not None or described is None or source is None:
        return found
    return champions.naive(target, hardware, described.entry_point, source)


def dsl_of(event: VerdictReached, source: str | None) -> Dsl:
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
