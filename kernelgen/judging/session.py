"""Judging several candidates one after another: the processes are shared, and each verdict is learned from at once.

The order is the promise: the verdict is appended, then what it teaches is derived from it. What a killed session had
not learned yet is learned at the beginning of the next.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kernelgen.catalog import Catalog
from kernelgen.config import Policy
from kernelgen.constraints.store import ConstraintFile, reconcile
from kernelgen.eventlog.store import EventLog
from kernelgen.generation.region import ConstraintRows
from kernelgen.judging.judge import Ruling, judge
from kernelgen.judging.learn import Learned, catch_up, learn
from kernelgen.judging.lessons import Regions
from kernelgen.judging.levels import Servers, Terms
from kernelgen.judging.subjects import Judged
from kernelgen.records import Level


@dataclass(frozen=True)
class Judgement:
    """A verdict and what it taught."""

    ruling: Ruling
    """The verdict."""
    learned: tuple[Learned, ...]
    """Constraints that it added or proposed."""


class Session:
    """Judges for one log and one constraint file."""

    def __init__(
        self,
        log: EventLog,
        constraints: Path,
        catalog: Catalog,
        policy: Policy,
        servers: Servers,
        *,
        seed: int | None = None,
        device: str | None = None,
    ) -> None:
        self.log = log
        self._constraints, self._policy, self._servers = constraints, policy, servers
        self._regions = Regions.of(catalog)
        self._seed, self._device = seed, device

    def catch_up(self) -> list[Learned]:
        """Learn what a killed session had not."""
        return catch_up(self.log, constraints=self._constraints, policy=self._policy, regions=self._regions)

    def judge(self, judged: Judged, upto: Level) -> Judgement:
        """One candidate's verdict, appended and learned from."""
        book = reconcile(ConstraintFile(self._constraints), ConstraintRows(self.log))
        terms = Terms(self._policy, book.active, self._servers, seed=self._seed, device=self._device)
        ruling = judge(judged, upto, terms, self.log)
        learned = learn(
            ruling.row, log=self.log, constraints=self._constraints, policy=self._policy, regions=self._regions
        )
        return Judgement(ruling, tuple(learned))


@contextmanager
def session(
    log: EventLog,
    constraints: Path,
    catalog: Catalog,
    policy: Policy,
    *,
    contained: bool = True,
    seed: int | None = None,
    device: str | None = None,
) -> Iterator[Session]:
    """A session with processes of its own, caught up with the log."""
    with Servers(contained=contained) as servers:
        made = Session(log, constraints, catalog, policy, servers, seed=seed, device=device)
        made.catch_up()
        yield made
