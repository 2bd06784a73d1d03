"""Asks the model for a prepared generation and makes a candidate of its answer.

The order is the promise: the request is logged before the model is asked, each reply before it is parsed, the candidate
with its whole text before its file is written. Killed between any two steps, `recover` finishes the rest from the log.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelgen import candidates
from kernelgen.errors import BadInput, GenerationError, KernelgenError, LogError, NoPlay, ReplyError
from kernelgen.eventlog.runs import RunLock
from kernelgen.eventlog.store import EventLog
from kernelgen.events import CandidateGenerated, GenerationFailed, GenerationRequested, ReplyReceived
from kernelgen.generation.allowance import Allowance
from kernelgen.generation.logged import Messages, requested
from kernelgen.generation.models import Model
from kernelgen.generation.prepare import Prepared
from kernelgen.ids import canonical_json, digest_text, new_id
from kernelgen.lm import OverBudget, Unanswered, UnusableReply, is_refusal
from kernelgen.prompt import assemble, reply
from kernelgen.records import Answer, CandidateFile, Reply


@dataclass(frozen=True)
class Outcome:
    """A candidate that was written."""

    iteration_id: str
    """Its id."""
    event: CandidateGenerated
    """What was logged of it."""
    files: tuple[Path, ...]
    """Where it lies, the candidate itself first."""
    left_out: tuple[str, ...]
    """Constraints that did not fit the budget."""
    constraints: int
    """Constraints injected, merged ones counted once."""
    constraint_tokens: int
    """Their tokens."""


def run(prepared: Prepared, *, log: EventLog, model: Model, out: Path, allowance: Allowance | None = None) -> Outcome:
    """One generation. Raises GenerationError (logged) when no candidate came of it.

    `allowance` is what several generations share of one budget; without it the generation reads the budget itself.
    """
    iteration_id = new_id("g")
    messages = assemble.messages(prepared.ask, prepared.program)
    with RunLock.acquire(log.path, iteration_id):
        event, texts = requested(
            prepared,
            iteration_id=iteration_id,
            messages=messages,
            model=model.config.model,
            parameters=model.parameters,
            versions=model.versions,
            out=out,
        )
        log.append(event, texts)
        failure: KernelgenError
        try:
            answer, attempt, parsed = _ask(prepared, event, log, model, allowance or Allowance(prepared.config.lm))
        except GenerationError as error:
            log.append(failed(event, error))
            failure = error
        else:
            try:
                return finish(prepared, event, answer, attempt, parsed, log=log)
            except LogError:
                raise
            except BadInput as error:  # the file cannot be written; the run is over, since the log has the text
                failure = BadInput(f"{error} The candidate is in the log: `kernelgen log show {iteration_id}`.")
    raise failure


def _ask(
    prepared: Prepared, event: GenerationRequested, log: EventLog, model: Model, allowance: Allowance
) -> tuple[str, int, Reply]:
    """Ask until a reply can be parsed, as often as the policy allows; returns the reply's text, attempt and parts."""
    unusable: list[tuple[str, str]] = []
    attempts = prepared.config.policy.reply_attempts
    for attempt in range(1, attempts + 1):
        received: list[Answer] = []

        def tap(asked: Messages, answer: Answer, attempt: int = attempt, received: list[Answer] = received) -> None:
            log.append(*received_event(event, attempt, asked, answer, model))
            received.append(answer)

        allowance.begin(log, event.iteration_id, attempt)
        try:
            parsed = model.ask(prepared, followups=followups(unusable), tap=tap)
        except ReplyError as error:
            answer = received[-1]
            if is_refusal(answer):
                raise UnusableReply(f"the model refused to give one ({error.reason})", answer) from error
            if attempt == attempts:
                raise UnusableReply(f"{error.reason} (asked {attempts} times)", answer) from error
            unusable.append((answer.text, error.reason))
        else:
            return received[-1].text, attempt, parsed
        finally:
            if not received:
                allowance.unanswered(event.iteration_id, attempt)
    raise AssertionError("policy.reply_attempts is at least one")


def followups(unusable: Iterable[tuple[str, str]]) -> Messages:
    """The messages that ask again: for each earlier reply its text, then the reason it could not be used."""
    asked: Messages = []
    for text, reason in unusable:
        asked += [{"role": "assistant", "content": text}, {"role": "user", "content": reply.reask(reason)}]
    return asked


def received_event(
    event: GenerationRequested, attempt: int, asked: Messages, answer: Answer, model: Model
) -> tuple[ReplyReceived, list[str]]:
    """The event of one raw reply, and its texts."""
    asked_text = canonical_json(asked)
    logged = ReplyReceived(
        iteration_id=event.iteration_id,
        target=event.target,
        hardware=event.hardware,
        attempt=attempt,
        messages=digest_text(asked_text),
        request_key=model.request_key(asked),
        text=digest_text(answer.text),
        model=answer.model,
        finish_reason=answer.finish_reason,
        usage=answer.usage,
    )
    return logged, [asked_text, answer.text]


def failed(event: GenerationRequested, error: GenerationError) -> GenerationFailed:
    """The event of a generation that ended without a candidate."""
    cause = "model_error"
    if isinstance(error, Unanswered | UnusableReply):
        cause = error.cause
    elif isinstance(error, NoPlay):
        cause = "no_play"
    elif isinstance(error, OverBudget):
        cause = "over_budget"
    return GenerationFailed.model_validate(
        {**_place(event), "iteration_id": event.iteration_id, "cause": cause, "reason": str(error)}
    )


def _place(event: GenerationRequested) -> dict[str, Any]:
    return {"target": event.target, "hardware": event.hardware, "state": event.state}


def files_of(prepared: Prepared, event: GenerationRequested, answer: str, parsed: Reply) -> list[CandidateFile]:
    """The candidate's files: a function of the logged records alone."""
    return candidates.build(
        event.iteration_id,
        prepared.ask,
        parsed,
        prompt_digest=event.messages,
        reply_digest=digest_text(answer),
        binding=prepared.binding,
    )


def finish(
    prepared: Prepared,
    event: GenerationRequested,
    answer: str,
    attempt: int,
    parsed: Reply,
    *,
    log: EventLog,
) -> Outcome:
    """Log the candidate with its text, then write its files where the request said."""
    out = Path(event.out)
    files = files_of(prepared, event, answer, parsed)
    selection = prepared.ask.selection
    generated = CandidateGenerated(
        **_place(event),
        iteration_id=event.iteration_id,
        attempt=attempt,
        hypothesis=parsed.hypothesis,
        configs=configs_text(parsed),
        honoured=parsed.honoured,
        overridden=tuple(override.id for override in parsed.overrides),
        left_out=len(selection.left_out),
        out=event.out,
        files={file.path: digest_text(file.text) for file in files},
    )
    log.append(generated, [file.text for file in files])
    candidates.write_files(out, files)
    return Outcome(
        iteration_id=event.iteration_id,
        event=generated,
        files=tuple(out / file.path for file in files),
        left_out=selection.left_out,
        constraints=len(selection.chosen),
        constraint_tokens=selection.tokens,
    )


def configs_text(parsed: Reply) -> str:
    """The autotune configs as canonical JSON, or empty text when there are none."""
    if not parsed.autotune:
        return ""
    return canonical_json({name: [c.model_dump() for c in configs] for name, configs in parsed.autotune.items()})
