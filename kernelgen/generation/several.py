"""Candidates of one prepared prompt: one, or `n` asked for at the same time, each an iteration of its own.

Each has its own thread, its own connection to the log and its own run lock, so that one that fails leaves the others
as they are. With lm.seed set, they take that seed and the next ones, and each logs its own.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

from kernelgen.errors import ConfigError, GenerationError, HarnessError, KernelgenError, Refused
from kernelgen.eventlog.store import EventLog
from kernelgen.events import GenerationRefused
from kernelgen.generation.allowance import Allowance
from kernelgen.generation.models import Model
from kernelgen.generation.prepare import Prepared
from kernelgen.generation.run import Outcome, run

ONE_ANSWER = ("playbook", "recorded")
"""Doors that have one answer to one prompt."""

Result = Outcome | GenerationError
"""What became of one candidate; an error is logged."""


def run_all(prepared: Prepared, *, log: EventLog, model: Model, out: Path) -> list[Result]:
    """Ask for `n` candidates and wait for all of them; the results in the order of their seeds.

    Raises ConfigError for n > 1 of a door that has one answer; Refused, logged, when the budget is used up already;
    LogError or HarnessError, after the others ended, when one of them met it.
    """
    config = prepared.config
    if config.n > 1 and config.lm.door in ONE_ANSWER:
        raise ConfigError(
            f"n={config.n} asks one prompt {config.n} times, and lm={config.lm.name} has one answer to it; set n=1, or "
            "choose a model that samples."
        )
    allowance = Allowance(config.lm)
    _refuse_over_budget(prepared, log, allowance)
    if config.n == 1:
        return [_one(prepared, log, model, out, allowance)]
    found: dict[int, Result | KernelgenError] = {}

    def work(number: int) -> None:
        try:
            with EventLog.open(log.path, create=False) as own:
                found[number] = _one(*_numbered(prepared, model, number, log=own), out, allowance)
        except KernelgenError as error:
            found[number] = error

    # daemons, so that an interrupt ends the process at once; `recover` finishes what the log has by then
    threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(config.n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [_result(found.get(number)) for number in range(config.n)]


def _one(prepared: Prepared, log: EventLog, model: Model, out: Path, allowance: Allowance) -> Result:
    try:
        return run(prepared, log=log, model=model, out=out, allowance=allowance)
    except GenerationError as error:
        return error


def _numbered(prepared: Prepared, model: Model, number: int, *, log: EventLog) -> tuple[Prepared, EventLog, Model]:
    """What the candidate with this number is asked with."""
    seed = prepared.config.lm.seed
    if seed is None:
        return prepared, log, model
    seeded = model.seeded(seed + number)
    return replace(prepared, config=prepared.config.model_copy(update={"lm": seeded.config})), log, seeded


def _result(found: Result | KernelgenError | None) -> Result:
    if found is None:
        raise HarnessError("A candidate ended without a result; the traceback above says where, please report it.")
    if isinstance(found, KernelgenError) and not isinstance(found, GenerationError):
        raise found
    return found


def _refuse_over_budget(prepared: Prepared, log: EventLog, allowance: Allowance) -> None:
    reason = allowance.refusal(log)
    if reason is None:
        return
    log.append(
        GenerationRefused(
            target=prepared.ask.target.name,
            hardware=prepared.ask.hardware.name,
            state=prepared.ask.approach.number,
            reason=reason,
            overrides=prepared.overrides,
        )
    )
    raise Refused(reason)
