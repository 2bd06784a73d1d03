"""Nsight Compute's CSV as it comes: the raw page (a row a launch, units in the second row) and the details page (a row
a metric), with `==PROF==` lines and program output around the table.

Every metric is kept under the file's own name, unit and text. Files are read line by line. What is damaged (cut in a
line, a row of the wrong length, a last launch without the sections the others have) is refused with file, line and
mend; a file cut exactly between two launches cannot be told from a whole one.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from kernelgen.errors import ProfileError
from kernelgen.profile.numbers import NumberStyle
from kernelgen.profile.table import KernelLaunch, LaunchTable, Metric
from kernelgen.profile.textfile import lines, shown

RAW = "ncu raw csv"
DETAILS = "ncu details csv"
STALL_RULE = "rule CPIStall"
"""Key of the one rule text that is kept: on a details page only it says what warps wait for."""

_ID, _KERNEL, _NAME, _UNIT, _VALUE = "ID", "Kernel Name", "Metric Name", "Metric Unit", "Metric Value"
_PROCESS, _SECTION = "Process ID", "Section Name"
_IDENTITY = frozenset(
    {_ID, _PROCESS, "Process Name", "Host Name", _KERNEL, "Context", "Stream"}
    | {"Block Size", "Grid Size", "Device", "CC"}
)
_DEVICE_NAME = "device__attribute_display_name"
_RULE, _ADVICE = "CPIStall", "OPT"
_EXPORT = "export it again with ncu --import REPORT --page raw --csv --print-units base"


def is_raw(head: str) -> bool:
    """Whether the head of a file shows a raw page's header."""
    header = _header(head)
    return header is not None and _NAME not in header


def is_details(head: str) -> bool:
    """Whether the head of a file shows a details page's header."""
    header = _header(head)
    return header is not None and _NAME in header


def _header(head: str) -> list[str] | None:
    return next((fields for line in head.splitlines() if (fields := _as_header(line)) is not None), None)


def _as_header(line: str) -> list[str] | None:
    """The columns, where the line is a table's header."""
    if _KERNEL not in line or not line.startswith(('"ID",', "ID,")):
        return None
    try:
        columns = next(csv.reader([line]))
    except csv.Error:
        return None
    return columns if _KERNEL in columns else None


@dataclass(slots=True)
class _Open:
    """A launch while its rows are being read."""

    identity: dict[str, str]
    line: int
    pairs: dict[str, tuple[str, str]] = field(default_factory=dict)


class _Builder:
    """Collects launches, sharing equal (unit, text) pairs, and numbers them once the file's locale is known."""

    def __init__(self, path: Path) -> None:
        self._file = shown(path)
        self._style = NumberStyle(self._file)
        self._shared: dict[tuple[str, str], tuple[str, str]] = {}
        self.launches: dict[tuple[str, ...], _Open] = {}

    def launch(self, key: tuple[str, ...], identity: dict[str, str], line: int) -> _Open:
        return self.launches.setdefault(key, _Open(identity, line))

    def add(self, launch: _Open, name: str, unit: str, text: str, line: int) -> None:
        if unit:
            self._style.observe(text, line)
        pair = (unit, text)
        launch.pairs.setdefault(name, self._shared.setdefault(pair, pair))

    def table(self, page: str) -> LaunchTable:
        if not self.launches:
            raise ProfileError(f"{self._file} holds a header but no launches; profile again, or {_EXPORT}")
        self._style.settle()
        metrics = {pair: Metric(pair[0], pair[1], self._style.number(pair[1])) for pair in self._shared}
        return LaunchTable(page, tuple(self._finish(launch, metrics) for launch in self.launches.values()))

    def _finish(self, launch: _Open, metrics: dict[tuple[str, str], Metric]) -> KernelLaunch:
        identity = launch.identity
        return KernelLaunch(
            name=identity[_KERNEL],
            grid=identity.get("Grid Size", ""),
            block=identity.get("Block Size", ""),
            capability=identity.get("CC", ""),
            device=launch.pairs.get(_DEVICE_NAME, ("", ""))[1],
            line=launch.line,
            metrics={name: metrics[pair] for name, pair in launch.pairs.items()},
        )


def read_raw(path: Path) -> LaunchTable:
    """All launches of a raw page."""
    rows = _rows(path, wide=True)
    number, header = next(rows)
    number, units = next(rows, (number, []))
    if not units or units[header.index(_ID)]:
        raise ProfileError(f"{shown(path)}:{number}: the row of units under the header is missing; {_EXPORT}")
    named = [(column, name, units[column]) for column, name in enumerate(header) if name not in _IDENTITY]
    places = {name: column for column, name in enumerate(header) if name in _IDENTITY}
    builder = _Builder(path)
    for number, row in rows:
        launch = builder.launch((str(number),), {name: row[column] for name, column in places.items()}, number)
        for column, name, unit in named:
            builder.add(launch, name, unit, row[column], number)
    return builder.table(RAW)


def read_details(path: Path) -> LaunchTable:
    """All launches of a details page; rules are left out but for the one that names the top stall."""
    rows = _rows(path, wide=False)
    number, header = next(rows)
    missing = [name for name in (_UNIT, _VALUE) if name not in header]
    if missing:
        raise ProfileError(f"{shown(path)}:{number}: the header lacks the column {missing[0]}; {_EXPORT}")
    builder = _Builder(path)
    places = {name: column for column, name in enumerate(header)}
    identity, process = places[_ID], places.get(_PROCESS, places[_ID])
    section_at, name_at, unit_at, value_at = places.get(_SECTION), places[_NAME], places[_UNIT], places[_VALUE]
    for number, fields in rows:
        key = (fields[process], fields[identity])
        launch = builder.launches.get(key) or builder.launch(key, dict(zip(header, fields, strict=False)), number)
        name = fields[name_at]
        if name:
            section = fields[section_at] if section_at is not None else ""
            plain = "__" in name or not section
            builder.add(launch, name if plain else f"{section}: {name}", fields[unit_at], fields[value_at], number)
        else:
            _add_rule(builder, launch, dict(zip(header, fields, strict=False)), number)
    table = builder.table(DETAILS)
    _ends_whole(builder, shown(path))
    return table


def _add_rule(builder: _Builder, launch: _Open, row: dict[str, str], number: int) -> None:
    """Keep the text of the one rule that names the top stall."""
    if row.get("Rule Name") == _RULE and row.get("Rule Type") == _ADVICE:
        builder.add(launch, STALL_RULE, "", row.get("Rule Description", ""), number)


def _ends_whole(builder: _Builder, file: str) -> None:
    """Refuse a file whose last launch lacks a section that every other launch has."""
    launches = list(builder.launches.values())
    if len(launches) == 1:
        return
    *others, last = [{name.partition(": ")[0] for name in launch.pairs if ": " in name} for launch in launches]
    lost = sorted(set.intersection(*others) - last)
    if lost:
        raise ProfileError(
            f"{file}:{launches[-1].line}: the last launch lacks the section {lost[0]} that all others have, so the "
            f"file was cut short; {_EXPORT}"
        )


def _rows(path: Path, *, wide: bool) -> Iterator[tuple[int, list[str]]]:
    """Line number and fields of the header, then of every table row; what stands around the table is passed over."""
    text = lines(path)
    start = next(((number, line, found) for number, line in text if (found := _as_header(line))), None)
    if start is None:
        raise ProfileError(f"{shown(path)} holds no ncu table; {_EXPORT}")
    number, line, header = start
    quoted = line.startswith('"')
    twice = next((name for name, count in Counter(header).items() if count > 1), None)
    if twice is not None:
        raise ProfileError(f"{shown(path)}:{number}: the header has the column {twice!r} twice; {_EXPORT}")
    yield number, header
    least = len(header) if wide else header.index(_VALUE) + 1  # a details row without a rule stops short of the header
    for number, line in text:
        if not line or line.startswith("=="):
            continue
        fields = _fields(line, path, number)
        if quoted and not line.startswith('"') and len(fields) < least:
            continue  # ncu quotes every field, so this is the program's own output
        if len(fields) < least or (wide and len(fields) > least):
            raise ProfileError(
                f"{shown(path)}:{number}: the row has {len(fields)} fields where the table has {least}; the file was "
                f"cut or damaged, {_EXPORT}"
            )
        if fields[0] == header[0] and fields[: len(header)] == header:
            raise ProfileError(f"{shown(path)}:{number}: a second table begins; give one export a file")
        yield number, fields


def _fields(line: str, path: Path, number: int) -> list[str]:
    if line.startswith('"') and line.endswith('"'):
        quick = line[1:-1].split('","')
        if line.count('"') == 2 * len(quick):  # none within a field, where it would be doubled
            return quick
    try:
        return next(csv.reader([line], strict=True))
    except csv.Error as error:
        raise ProfileError(f"{shown(path)}:{number}: the line is cut or damaged ({error}); {_EXPORT}") from error
