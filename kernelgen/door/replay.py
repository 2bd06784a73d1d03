"""`kernelgen replay`: make logged generations again and compare every byte; with a model named, ask it anew."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from kernelgen.door.arguments import Arguments, Grammar, parse
from kernelgen.door.console import Progress, bad, emit, good
from kernelgen.errors import BadInput
from kernelgen.eventlog.chain import Row
from kernelgen.eventlog.store import EventLog
from kernelgen.events import GenerationRequested
from kernelgen.generation.replay import Replayed, Replayer, requested

GRAMMAR = Grammar(groups=("lm",), flags=("--all",))
KINDS = ("generation_requested", "reply_received", "candidate_generated", "generation_failed")
_SHOWN = 40
"""Up to so many generations each gets its line; of more only the differing ones do."""


def run(argv: Sequence[str]) -> int:
    """Exit code 1 when any generation differs."""
    arguments = parse(argv, GRAMMAR)
    everything = "--all" in arguments.flags
    if everything == bool(arguments.words) or (everything and arguments.overrides):
        raise BadInput("kernelgen replay takes one generation's ID, or --all; a model (lm=NAME) only with an ID.")
    if arguments.overrides:
        return _anew(arguments)
    with EventLog.read(arguments.place("events")) as log:
        replayer = Replayer(log)
        if everything:
            return _tell_all(log, replayer, as_json=arguments.as_json)
        iteration_id = log.find(arguments.word("an ID", "kernelgen replay g2026"))
        replayed = replayer.replay(iteration_id)
    emit(_record(replayed), _text(replayed), as_json=arguments.as_json)
    return 1 if replayed.difference else 0


def _tell_all(log: EventLog, replayer: Replayer, *, as_json: bool) -> int:
    total = sum(1 for _ in log.rows(kinds=("generation_requested",)))
    progress, results = Progress("replaying", total), []
    for iteration_id, rows in _generations(log):
        results.append(replayer.replay(iteration_id, rows))
        progress.step()
    differing = [result for result in results if result.difference]
    summary = f"{len(results)} generations replayed, {sum(r.compared for r in results)} texts compared: "
    summary += bad(f"{len(differing)} differ") if differing else good("every byte is equal")
    shown = results if len(results) <= _SHOWN else differing
    text = "\n".join([*(_text(result) for result in shown), summary])
    emit({"generations": [_record(result) for result in results], "differing": len(differing)}, text, as_json=as_json)
    return 1 if differing else 0


def _generations(log: EventLog) -> Iterator[tuple[str, list[Row]]]:
    """Every generation with its rows, oldest first; rows of concurrent ones are interleaved in the log."""
    rows: dict[str, list[Row]] = {}
    for row in log.rows(kinds=KINDS):
        if isinstance(row.event, GenerationRequested):
            rows[row.event.iteration_id] = []
        rows.setdefault(row.event.iteration_id, []).append(row)  # type: ignore[union-attr]
    yield from rows.items()


def _record(replayed: Replayed) -> dict[str, Any]:
    return {
        "iteration_id": replayed.iteration_id,
        "ended": replayed.ended,
        "compared": replayed.compared,
        "equal": replayed.difference is None,
        "difference": replayed.difference,
    }


def _text(replayed: Replayed) -> str:
    if replayed.difference:
        return f"{bad('differs')}  {replayed.iteration_id} ({replayed.ended}): {replayed.difference}"
    return f"{good('equal')}  {replayed.iteration_id} ({replayed.ended}): {replayed.compared} texts, every byte"


def _anew(arguments: Arguments) -> int:
    """The same prompt, asked of another model: a new generation that follows the logged one's request."""
    from dataclasses import replace

    from kernelgen import lm as doors
    from kernelgen.door import compose
    from kernelgen.door.generate import tell
    from kernelgen.generation.logged import LogReader
    from kernelgen.generation.models import open_model
    from kernelgen.generation.run import run as run_generation

    lm = compose.compose(arguments.overrides, arguments.config_dirs).config.lm
    doors.check(lm)
    with EventLog.open(arguments.place("events")) as log:
        iteration_id = log.find(arguments.word("an ID", "kernelgen replay g2026 lm=playbook"))
        logged = LogReader(log).prepared(requested((row.event for row in log.iteration(iteration_id)), iteration_id))
        overrides = (f"replay={iteration_id}", *arguments.overrides)
        config = logged.config.model_copy(update={"lm": lm, "n": 1})
        prepared = replace(logged, config=config, overrides=overrides)
        outcome = run_generation(prepared, log=log, model=open_model(lm, log), out=arguments.place("out"))
    tell(outcome, as_json=arguments.as_json)
    return 0
