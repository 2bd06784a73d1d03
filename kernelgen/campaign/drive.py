"""Does the next thing that the log of a campaign lacks, until it is over or waits for verdicts.

Verdicts before bundles, bundles before ends, and every candidate that was asked for is judged before another is. What
comes next is read from the log each time, so it makes no difference where an earlier process was killed. Where the GPU
is elsewhere, candidates climb to L2 here, and no answer of a round waits for verdicts.
"""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from kernelgen.campaign import ends, rounds, told
from kernelgen.campaign.recorded import Recorded
from kernelgen.campaign.settings import Campaign
from kernelgen.campaign.summary import learned_of
from kernelgen.campaign.view import Generation, View, number_of, read_view, verdict_of
from kernelgen.errors import GenerationError, LogError, ModelError, Refused
from kernelgen.eventlog.chain import Row
from kernelgen.eventlog.store import EventLog
from kernelgen.generation.models import open_model
from kernelgen.generation.prepare import prepare
from kernelgen.generation.recover import recover
from kernelgen.generation.several import ONE_ANSWER, run_all
from kernelgen.generation.workspace import Resolved
from kernelgen.judging.session import Session
from kernelgen.judging.subjects import Judged, Place, find
from kernelgen.ladder.work.jobs import Clock
from kernelgen.lm import OverBudget
from kernelgen.records import Level

LOST_IN_A_ROW = 3
"""Requests without any answer, one after another, after which a person should look at the model's door."""
NO_SEED = ("playbook", "anthropic")
"""Doors that take no sampling seed."""
PLAYBOOK = "playbook"
EVERY_ATTEMPT = 1000
"""Attempts that the playbook is told of: it remembers by its prompt alone, and would try again what is not in it."""
LOCK = ".campaign"


@dataclass(frozen=True)
class Tools:
    """What a campaign works with."""

    resolved: Resolved
    """Configs of every generation, and the catalog."""
    session: Session
    """Judges, for the log and the constraint file."""
    level: Level
    """How far a candidate climbs here."""
    out: Path
    """Where bundles go."""
    clock: Clock = "gpu"
    """`cpu` tries the measurements without a GPU."""
    recorded: Recorded | None = None
    """Verdicts that were brought back before."""
    refresh: Callable[[EventLog], str | None] | None = None
    """Takes a profile of the champion where the latest one shows another kernel, and says so; None without a GPU."""


@contextmanager
def alone(log: Path, target: str, hardware: str) -> Iterator[None]:
    """Hold other campaigns of the region back. Raises Refused where one runs."""
    path = log.with_name(f"{log.name}{LOCK}.{target}.{hardware}")
    try:
        file = path.open("a")
    except OSError as error:
        raise LogError(f"{path} cannot be written: {error.strerror}.") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Refused(f"A campaign of {target} on {hardware} is running in another process.") from error
        yield


class Driver:
    """Drives one campaign."""

    def __init__(self, campaign: Campaign, tools: Tools) -> None:
        self._campaign, self._tools = campaign, tools
        self._session, self._log = tools.session, tools.session.log
        self._config = tools.resolved.config
        self._per_iteration = self._config.policy.candidates_per_iteration
        self._in_rounds = campaign.settings.gpu == "bundle"
        self._lost = 0

    def drive(self) -> Iterator[told.Told]:
        """Go on with the campaign; ends with what it waits for, or with its end."""
        for sentence in recover(self._log):
            yield told.Note(f"recovered: {sentence}")
        yield from self._returned(read_view(self._log, self._campaign))
        while True:
            view = read_view(self._log, self._campaign)
            unjudged = view.unjudged()
            if unjudged:
                yield self._judge(unjudged[0], view)
                continue
            if view.waiting():
                found = list(self._answered(view))
                yield from found
                if not any(isinstance(one, told.Judged) for one in found):
                    yield self._waiting(view)
                    return
                continue
            end = ends.over(self._log, view, self._config)
            if end is None:
                going = rounds.ready(view, self._session) if self._in_rounds else []
                if len(going) < self._campaign.settings.round_size:
                    end = ends.nothing_to_ask(self._log, view, self._config, self._tools.resolved.catalog.approach)
                    if end is None:
                        yield from self._ask(view)
                        continue
                if going:
                    yield from self._send(view, going)
                    continue
            assert end is not None  # a full round has somebody to send
            self._log.append_all((event, ()) for event in ends.events_of(view, end))
            yield told.Ended(end.cause, end.why)
            return

    def _ask(self, view: View) -> list[told.Told]:
        """One request for the rest of an iteration's candidates, or for one where the door has one answer."""
        said: list[told.Told] = []
        if self._tools.refresh is not None and (sentence := self._tools.refresh(self._log)) is not None:
            said.append(told.Note(sentence))
        resolved = self._request(view)
        prepared = prepare(resolved, self._log)
        model = open_model(prepared.config.lm, self._log)
        for result in run_all(prepared, log=self._log, model=model, out=resolved.workspace.out):
            if isinstance(result, GenerationError):
                said.append(told.NoCandidate(prepared.ask.approach.number, str(result)))
                self._count_lost(result)
            else:
                self._lost = 0
        return said

    def _count_lost(self, error: GenerationError) -> None:
        """Raises the error where no model has answered for some time; the campaign stays open."""
        is_lost = isinstance(error, ModelError) and not isinstance(error, OverBudget)
        self._lost = self._lost + 1 if is_lost else 0
        if self._lost == LOST_IN_A_ROW:
            raise error

    def _request(self, view: View) -> Resolved:
        """The configs of the next request; a seed moves on with every generation, so that samples differ."""
        resolved, config = self._tools.resolved, self._config
        door, seed, overrides = config.lm.door, self._campaign.settings.seed, [*resolved.overrides]
        left = self._per_iteration - view.counted % self._per_iteration
        changes: dict[str, object] = {"n": 1 if door in ONE_ANSWER else left}
        if seed is not None and door not in NO_SEED:
            changes["lm"] = config.lm.model_copy(update={"seed": seed + view.counted})
            overrides.append(f"lm.seed={seed + view.counted}")
        if door == PLAYBOOK and config.policy.attempts_shown < EVERY_ATTEMPT:
            changes["policy"] = config.policy.model_copy(update={"attempts_shown": EVERY_ATTEMPT})
            overrides.append(f"policy.attempts_shown={EVERY_ATTEMPT}")
        marked = (*overrides, self._campaign.mark)
        return replace(resolved, config=config.model_copy(update=changes), overrides=marked)

    def _find(self, one: Generation) -> Judged:
        catalog = self._tools.resolved.catalog
        return find(one.id, Place(self._log, catalog, self._config.hardware))

    def _judge(self, one: Generation, view: View) -> told.Judged:
        """A candidate's verdict, as far as it is judged here."""
        judgement = self._session.judge(self._find(one), self._tools.level)
        learned = tuple(learned.constraint.id for learned in judgement.learned)
        promotion = None if judgement.promotion is None else judgement.promotion.sentence
        return self._tell(one, view, judgement.ruling.row, learned, promotion)

    def _tell(
        self, one: Generation, view: View, row: Row, learned: tuple[str, ...], promotion: str | None
    ) -> told.Judged:
        assert one.candidate is not None
        verdict = verdict_of(row).verdict
        last = verdict.levels[-1]
        return told.Judged(
            number=number_of(one, view.generations, self._per_iteration),
            iteration_id=one.id,
            state=one.asked.state,
            hypothesis=one.candidate.hypothesis,
            outcome=last.outcome,
            level=last.level,
            reason=last.reason,
            ratio=verdict.speedup,
            learned=learned,
            promotion=promotion,
        )

    def _answered(self, view: View) -> Iterator[told.Told]:
        """Verdicts of the last round that were recorded."""
        if self._tools.recorded is None:
            return
        by_id = {one.id: one for one in view.candidates}
        for taken in rounds.take(view, self._tools.recorded, self._session):
            if taken.row is None or taken.iteration_id is None:
                yield told.Note(f"a recorded verdict of {taken.iteration_id} was refused: {taken.refused}")
                continue
            promotion = self._session.promotion(taken.row)
            learned = tuple(learned.constraint.id for learned in taken.learned)
            said = None if promotion is None else promotion.sentence
            yield self._tell(by_id[taken.iteration_id], view, taken.row, learned, said)

    def _send(self, view: View, going: list[Generation]) -> Iterator[told.Told]:
        """Bundle what is ready."""
        judged = [self._find(one) for one in going]
        made = rounds.write(view, judged, self._tools.out, self._session, self._tools.clock)
        for one in () if made is None else made.left_out:
            yield told.Note(f"kept back {one.iteration_id}: {one.why}")

    def _waiting(self, view: View) -> told.Waiting:
        last = view.rounds[-1]
        return told.Waiting(last.round, last.folder, tuple(one.id for one in view.waiting()), len(last.candidates))

    def _returned(self, view: View) -> Iterator[told.Told]:
        """The last round's verdicts, where `kernelgen ingest` brought them since."""
        came_back = view.came_back_last()
        if not came_back or view.waiting() or view.generations[-1].seq > view.sent_at:
            return
        learned = learned_of(self._log, view)
        for one in came_back:
            row = one.verdicts[-1]
            promotion = self._session.promotion(row)
            said = None if promotion is None else promotion.sentence
            yield self._tell(one, view, row, learned.get(row.id, ()), said)
