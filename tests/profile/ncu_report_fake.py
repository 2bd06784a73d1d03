"""The part of NVIDIA's `ncu_report` that the importer uses, over the launches of a raw page instead of a report.

Names and behaviour are those of the package's 2026.3: getters instead of fields, None for an index or a name that is
not there, `value()` in the kind the report stores (text, integer or float), and for a file that is no report a context
without ranges rather than an error.
"""

from __future__ import annotations

import csv
from pathlib import Path
from types import SimpleNamespace

IDENTITY_COLUMNS = 11
NAME_COLUMN = 4
REPORT_BYTES = b"NVR\0\x02\0\0\0\x08\x07"
"""What a report begins with: the magic, the header's size, the version."""


class FakeMetric:
    def __init__(self, name: str, unit: str, text: str) -> None:
        self._name, self._unit, self._text = name, unit, text

    def name(self) -> str:
        return self._name

    def unit(self) -> str:
        return self._unit

    def has_value(self) -> bool:
        return self._text != "n/a"

    def value(self) -> str | int | float | None:
        plain = self._text.replace(",", "")
        for kind in (int, float):
            try:
                return kind(plain)
            except ValueError:
                continue
        return self._text


class FakeAction:
    def __init__(self, name: str, metrics: dict[str, FakeMetric]) -> None:
        self._name, self._metrics = name, metrics

    def name(self, base: int) -> str:
        assert base == IAction.NameBase_DEMANGLED
        return self._name

    def metric_names(self) -> tuple[str, ...]:
        return tuple(self._metrics)

    def metric_by_name(self, name: str) -> FakeMetric | None:
        return self._metrics.get(name)


class IAction:
    NameBase_DEMANGLED = 1


class FakeRange:
    def __init__(self, actions: list[FakeAction]) -> None:
        self._actions = actions

    def num_actions(self) -> int:
        return len(self._actions)

    def action_by_idx(self, index: int) -> FakeAction | None:
        return self._actions[index] if index < len(self._actions) else None


class FakeContext:
    def __init__(self, ranges: list[FakeRange]) -> None:
        self._ranges = ranges

    def num_ranges(self) -> int:
        return len(self._ranges)

    def range_by_idx(self, index: int) -> FakeRange | None:
        return self._ranges[index] if index < len(self._ranges) else None


def fake_module(raw_page: Path) -> SimpleNamespace:
    """A module whose reports hold the launches of the raw page, the first in a range of its own."""
    header, units, *rows = csv.reader(raw_page.read_text(encoding="utf-8").splitlines())
    actions = [
        FakeAction(
            row[NAME_COLUMN],
            {name: FakeMetric(name, units[i], row[i]) for i, name in enumerate(header) if i >= IDENTITY_COLUMNS},
        )
        for row in rows
    ]

    def load_report(path: str) -> FakeContext:
        if not Path(path).exists():
            raise FileNotFoundError(f"Could not load report file: {path} does not exist.")
        whole = Path(path).read_bytes() == REPORT_BYTES
        return FakeContext([FakeRange(actions[:1]), FakeRange(actions[1:])] if whole else [])

    return SimpleNamespace(load_report=load_report, IAction=IAction)
