"""What a person or a program sees: text, or one JSON record with `--json`. Colours only on a terminal."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from typing import Any, TextIO

_GREEN, _RED, _YELLOW, _BOLD = "32", "31", "33", "1"


def coloured(text: str, code: str, stream: TextIO | None = None) -> str:
    """The text in a colour where the stream, by default the output, is a terminal that wants one, else the text."""
    wanted = (stream or sys.stdout).isatty() and "NO_COLOR" not in os.environ
    return f"\x1b[{code}m{text}\x1b[0m" if wanted else text


def good(text: str) -> str:
    """For what went well."""
    return coloured(text, _GREEN)


def bad(text: str) -> str:
    """For what failed."""
    return coloured(text, _RED)


def warn(text: str) -> str:
    """For what a person should notice."""
    return coloured(text, _YELLOW)


def coloured_outcome(outcome: str) -> str:
    """An outcome of the ladder in its colour."""
    return {"passed": good, "failed": bad, "suspect": bad}.get(outcome, warn)(outcome)


def complain(text: str) -> None:
    """Print on standard error what a person should notice beside the result."""
    print(coloured(text, _YELLOW, sys.stderr), file=sys.stderr)


def bold(text: str) -> str:
    """For headings."""
    return coloured(text, _BOLD)


def emit(record: dict[str, Any], text: str, *, as_json: bool) -> None:
    """Print the record as one line of JSON, or the text."""
    print(json.dumps(record, ensure_ascii=False, sort_keys=True) if as_json else text)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns padded to their widest cell."""
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in [header, *rows]]
    return "\n".join([bold(lines[0].rstrip()), *(line.rstrip() for line in lines[1:])])


class Progress:
    """A counter on standard error for long work; silent where that is no terminal."""

    def __init__(self, what: str, total: int) -> None:
        self.what, self.total, self.done = what, total, 0
        self.shown = sys.stderr.isatty()

    def step(self) -> None:
        """One more is done."""
        self.done += 1
        if self.shown:
            end = "\n" if self.done == self.total else ""
            print(f"\r{self.what} {self.done}/{self.total}", end=end, file=sys.stderr, flush=True)
