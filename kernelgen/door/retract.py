"""`kernelgen retract`: takes back a champion or a verdict that proved wrong, and what came from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kernelgen.door.arguments import Grammar, parse
from kernelgen.door.console import emit, good
from kernelgen.errors import BadInput
from kernelgen.eventlog.store import EventLog
from kernelgen.events import ChampionRetracted, VerdictRetracted
from kernelgen.judging.lessons import Regions
from kernelgen.judging.retract import Retracted, retract

GRAMMAR = Grammar(groups=("policy",), values=("--why",))


def run(argv: Sequence[str]) -> int:
    """Append the retraction and withdraw what rested on the verdict or champion alone."""
    from kernelgen.door.compose import catalog, compose

    arguments = parse(argv, GRAMMAR)
    example = "kernelgen retract e20261130t1814 --why 'the reference was wrong'"
    told = arguments.word("a champion's, a verdict's or a candidate's ID", example)
    why = arguments.flags.get("--why", "").strip()
    if not why:
        raise BadInput(f"kernelgen retract needs --why with the reason, as in `{example}`.")
    policy = compose(arguments.overrides, arguments.config_dirs).config.policy
    with EventLog.open(arguments.place("events"), create=False) as log:
        done = retract(
            told,
            why,
            log=log,
            constraints=arguments.place("constraints"),
            policy=policy,
            regions=Regions.of(catalog(arguments.config_dirs)),
        )
    emit(_record(done), _text(done), as_json=arguments.as_json)
    return 0


def _record(done: Retracted) -> dict[str, Any]:
    event = done.row.event
    record: dict[str, Any] = {"event": done.row.id, "withdrawn": list(done.withdrawn)}
    if isinstance(event, ChampionRetracted):
        told = {"champion_id": event.champion_id, "fallen": list(done.fallen), "champion": done.champion}
        return {**record, **told, "why": event.why}
    assert isinstance(event, VerdictRetracted)
    return {**record, "verdict": event.verdict, "iteration_id": event.iteration_id, "why": event.why}


def _text(done: Retracted) -> str:
    event = done.row.event
    rest = f"withdrawn with it: {', '.join(done.withdrawn)}" if done.withdrawn else "no constraint rested on it alone"
    if isinstance(event, ChampionRetracted):
        lines = [f"{good('retracted')} the champion {event.champion_id}: {event.why}; {rest}"]
        lines += [f"  {name} was promoted over it: `kernelgen judge {name} level=L4`" for name in done.fallen]
        return "\n".join([*lines, f"  champion of {event.target} on {event.hardware} is {done.champion}"])
    assert isinstance(event, VerdictRetracted)
    return f"{good('retracted')} the verdict {event.verdict} of {event.iteration_id}: {event.why}; {rest}"
