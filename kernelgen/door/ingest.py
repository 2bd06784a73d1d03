"""`kernelgen ingest`: the verdicts that a bundle's worker wrote on another machine, checked and appended."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kernelgen.door.arguments import Grammar, parse
from kernelgen.door.console import coloured_outcome, complain, emit, warn
from kernelgen.door.judge import policy_of
from kernelgen.door.regions import hardware_of
from kernelgen.errors import BadInput
from kernelgen.eventlog.store import EventLog
from kernelgen.events import VerdictReached
from kernelgen.generation.inputs import read_text
from kernelgen.judging.ingest import Taken, ingest
from kernelgen.judging.promotion import Promotion
from kernelgen.judging.session import session

GRAMMAR = Grammar(groups=("policy",))
EXAMPLE = "kernelgen ingest verdicts.jsonl"


def run(argv: Sequence[str]) -> int:
    """Ingest every file named; exit code 1 when a line is refused."""
    arguments = parse(argv, GRAMMAR)
    if not arguments.words:
        raise BadInput(f"kernelgen ingest needs the file that a worker wrote, as in `{EXAMPLE}`.")
    texts = {word: read_text(Path(word), "file of verdicts") for word in arguments.words}
    _, catalog = hardware_of(arguments)
    refused = 0
    with (
        EventLog.open(arguments.place("events"), create=False) as log,
        session(log, arguments.place("constraints"), catalog, policy_of(arguments)) as judging,
    ):
        for word, text in texts.items():
            for taken in ingest(text.split("\n"), judging):
                refused += taken.refused is not None
                if taken.refused is not None and not arguments.as_json:
                    complain(f"{word}, line {taken.number}: {taken.refused}")
                else:
                    promoted = None if taken.row is None else judging.promotion(taken.row)
                    emit(_record(word, taken), _text(taken, promoted), as_json=arguments.as_json)
    return 1 if refused else 0


def _record(word: str, taken: Taken) -> dict[str, Any]:
    """What became of a line, for a program."""
    record: dict[str, Any] = {
        "file": word,
        "line": taken.number,
        "iteration_id": taken.iteration_id,
        "refused": taken.refused,
        "is_new": taken.is_new,
        "learned": [learned.constraint.id for learned in taken.learned],
    }
    if taken.row is None:
        return record
    event = _event(taken)
    return {**record, "verdict": taken.row.id, "highest": event.highest, "speedup": event.verdict.speedup}


def _text(taken: Taken, promoted: Promotion | None) -> str:
    """A taken line for a person."""
    event = _event(taken)
    last = event.verdict.levels[-1]
    head = f"{event.iteration_id}: {last.level} {coloured_outcome(last.outcome)}: {last.reason}"
    if not taken.is_new:
        return f"{warn('known')} {head}"
    lines = [head, *(f"  {learned.sentence()}" for learned in taken.learned)]
    return "\n".join(lines if promoted is None else [*lines, f"  {promoted.sentence}"])


def _event(taken: Taken) -> VerdictReached:
    assert taken.row is not None
    assert isinstance(taken.row.event, VerdictReached)
    return taken.row.event
