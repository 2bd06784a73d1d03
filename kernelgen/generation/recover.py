"""Finishes generations whose process was killed: nothing that was paid for is lost, nothing is asked twice.

A run's lock file outlives a kill. What the log has of the run decides: a reply that parses becomes its candidate, a
logged candidate whose file is missing gets it, and what was killed before a usable reply is recorded as interrupted.
"""

from __future__ import annotations

from pathlib import Path

from kernelgen import candidates
from kernelgen.errors import BadInput, LogError, ReplyError
from kernelgen.eventlog.runs import abandoned
from kernelgen.eventlog.store import EventLog
from kernelgen.events import CandidateGenerated, GenerationFailed, GenerationRequested, ReplyReceived
from kernelgen.generation.logged import LogReader
from kernelgen.generation.run import finish
from kernelgen.prompt import reply
from kernelgen.records import CandidateFile


def recover(log: EventLog) -> list[str]:
    """Finish every abandoned run; returns a sentence for each that the log knows.

    One that cannot be finished is told and holds up neither the others nor the next generation.
    """
    told = []
    with abandoned(log.path) as iteration_ids:
        for iteration_id in list(iteration_ids):
            try:
                sentence = _finish(log, iteration_id)
            except LogError as error:
                sentence = f"{iteration_id} cannot be finished now, and is left for the next run: {error}"
                iteration_ids.remove(iteration_id)
            except BadInput as error:
                sentence = (
                    f"{iteration_id} cannot be finished: {error} `kernelgen log show {iteration_id}` has its text."
                )
            if sentence:
                told.append(sentence)
    return told


def _finish(log: EventLog, iteration_id: str) -> str | None:
    events = [row.event for row in log.iteration(iteration_id)]
    asked = next((e for e in events if isinstance(e, GenerationRequested)), None)
    if asked is None or any(isinstance(e, GenerationFailed) for e in events):
        return None
    generated = next((e for e in events if isinstance(e, CandidateGenerated)), None)
    if generated is not None:
        files = [CandidateFile(path=path, text=log.text(ref)) for path, ref in generated.files.items()]
        candidates.write_files(Path(generated.out), files)
        return f"{iteration_id} was killed before its file was written; it is there now."
    replies = [e for e in events if isinstance(e, ReplyReceived)]
    if not replies:
        return _interrupted(log, asked, "killed before the model answered; generate again")
    return _from_reply(log, asked, replies[-1])


def _from_reply(log: EventLog, asked: GenerationRequested, last: ReplyReceived) -> str:
    prepared = LogReader(log).prepared(asked)
    answer = log.text(last.text)
    try:
        parsed = reply.parse(answer, prepared.ask, finish_reason=last.finish_reason)
    except ReplyError as error:
        return _interrupted(log, asked, f"killed after a reply that cannot be used ({error.reason}); generate again")
    finish(prepared, asked, answer, last.attempt, parsed, log=log)
    return f"{asked.iteration_id} was killed after its reply; its candidate is written now, from the logged reply."


def _interrupted(log: EventLog, asked: GenerationRequested, reason: str) -> str:
    log.append(
        GenerationFailed(
            iteration_id=asked.iteration_id,
            target=asked.target,
            hardware=asked.hardware,
            state=asked.state,
            cause="interrupted",
            reason=reason,
        )
    )
    return f"{asked.iteration_id} was {reason}."
