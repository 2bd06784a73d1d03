"""`kernelgen retract`: takes back a verdict that proved wrong, and what came from it."""

from __future__ import annotations

from collections.abc import Sequence

from kernelgen.door.arguments import Grammar, parse
from kernelgen.door.console import emit, good
from kernelgen.errors import BadInput
from kernelgen.eventlog.store import EventLog
from kernelgen.events import VerdictRetracted
from kernelgen.judging.lessons import Regions
from kernelgen.judging.retract import retract

GRAMMAR = Grammar(groups=("policy",), values=("--why",))


def run(argv: Sequence[str]) -> int:
    """Append the retraction and withdraw what rested on the verdict alone."""
    from kernelgen.door.compose import catalog, compose

    arguments = parse(argv, GRAMMAR)
    example = "kernelgen retract e20261130t1814 --why 'the reference was wrong'"
    told = arguments.word("a verdict's or a candidate's ID", example)
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
    event = done.row.event
    assert isinstance(event, VerdictRetracted)
    record = {
        "event": done.row.id,
        "verdict": event.verdict,
        "iteration_id": event.iteration_id,
        "withdrawn": list(done.withdrawn),
        "why": why,
    }
    rest = (
        f"; withdrawn with it: {', '.join(done.withdrawn)}" if done.withdrawn else "; no constraint rested on it alone"
    )
    emit(
        record,
        f"{good('retracted')} the verdict {event.verdict} of {event.iteration_id}: {why}{rest}",
        as_json=arguments.as_json,
    )
    return 0
