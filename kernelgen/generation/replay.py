"""Makes a logged generation again from the logged records alone, and compares every byte with what was logged.

Rebuilt are the selection of constraints, the messages of every attempt, the parsed reply or the reason it could not be
used, and the candidate's files; where the file still lies in its out folder it is compared too. The first difference
is named with its line and column. Nothing is asked of a model and nothing is written.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from kernelgen.errors import LogError, ReplyError
from kernelgen.eventlog.chain import Row
from kernelgen.eventlog.store import EventLog
from kernelgen.events import CandidateGenerated, Event, GenerationFailed, GenerationRequested, ReplyReceived
from kernelgen.generation.logged import LogReader, Messages
from kernelgen.generation.prepare import Prepared
from kernelgen.generation.run import configs_text, files_of, followups
from kernelgen.ids import canonical_json, digest_text
from kernelgen.prompt import assemble, reply
from kernelgen.records import Reply, to_text


@dataclass(frozen=True)
class Replayed:
    """What a replay found."""

    iteration_id: str
    """The generation."""
    ended: str
    """How it had ended: candidate, failed or unfinished."""
    compared: int
    """Texts compared byte for byte."""
    difference: str | None
    """The first difference in a sentence; None when every byte is equal."""


_OF_THE_REPLY = ("unusable_reply", "empty_reply")
"""Causes of a failure that are a parser's word on the reply."""


class _Differs(Exception):
    pass


class Replayer:
    """Replays generations of one log; texts that generations share are read once."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._reader = LogReader(log)

    def replay(self, iteration_id: str, rows: list[Row] | None = None) -> Replayed:
        """One generation. Raises LogError for an id the log has no request of."""
        events = [row.event for row in (self._log.iteration(iteration_id) if rows is None else rows)]
        asked = requested(events, iteration_id)
        generated = next((e for e in events if isinstance(e, CandidateGenerated)), None)
        ended = "candidate" if generated else "unfinished"
        if any(isinstance(e, GenerationFailed) for e in events):
            ended = "failed"
        failed = next((e for e in events if isinstance(e, GenerationFailed)), None)
        comparison = _Comparison(self._log, self._reader, asked)
        try:
            comparison.prompt()
            comparison.replies([e for e in events if isinstance(e, ReplyReceived)], generated, failed)
        except (_Differs, LogError) as difference:
            return Replayed(iteration_id, ended, comparison.compared, str(difference))
        return Replayed(iteration_id, ended, comparison.compared, None)


def requested(events: Iterable[Event], iteration_id: str) -> GenerationRequested:
    """The request among a generation's events. Raises LogError for an id that has none."""
    for event in events:
        if isinstance(event, GenerationRequested):
            return event
    raise LogError(f"The log has no generation {iteration_id}; `kernelgen log` lists them.")


class _Comparison:
    def __init__(self, log: EventLog, reader: LogReader, asked: GenerationRequested) -> None:
        self._log, self._reader, self._asked = log, reader, asked
        self._prepared: Prepared
        self.compared = 0
        self._messages: Messages = []

    def prompt(self) -> None:
        self._prepared = self._reader.prepared(self._asked)
        self._same_text("the selection of constraints", self._asked.selection, to_text(self._prepared.ask.selection))
        self._messages = assemble.messages(self._prepared.ask, self._prepared.program)
        self._same_messages("the prompt", self._asked.messages, self._messages)

    def replies(
        self,
        received: list[ReplyReceived],
        generated: CandidateGenerated | None,
        failed: GenerationFailed | None,
    ) -> None:
        unusable: list[tuple[str, str]] = []
        for event in received:
            asked = [*self._messages, *followups(unusable)]
            self._same_messages(f"the messages of attempt {event.attempt}", event.messages, asked)
            text = self._log.text(event.text)
            try:
                parsed = reply.parse(text, self._prepared.ask, finish_reason=event.finish_reason)
            except ReplyError as error:
                if generated is not None and generated.attempt == event.attempt:
                    raise _Differs(f"the reply parsed when it was logged, now: {error.reason}") from error
                unusable.append((text, error.reason))
                continue
            if generated is not None and generated.attempt == event.attempt:
                self._candidate(generated, text, parsed)
            elif generated is not None or failed is not None:
                raise _Differs(
                    f"the reply of attempt {event.attempt} could not be used when it was logged, and parses now"
                )
        if unusable and failed is not None and failed.cause in _OF_THE_REPLY and unusable[-1][1] not in failed.reason:
            raise _Differs(f"why the reply cannot be used differs: logged {failed.reason!r}, now {unusable[-1][1]!r}")

    def _candidate(self, generated: CandidateGenerated, text: str, parsed: Reply) -> None:
        self._equal("the hypothesis", generated.hypothesis, parsed.hypothesis)
        self._equal("the autotune configs", generated.configs, configs_text(parsed))
        self._equal("the honoured constraints", " ".join(generated.honoured), " ".join(parsed.honoured))
        overridden = " ".join(override.id for override in parsed.overrides)
        self._equal("the constraints set aside", " ".join(generated.overridden), overridden)
        files = files_of(self._prepared, self._asked, text, parsed)
        self._equal("the files' names", " ".join(generated.files), " ".join(file.path for file in files))
        for file in files:
            self._same_text(file.path, generated.files[file.path], file.text)
            self._on_disk(Path(generated.out) / file.path, file.text)

    def _on_disk(self, path: Path, text: str) -> None:
        try:
            found = path.read_bytes().decode("utf-8", "replace")
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise _Differs(f"the file {path} cannot be read: {error.strerror}") from error
        self._equal(f"the file {path}", text, found)

    def _same_messages(self, what: str, logged: str, now: Messages) -> None:
        self.compared += 1
        if logged != digest_text(canonical_json(now)):
            raise _Differs(first_difference(what, _readable(json.loads(self._log.text(logged))), _readable(now)))

    def _same_text(self, what: str, logged: str, now: str) -> None:
        self.compared += 1
        if logged != digest_text(now):
            raise _Differs(first_difference(what, self._log.text(logged), now))

    def _equal(self, what: str, logged: str, now: str) -> None:
        self.compared += 1
        if logged != now:
            raise _Differs(first_difference(what, logged, now))


def _readable(messages: Messages) -> str:
    """Messages as a person reads them, so that a difference has a line."""
    return "\n".join(f"{message['role']}:\n{message['content']}" for message in messages)


def first_difference(what: str, logged: str, now: str) -> str:
    """A sentence with the first line and column at which two texts differ."""
    for number, (before, after) in enumerate(zip_longest(logged.split("\n"), now.split("\n")), start=1):
        if before == after:
            continue
        if before is None or after is None:
            return f"{what} differs at line {number}: {'logged text' if after is None else 'text now'} goes on"
        column = next((i for i, pair in enumerate(zip_longest(before, after)) if pair[0] != pair[1]), 0)
        start = max(0, column - 20)
        return (
            f"{what} differs at line {number}, column {column + 1}: "
            f"logged {before[start : column + 20]!r}, now {after[start : column + 20]!r}"
        )
    return f"{what} differs"
