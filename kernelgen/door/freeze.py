"""`kernelgen freeze` and `kernelgen unfreeze`: whether a region gets candidates."""

from __future__ import annotations

from collections.abc import Sequence

from kernelgen.door.arguments import Grammar, parse
from kernelgen.door.console import emit
from kernelgen.door.regions import choice, hardware_of
from kernelgen.errors import BadInput
from kernelgen.eventlog.store import EventLog
from kernelgen.events import RegionFrozen, RegionUnfrozen
from kernelgen.generation import region

GRAMMAR = Grammar(groups=("target", "hardware"), values=("--why",))


def run(argv: Sequence[str]) -> int:
    """Append the event, unless the region already is as asked."""
    arguments = parse(argv, GRAMMAR)
    freezing = arguments.command == "freeze"
    example = f"kernelgen {arguments.command} mla_decode_fp8 --why 'at 96% of its floor'"
    name = choice(arguments, "target") or arguments.word("a target", example)
    why = arguments.flags.get("--why", "").strip()
    if not why:
        raise BadInput(f"kernelgen {arguments.command} needs --why with the reason, as in `{example}`.")
    hardware, catalog = hardware_of(arguments)
    target, _ = catalog.target(name)
    with EventLog.open(arguments.place("events")) as log:
        before = region.frozen(log, target.name, hardware.name)
        if (before is not None) == freezing:
            state = f"already frozen ({before})" if freezing else "not frozen"
            raise BadInput(f"{target.name} on {hardware.name} is {state}; nothing was changed.")
        kind = RegionFrozen if freezing else RegionUnfrozen
        row = log.append(kind(target=target.name, hardware=hardware.name, why=why))
    done = "frozen" if freezing else "unfrozen"
    record = {"event": row.id, "target": target.name, "hardware": hardware.name, "state": done, "why": why}
    emit(record, f"{target.name} on {hardware.name} is {done}: {why}", as_json=arguments.as_json)
    return 0
