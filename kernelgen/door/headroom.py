"""`kernelgen headroom`: which target has most to win back."""

from __future__ import annotations

from collections.abc import Sequence

from kernelgen.door.arguments import Grammar, parse
from kernelgen.door.console import emit, table
from kernelgen.door.regions import hardware_of
from kernelgen.eventlog.store import EventLog
from kernelgen.generation import region

GRAMMAR = Grammar(groups=("hardware",))
NOT_MEASURED = "not measured"


def run(argv: Sequence[str]) -> int:
    """Print the ranking."""
    arguments = parse(argv, GRAMMAR)
    arguments.no_words()
    hardware, catalog = hardware_of(arguments)
    with EventLog.read(arguments.place("events")) as log:
        rows = region.headroom(catalog, log, hardware)
    cells = [
        (
            row.target,
            row.shape,
            _us(row.time_us),
            _us(row.floor_us),
            str(row.calls_per_step),
            _us(row.recoverable_us),
            row.frozen or "-",
        )
        for row in rows
    ]
    header = ("target", "shape", "measured us", "floor us", "calls a step", "recoverable us a step", "frozen")
    notes = [f"{row.target}: {row.note}" for row in rows if row.note not in ("", NOT_MEASURED)]
    record = {"hardware": hardware.name, "targets": [row.model_dump(mode="json") for row in rows]}
    emit(record, "\n".join([table(header, cells), *notes]), as_json=arguments.as_json)
    return 0


def _us(value: float | None) -> str:
    return NOT_MEASURED if value is None else f"{value:.1f}"
