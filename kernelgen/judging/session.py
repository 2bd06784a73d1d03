"""Judging several candidates one after another: the processes are shared, and each verdict is learned from at once.

The order is the promise: the verdict is appended, then what it teaches is derived from it. What a killed session had
not learned yet is learned at the beginning of the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kernelgen.catalog import Catalog
from kernelgen.config import Policy
from kernelgen.constraints.learned import in_use
from kernelgen.constraints.store import ConstraintFile, reconcile
from kernelgen.eventlog.chain import Row
from kernelgen.eventlog.store import EventLog
from kernelgen.generation.region import ConstraintRows
from kernelgen.judging.jobs import Rivals
from kernelgen.judging.judge import Ruling, append
from kernelgen.judging.learn import Learned, catch_up, learn
from kernelgen.judging.lessons import Regions
from kernelgen.judging.levels import Servers, Terms, climb
from kernelgen.judging.promotion import Promotion, promote
from kernelgen.judging.subjects import Judged
from kernelgen.ladder.results import Result
from kernelgen.ladder.work.jobs import Clock
from kernelgen.records import Level


@dataclass(frozen=True)
class Judgement:
    """A verdict and what it taught."""

    ruling: Ruling
    """The verdict."""
    learned: tuple[Learned, ...]
    """Constraints that it added or proposed."""
    promotion: Promotion | None = None
    """What came of it where L4 passed."""


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
        clock: Clock = "gpu",
        learned: bool = True,
    ) -> None:
        self.log, self.policy, self.rivals = log, policy, Rivals(log, catalog)
        self._constraints, self._servers = constraints, servers
        self._regions = Regions.of(catalog)
        self._seed, self._device, self._clock, self._learned = seed, device, clock, learned

    def catch_up(self) -> list[Learned]:
        """Learn what a killed session had not."""
        return catch_up(self.log, constraints=self._constraints, policy=self.policy, regions=self._regions)

    def judge(self, judged: Judged, upto: Level) -> Judgement:
        """One candidate's verdict, appended and learned from."""
        return self.add(judged, self.climb(judged, upto))

    def climb(self, judged: Judged, upto: Level) -> list[Result]:
        """The results of a candidate, not appended yet."""
        book = reconcile(ConstraintFile(self._constraints), ConstraintRows(self.log))
        terms = Terms(
            self.policy,
            in_use(book.active, learned=self._learned),
            self._servers,
            seed=self._seed,
            device=self._device,
            rivals=self.rivals,
            clock=self._clock,
        )
        return climb(judged, upto, terms)

    def add(self, judged: Judged, results: Sequence[Result]) -> Judgement:
        """Append the verdict of these results, and learn from it."""
        ruling = append(judged, results, self.log)
        learned = tuple(self.learn(ruling.row))
        return Judgement(ruling, learned, self.promotion(ruling.row))

    def promotion(self, row: Row) -> Promotion | None:
        """What came of a verdict whose L4 passed; None for any other."""
        return promote(row, log=self.log, constraints=self._constraints, policy=self.policy, regions=self._regions)

    def learn(self, row: Row) -> list[Learned]:
        """What a verdict's event teaches, added or proposed; nothing for what was learned before."""
        return learn(row, log=self.log, constraints=self._constraints, policy=self.policy, regions=self._regions)


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
    clock: Clock = "gpu",
    learned: bool = True,
) -> Iterator[Session]:
    """A session with processes of its own, caught up with the log.

    Without `learned` its rules are those that no verdict taught.
    """
    with Servers(contained=contained) as servers:
        made = Session(
            log, constraints, catalog, policy, servers, seed=seed, device=device, clock=clock, learned=learned
        )
        made.catch_up()
        yield made
