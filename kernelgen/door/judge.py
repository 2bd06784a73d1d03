"""`kernelgen judge`: the ladder for generated candidates and users' own files, a verdict event each."""

from __future__ import annotations

import atexit
import json
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from kernelgen.config import Policy
from kernelgen.door.arguments import Arguments, Grammar, parse
from kernelgen.door.console import Progress, bad, coloured_outcome, complain, emit, good, warn
from kernelgen.door.regions import choice, hardware_of
from kernelgen.errors import BadInput
from kernelgen.eventlog.store import EventLog
from kernelgen.events import VerdictReached
from kernelgen.generation.workspace import Resolved
from kernelgen.judging.levels import SEED_DIGITS, Servers, level_named
from kernelgen.judging.session import Judgement, Session, session
from kernelgen.judging.subjects import Judged, Place, find
from kernelgen.ladder.work.jobs import Clock
from kernelgen.records import LevelResult, Verdict

GRAMMAR = Grammar(
    keys=("level", "reference", "containment", "seed", "device", "clock"), groups=("target", "hardware", "policy")
)
CONTAINMENT = {"on": True, "off": False}
CLOCKS: dict[str, Clock] = {"gpu": "gpu", "cpu": "cpu"}
DEVICES = ("cpu", "cuda")


def run(argv: Sequence[str]) -> int:
    """Judge every candidate named; exit code 1 when any is refused."""
    arguments = parse(argv, GRAMMAR)
    if not arguments.words:
        raise BadInput("kernelgen judge needs a candidate's ID or a file, as in `kernelgen judge g2026 level=L1`.")
    level = level_named(arguments.keys.get("level", "L2"))
    device = None if "device" not in arguments.keys else one_of(arguments, "device", DEVICES)
    contained = CONTAINMENT[one_of(arguments, "containment", CONTAINMENT, "on")]
    clock = CLOCKS[one_of(arguments, "clock", CLOCKS, "gpu")]
    hardware, catalog = hardware_of(arguments)
    constraints, policy, seed = arguments.place("constraints"), policy_of(arguments), _seed(arguments)
    with EventLog.open(arguments.place("events")) as log:
        place = Place(log, catalog, hardware, choice(arguments, "target"))
        candidates = [_find(word, place, arguments) for word in arguments.words]
        progress, refused = Progress("judging", len(candidates)), 0
        with session(
            log, constraints, catalog, policy, contained=contained, seed=seed, device=device, clock=clock
        ) as judging:
            for judged in candidates:
                judgement = judging.judge(judged, level)
                refused += judgement.ruling.verdict.refused() is not None
                progress.step()
                emit(record(judgement), text(judgement), as_json=arguments.as_json)
    return 1 if refused else 0


def _find(word: str, place: Place, arguments: Arguments) -> Judged:
    """The candidate named, or the solution of a problem."""
    reference = arguments.keys.get("reference")
    if reference is None:
        return find(word, place)
    from kernelgen.judging.problems import solution

    return solution(Path(word), Path(reference), place.hardware)


def one_of(arguments: Arguments, key: str, choices: Iterable[str], default: str = "") -> str:
    """A key's value. Raises BadInput where it is none of the choices."""
    value = arguments.keys.get(key, default)
    if value not in choices:
        raise BadInput(f"{key}={value} is not one of {', '.join(choices)}.")
    return value


def _seed(arguments: Arguments) -> int | None:
    """The seed given; a verdict tells its own, of up to 15 digits."""
    given = arguments.keys.get("seed")
    if given is not None and not (given.isascii() and given.isdigit() and len(given) <= SEED_DIGITS):
        raise BadInput(f"seed={given} is not a number that a verdict tells; write seed=1.")
    return None if given is None else int(given)


def policy_of(arguments: Arguments) -> Policy:
    """The policy named on the command line, by default the shipped one."""
    from kernelgen.door import compose

    overrides = [word for word in arguments.overrides if word.lstrip("+~").partition("=")[0].split(".")[0] == "policy"]
    return compose.compose(overrides, arguments.config_dirs).config.policy


@cache
def _shared_servers() -> Servers:
    """The processes of all jobs of this process: starting one takes seconds."""
    servers = Servers(contained=True)
    atexit.register(servers.close)
    return servers


def judge_generated(iteration_id: str, resolved: Resolved, log: EventLog) -> Judgement | None:
    """Judge a candidate just generated as far as the config says; None, and said so, where nothing can contain it."""
    config, place = resolved.config, resolved.workspace
    assert config.judge != "none"
    judging = Session(log, place.constraints, resolved.catalog, config.policy, _shared_servers())
    found = find(iteration_id, Place(log, resolved.catalog, config.hardware))
    try:
        judging.catch_up()
        return judging.judge(found, config.judge)
    except BadInput as error:
        complain(f"not judged: {error}")
        return None


def record(judgement: Judgement) -> dict[str, Any]:
    """A verdict as one machine-readable record."""
    ruling = judgement.ruling
    judged, verdict, event = ruling.judged, ruling.verdict, ruling.row.event
    assert isinstance(event, VerdictReached)
    refused = verdict.refused()
    return {
        "verdict": ruling.row.id,
        "iteration_id": judged.iteration_id,
        "candidate": judged.told,
        "target": judged.target.name,
        "hardware": judged.hardware.name,
        "highest": verdict.highest(),
        "refused_at": None if refused is None else refused.level,
        "levels": [level.model_dump(mode="json") for level in verdict.levels],
        "machine": json.loads(event.machine),
        "learned": [learned.constraint.id for learned in judgement.learned],
    }


def text(judgement: Judgement) -> str:
    """A verdict for a person: a line a level, what was wrong, and what was learned of it."""
    judged, verdict = judgement.ruling.judged, judgement.ruling.verdict
    lines = [f"{_head(verdict)}  {judged.told}: {judged.target.name} on {judged.hardware.name}"]
    for level in verdict.levels:
        lines += _level(level)
    lines += [f"  {learned.sentence()}" for learned in judgement.learned]
    return "\n".join(lines if judgement.promotion is None else [*lines, f"  {judgement.promotion.sentence}"])


def _head(verdict: Verdict) -> str:
    """What came of it, in two words."""
    refused, highest = verdict.refused(), verdict.highest()
    if refused is not None:
        return f"{bad(refused.outcome)} {refused.level}"
    return warn("inconclusive") if highest is None else f"{good('passed')} {highest}"


def _level(level: LevelResult) -> list[str]:
    """A level's line, its further findings and its notes."""
    lines = [f"  {level.level} {coloured_outcome(level.outcome)}: {level.reason}"]
    for finding in level.findings:
        place = f", line {finding.line}" if finding.line is not None else ""
        if finding.reason != level.reason:
            lines.append(f"     {finding.check}{place}: {finding.reason}")
        lines += [f"     | {line}" for line in finding.detail.splitlines()]
    return [*lines, *(f"     note: {note}" for note in level.notes)]
