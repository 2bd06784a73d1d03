"""`kernelgen judge`: the ladder for generated candidates and for users' own files, a verdict event each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kernelgen.config import Policy
from kernelgen.constraints.store import ConstraintFile, reconcile
from kernelgen.door.arguments import Arguments, Grammar, parse, whole_number
from kernelgen.door.console import Progress, bad, coloured_outcome, complain, emit, good, warn
from kernelgen.door.regions import choice, hardware_of
from kernelgen.errors import BadInput, KernelgenError
from kernelgen.eventlog.store import EventLog
from kernelgen.generation.region import ConstraintRows
from kernelgen.judging import problems
from kernelgen.judging.judge import Ruling, judge
from kernelgen.judging.learn import Lesson, catch_up, learn
from kernelgen.judging.levels import Servers, Terms, level_named
from kernelgen.judging.subjects import Judged, Place, find
from kernelgen.records import LevelResult

GRAMMAR = Grammar(keys=("level", "reference", "containment", "seed", "device"), groups=("target", "hardware", "policy"))
CONTAINMENT = {"on": True, "off": False}
DEVICES = ("cpu", "cuda")


def run(argv: Sequence[str]) -> int:
    """Judge every candidate named; exit code 1 when any is refused."""
    arguments = parse(argv, GRAMMAR)
    if not arguments.words:
        raise BadInput("kernelgen judge needs a candidate's ID or a file, as in `kernelgen judge g2026 level=L1`.")
    level = level_named(arguments.keys.get("level", "L2"))
    hardware, catalog = hardware_of(arguments)
    policy = _policy(arguments)
    rulings: list[Ruling] = []
    with EventLog.open(arguments.place("events")) as log:
        catch_up(log, arguments.place("constraints"), policy)
        place = Place(log, catalog, hardware, choice(arguments, "target"))
        candidates = [_find(word, place, arguments) for word in arguments.words]
        progress = Progress("judging", len(candidates))
        with _terms(arguments, policy, log) as terms:
            for judged in candidates:
                ruling = judge(judged, level, terms, log)
                rulings.append(ruling)
                lessons = learn(ruling.row, log=log, constraints=arguments.place("constraints"), policy=policy)
                progress.step()
                tell(ruling, lessons, as_json=arguments.as_json)
    return 1 if any(ruling.verdict.refused() for ruling in rulings) else 0


def _find(word: str, place: Place, arguments: Arguments) -> Judged:
    reference = arguments.keys.get("reference")
    if reference is None:
        return find(word, place)
    return problems.solution(Path(word), Path(reference), place.hardware)


@contextmanager
def _terms(arguments: Arguments, policy: Policy, log: EventLog) -> Iterator[Terms]:
    contained = _one_of(arguments, "containment", CONTAINMENT, "on")
    device = arguments.keys.get("device")
    if device is not None and device not in DEVICES:
        raise BadInput(f"device={device} is not one of {', '.join(DEVICES)}.")
    book = reconcile(ConstraintFile(arguments.place("constraints")), ConstraintRows(log))
    with Servers(contained=CONTAINMENT[contained]) as servers:
        yield Terms(policy, book.active, servers, seed=_seed(arguments), device=device)


def _one_of(arguments: Arguments, key: str, choices: dict[str, bool], default: str) -> str:
    value = arguments.keys.get(key, default)
    if value not in choices:
        raise BadInput(f"{key}={value} is not one of {', '.join(choices)}.")
    return value


def _seed(arguments: Arguments) -> int | None:
    text = arguments.keys.get("seed")
    number = None if text is None else whole_number(text)
    if text is not None and number is None:
        raise BadInput(f"seed={text} is not a number; write seed=1.")
    return number


def _policy(arguments: Arguments) -> Policy:
    """The policy named on the command line, by default the shipped one."""
    from kernelgen.door import compose

    overrides = [word for word in arguments.overrides if word.lstrip("+~").partition("=")[0].split(".")[0] == "policy"]
    return compose.compose(overrides, arguments.config_dirs).config.policy


def tell(ruling: Ruling, lessons: Sequence[Lesson], *, as_json: bool) -> None:
    """Print a verdict: a line a level, and what was learned of it."""
    emit(record(ruling, lessons), text(ruling, lessons), as_json=as_json)


def record(ruling: Ruling, lessons: Sequence[Lesson]) -> dict[str, Any]:
    """A verdict as one machine-readable record."""
    refused, event = ruling.verdict.refused(), ruling.row.event
    return {
        "verdict": ruling.row.id,
        "iteration_id": ruling.judged.iteration_id,
        "candidate": ruling.judged.told,
        "target": ruling.judged.target.name,
        "hardware": ruling.judged.hardware.name,
        "highest": ruling.verdict.highest(),
        "refused_at": None if refused is None else refused.level,
        "levels": [level.model_dump(mode="json") for level in ruling.verdict.levels],
        "machine": getattr(event, "machine", "{}"),
        "learned": [lesson.constraint.id for lesson in lessons],
    }


def text(ruling: Ruling, lessons: Sequence[Lesson]) -> str:
    """A verdict for a person."""
    refused, highest = ruling.verdict.refused(), ruling.verdict.highest()
    if refused is not None:
        head = f"{bad(refused.outcome)} {refused.level}"
    elif highest is not None:
        head = f"{good('passed')} {highest}"
    else:
        head = f"{warn('inconclusive')}"
    lines = [f"{head}  {ruling.judged.told}: {ruling.judged.target.name} on {ruling.judged.hardware.name}"]
    for level in ruling.verdict.levels:
        lines += _level(level)
    lines += [f"  {lesson.sentence()}" for lesson in lessons]
    return "\n".join(lines)


def _level(level: LevelResult) -> list[str]:
    """A level's line, its further findings and its notes."""
    lines = [f"  {level.level} {coloured_outcome(level.outcome)}: {level.reason}"]
    for finding in level.findings:
        place = f", line {finding.line}" if finding.line is not None else ""
        if finding.reason != level.reason:
            lines.append(f"     {finding.check}{place}: {finding.reason}")
        lines += [f"     | {line}" for line in finding.detail.splitlines()]
    return [*lines, *(f"     note: {note}" for note in level.notes)]


def tell_error(error: KernelgenError) -> None:
    """Say that a verdict could not be reached, beside what was done."""
    complain(f"not judged: {error}")
