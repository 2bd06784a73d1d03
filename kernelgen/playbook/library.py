"""State 1: the plays of a target, in order, each with its variations.

The first play or variation that was not tried is the answer. All plays come once, in their order, before the first is
varied. Nothing is random, and a play is never changed beyond the constants that its description names.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from importlib.resources.abc import Traversable

import yaml
from pydantic import Field, ValidationError

from kernelgen.config import Frozen
from kernelgen.errors import HarnessError, NoPlay
from kernelgen.playbook.champion import parse, table_of
from kernelgen.playbook.limits import broken_rule, keep_allowed
from kernelgen.playbook.reading import PastAttempt, Request
from kernelgen.playbook.reply import render
from kernelgen.playbook.rewrite import without_table
from kernelgen.records import AutotuneConfig


class Description(Frozen):
    """The yaml beside a play."""

    order: int = Field(ge=1)
    """Place among the target's plays."""
    title: str
    """What the play does, in a phrase."""
    hypothesis: str
    """Why it should be faster than a kernel that does not do so; one paragraph."""
    variations: tuple[dict[str, int], ...] = ()
    """Module constants to set otherwise, once each, after the play as it is."""


@dataclass(frozen=True)
class Play:
    """One kernel of the playbook."""

    target: str
    """The target it computes."""
    name: str
    """Its file name without suffix."""
    description: Description
    """What its yaml says."""
    source: str
    """Its Python, AUTOTUNE_CONFIGS included."""

    @cached_property
    def configs(self) -> dict[str, list[AutotuneConfig]]:
        """Its configurations by kernel."""
        return table_of(self.source)

    def variants(self) -> tuple[Mapping[str, int], ...]:
        """Constants of each form it takes: none first, then the variations."""
        return ({}, *self.description.variations)


@cache
def plays(target: str) -> list[Play]:
    """The plays of a target, in their order; empty where there are none."""
    folder = files("kernelgen.playbook").joinpath("plays", target)
    if not folder.is_dir():
        return []
    found = [_load(target, entry, folder) for entry in folder.iterdir() if entry.name.endswith(".yaml")]
    return sorted(found, key=lambda play: (play.description.order, play.name))


def rewrite(request: Request) -> str:
    """The reply. Raises NoPlay where the target has no play, or all of them were tried or are against a rule."""
    known = plays(request.target)
    if not known:
        raise NoPlay(f"The playbook has no play for {request.target}: use lm=openai_compatible with a model.")
    refusals = []
    for play, number in _untried(request, known):
        try:
            return _answer(request, play, number)
        except NoPlay as refusal:
            refusals.append(str(refusal))
    reason = f" ({refusals[0]})" if refusals else ""
    raise NoPlay(
        f"Every play of {request.target} was tried or is against a hard constraint{reason}: use lm=openai_compatible "
        "with a model."
    )


def _load(target: str, entry: Traversable, folder: Traversable) -> Play:
    name = entry.name.removesuffix(".yaml")
    try:
        description = Description.model_validate(yaml.safe_load(entry.read_text("utf-8")))
        return Play(target, name, description, folder.joinpath(f"{name}.py").read_text("utf-8"))
    except (ValidationError, yaml.YAMLError, FileNotFoundError) as error:
        raise HarnessError(f"The play {target}/{name} is broken: {error}") from error


def _untried(request: Request, known: list[Play]) -> Iterator[tuple[Play, int]]:
    """Plays with the number of their next variant, fewest variants tried first."""
    tried = {play.name: _times_tried(request, play) for play in known}
    rounds = max(len(play.variants()) for play in known)
    for number in range(rounds):
        for play in known:
            if tried[play.name] <= number < len(play.variants()):
                yield play, number


def _times_tried(request: Request, play: Play) -> int:
    """How many variants of a play the attempts tell of; a champion made of it counts as one."""
    kernels = set(play.configs)
    attempts = sum(_is_of(attempt, play, kernels) for attempt in request.attempts)
    defined = set(re.findall(r"^def (\w+)\(", request.champion_source, re.MULTILINE))
    return max(attempts, int(kernels <= defined))


def _is_of(attempt: PastAttempt, play: Play, kernels: set[str]) -> bool:
    """By its configurations' kernels where they are told, else by the hypothesis."""
    if attempt.state != 1:
        return False
    return set(attempt.configs) == kernels if attempt.configs else attempt.said.endswith(_signature(play))


def _signature(play: Play) -> str:
    return f"(Play {play.name}.)"


def _answer(request: Request, play: Play, number: int) -> str:
    constants = play.variants()[number]
    source = with_constants(play, constants)
    what = f"the play {play.name}"
    kept = keep_allowed(request, play.configs, what, source)
    model_part = without_table(parse(source), kept)
    if broken := broken_rule(request, source=model_part):
        raise NoPlay(f"The source of {what} is against the hard constraint {broken}.")
    return render(request, _hypothesis(request, play, constants), model_part, kept)


def with_constants(play: Play, constants: Mapping[str, int]) -> str:
    """The play's source with module constants set otherwise. Raises HarnessError for one it does not define."""
    lines = play.source.split("\n")
    places = {
        node.targets[0].id: node
        for node in ast.parse(play.source).body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    for name, value in constants.items():
        if name not in places:
            raise HarnessError(f"The play {play.target}/{play.name} varies {name}, which it does not define.")
        lines[places[name].lineno - 1] = f"{name} = {value}"
    return "\n".join(lines)


def _hypothesis(request: Request, play: Play, constants: Mapping[str, int]) -> str:
    varied = (
        f" This time with {', '.join(f'{name} = {value}' for name, value in constants.items())}." if constants else ""
    )
    return (
        f"{play.description.title}. The profile calls the region {request.bottleneck}: {request.limiting}. "
        f"{play.description.hypothesis.strip()}{varied} {_signature(play)}"
    )
