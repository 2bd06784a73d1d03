"""`kernelgen status`: where every region stands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kernelgen import champions
from kernelgen.config import Hardware, Policy, Target
from kernelgen.door.arguments import Grammar, parse
from kernelgen.door.console import emit, table
from kernelgen.door.regions import choice, open_to_look
from kernelgen.eventlog.store import EventLog
from kernelgen.generation import region
from kernelgen.judging import promotion

GRAMMAR = Grammar(groups=("target", "hardware", "policy"))


def run(argv: Sequence[str]) -> int:
    """Print a row for every target on every hardware that the log has events of."""
    from kernelgen.door.compose import catalog, compose

    arguments = parse(argv, GRAMMAR)
    arguments.no_words()
    choices = catalog(arguments.config_dirs)
    policy_overrides = [o for o in arguments.overrides if o.startswith("policy")]
    policy = compose(policy_overrides, arguments.config_dirs).config.policy
    targets = [choices.target(n)[0] for n in _named(choice(arguments, "target"), choices.names("target"))]
    hardware = [choices.hardware(n) for n in _named(choice(arguments, "hardware"), choices.names("hardware"))]
    everything = choice(arguments, "hardware") is not None
    records = []
    with open_to_look(arguments.place("events")) as log:
        for target in targets:
            for gpu in hardware:
                record = _region(log, target, gpu, policy)
                if everything or record["events"] or gpu.name == "h200":
                    records.append(record)
    cells = [[_cell(record[column]) for column in _COLUMNS] for record in records]
    emit(
        {"regions": records}, table([column.replace("_", " ") for column in _COLUMNS], cells), as_json=arguments.as_json
    )
    return 0


_COLUMNS = (
    "target", "hardware", "state", "attempts", "failures", "champion", "faster", "over_first", "share_of_floor",
    "profile", "frozen",
)  # fmt: skip


def _cell(value: object) -> str:
    """A figure to three digits; a dash where there is none."""
    return "-" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)


def _named(name: str | None, known: list[str]) -> list[str]:
    return known if name is None else [name]


def _region(log: EventLog, target: Target, hardware: Hardware, policy: Policy) -> dict[str, Any]:
    position = region.position(log, target.name, hardware.name, policy, chosen=None)
    line = promotion.lineage(log, target.name, hardware.name)
    champion = promotion.current(line)
    measured = None if champion is None else champion.measured
    gain = None if champion is None else promotion.gain(line, champion)
    timed = None if measured is None else measured.shapes.get(target.profile_shape)
    profile = region.latest_profile(log, target.name, hardware.name, None)
    return {
        "target": target.name,
        "hardware": hardware.name,
        "state": "all used up" if position.state is None else position.state,
        "attempts": position.attempts_total,
        "failures": ", ".join(f"{count} in state {n}" for n, count in position.failures.items()) or "-",
        "champion": champion.champion.id if champion else champions.NAIVE,
        "faster": None if measured is None else measured.over_all.ratio,
        "over_first": None if gain is None else gain[0],
        "first": champions.NAIVE if gain is None else gain[1],
        "share_of_floor": None if timed is None else timed.of_floor,
        "profile": f"{profile.shape}, {profile.time_us:.1f} us" if profile else "none",
        "frozen": position.frozen or "-",
        "events": any(True for _ in log.rows(limit=1, target=target.name, hardware=hardware.name)),
    }
