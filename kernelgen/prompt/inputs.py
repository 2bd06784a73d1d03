"""The signature's inputs as plain records: an Ask taken apart for DSPy, and put together again. No DSPy here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from kernelgen.config import Approach, Frozen
from kernelgen.errors import BadInput
from kernelgen.records import (
    Ask,
    Champion,
    HardwareBrief,
    Parts,
    Position,
    Profile,
    PullRequest,
    Selection,
    TargetBrief,
)


class Task(Frozen):
    """What to write and how: the inputs that [STATE VECTOR] and [TASK] tell."""

    target: TargetBrief
    """The region and its interface."""
    approach: Approach
    """The state's approach."""
    pr: PullRequest | None = None
    """State 4's pull request."""
    parts: Parts | None = None
    """State 5's parts."""


INPUTS: dict[str, type[Frozen]] = {
    "hardware": HardwareBrief,
    "constraints": Selection,
    "profile": Profile,
    "champion": Champion,
    "position": Position,
    "task": Task,
}
"""The signature's input fields and their types, in the prompt's order."""


def inputs_of(ask: Ask) -> dict[str, Any]:
    """The request as the signature's inputs."""
    return {
        "hardware": ask.hardware,
        "constraints": ask.selection,
        "profile": ask.profile,
        "champion": ask.champion,
        "position": ask.position,
        "task": Task(target=ask.target, approach=ask.approach, pr=ask.pr, parts=ask.parts),
    }


def ask_of(inputs: Mapping[str, Any]) -> Ask:
    """The request in the signature's inputs, records or their JSON. Raises BadInput naming the input that is wrong."""
    read = {name: _record(kind, name, inputs) for name, kind in INPUTS.items()}
    task = read["task"]
    return Ask(
        target=task.target,
        hardware=read["hardware"],
        approach=task.approach,
        selection=read["constraints"],
        profile=read["profile"],
        champion=read["champion"],
        position=read["position"],
        pr=task.pr,
        parts=task.parts,
    )


def _record(kind: type[Frozen], name: str, inputs: Mapping[str, Any]) -> Any:
    if name not in inputs:
        raise BadInput(f"The prompt's input {name!r} is missing.")
    try:
        return kind.model_validate(inputs[name])
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(step) for step in (name, *first["loc"]))
        raise BadInput(f"The prompt's input {place!r} is wrong: {first['msg']}.") from error
