"""Shared by the commands that name a region: composes just the target and hardware they are given."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from kernelgen.catalog import Catalog, Located
from kernelgen.config import Hardware, Target
from kernelgen.door.arguments import Arguments
from kernelgen.errors import BadInput
from kernelgen.eventlog.store import EventLog

GROUPS = ("target", "hardware")
DEFAULT_HARDWARE = "h200"


@dataclass(frozen=True)
class Region:
    """A target on a hardware, with the catalog they came from."""

    target: Target
    located: Located
    hardware: Hardware
    catalog: Catalog


def open_to_look(path: Path) -> EventLog:
    """The log, for reading only, so that one in a read-only folder can be looked at; made where there is none."""
    return EventLog.read(path) if os.path.exists(path) else EventLog.open(path)


def hardware_of(arguments: Arguments) -> tuple[Hardware, Catalog]:
    """The hardware named by `hardware=`, by default the H200."""
    from kernelgen.door.compose import catalog

    choices = catalog(arguments.config_dirs)
    return choices.hardware(choice(arguments, "hardware") or DEFAULT_HARDWARE), choices


def region_of(arguments: Arguments, example: str) -> Region:
    """The region named by `target=` and `hardware=`. Raises BadInput with an example when no target is named."""
    hardware, choices = hardware_of(arguments)
    name = choice(arguments, "target")
    if name is None:
        raise BadInput(f"kernelgen {arguments.command} needs target=, as in `{example}`.")
    target, located = choices.target(name)
    return Region(target, located, hardware, choices)


def choice(arguments: Arguments, group: str) -> str | None:
    """The choice of a group among the overrides. Raises BadInput for a key inside the group: only choices fit here."""
    found = None
    for override in arguments.overrides:
        key, _, value = override.partition("=")
        if key == group:
            found = value
        elif key.lstrip("+~").split(".")[0] == group:
            raise BadInput(f"kernelgen {arguments.command} takes a choice, {group}=NAME, not {override}.")
    return found
