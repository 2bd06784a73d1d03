"""A prepared generation as texts of the log, and read back from them."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from kernelgen.candidates import TargetBinding
from kernelgen.config import Approach, Frozen, GenerateConfig
from kernelgen.constraints.select import select
from kernelgen.errors import LogError
from kernelgen.eventlog.store import EventLog
from kernelgen.events import ConstraintAdded, GenerationRequested
from kernelgen.generation.prepare import Prepared
from kernelgen.ids import canonical_json, digest_text
from kernelgen.records import (
    Ask,
    Champion,
    Constraint,
    HardwareBrief,
    Parts,
    Position,
    Profile,
    Program,
    PullRequest,
    Scope,
    TargetBrief,
    to_text,
)

Noun = TypeVar("Noun", bound=Frozen)
Messages = list[dict[str, str]]

PARTS: dict[str, type[Frozen]] = {
    "target": TargetBrief,
    "hardware": HardwareBrief,
    "approach": Approach,
    "profile": Profile,
    "champion": Champion,
    "position": Position,
    "pr": PullRequest,
    "parts": Parts,
}
BINDING = "binding"


def requested(
    prepared: Prepared,
    *,
    iteration_id: str,
    messages: Messages,
    model: str,
    parameters: dict[str, object],
    versions: dict[str, str],
    out: Path,
) -> tuple[GenerationRequested, list[str]]:
    """The event of a prepared generation and the texts it refers to."""
    ask, config = prepared.ask, prepared.config
    parts = {name: to_text(value) for name in PARTS if (value := getattr(ask, name)) is not None}
    parts[BINDING] = to_text(prepared.binding)
    config_text, program_text = to_text(config), to_text(prepared.program)
    selection_text = to_text(ask.selection)
    set_text, messages_text = canonical_json(list(prepared.constraint_set)), canonical_json(messages)
    event = GenerationRequested(
        iteration_id=iteration_id,
        target=ask.target.name,
        hardware=ask.hardware.name,
        state=ask.approach.number,
        chosen_by=ask.position.chosen_by,
        lm=config.lm.name,
        program_name=prepared.program.name,
        config=digest_text(config_text),
        overrides=prepared.overrides,
        constraint_set=digest_text(set_text),
        selection=digest_text(selection_text),
        ask={name: digest_text(text) for name, text in parts.items()},
        program=digest_text(program_text),
        messages=digest_text(messages_text),
        model=model,
        parameters=canonical_json(parameters),
        versions=canonical_json(versions),
        out=str(out),
    )
    return event, [config_text, program_text, set_text, selection_text, messages_text, *parts.values()]


class LogReader:
    """Reads prepared generations back. Texts seen before are not parsed again: most are shared by many generations."""

    def __init__(self, log: EventLog) -> None:
        self.log = log
        self._constraints: dict[str, Constraint] = {}
        self.noun = lru_cache(maxsize=512)(self._noun)
        self._selection = lru_cache(maxsize=64)(self._select)

    def prepared(self, event: GenerationRequested) -> Prepared:
        """Everything the generation depended on, its selection made again from the logged constraints."""
        config = self.noun(GenerateConfig, event.config)
        parts = {name: self.noun(PARTS[name], ref) for name, ref in event.ask.items() if name in PARTS}
        approach = parts["approach"]
        assert isinstance(approach, Approach)
        scope = (event.target, event.hardware, approach.dsl, approach.number)
        ids, selection = self._selection(
            event.constraint_set, scope, config.policy.constraint_tokens, config.policy.encoding
        )
        return Prepared(
            config=config,
            overrides=event.overrides,
            ask=Ask.model_construct(selection=selection, **{"pr": None, "parts": None, **parts}),
            program=self.noun(Program, event.program),
            binding=self.noun(TargetBinding, event.ask[BINDING]),
            constraint_set=ids,
        )

    def _noun(self, noun: type[Noun], ref: str) -> Noun:
        try:
            return noun.model_validate_json(self.log.text(ref))
        except ValidationError as error:
            raise LogError(
                f"The logged {noun.__name__} {ref[:19]}… cannot be read by this version of kernelgen; replay it with "
                "the version the generation names."
            ) from error

    def _select(self, ref: str, scope: tuple[str, str, str, int], budget: int, encoding: str):  # type: ignore[no-untyped-def]
        ids = tuple(json.loads(self.log.text(ref)))
        target, hardware, dsl, number = scope
        where = Scope.model_validate({"target": target, "hardware": hardware, "dsl": dsl, "state": number})
        return ids, select(self._records(ids), where, budget=budget, encoding=encoding)

    def _records(self, ids: tuple[str, ...]) -> list[Constraint]:
        if any(name not in self._constraints for name in ids):
            for row in self.log.rows(kinds=("constraint_added",)):
                assert isinstance(row.event, ConstraintAdded)
                self._constraints[row.event.constraint.id] = row.event.constraint
        missing = [name for name in ids if name not in self._constraints]
        if missing:
            raise LogError(
                f"The log has no constraint {missing[0]}, which a generation used; `kernelgen log verify` says more."
            )
        return [self._constraints[name] for name in ids]
