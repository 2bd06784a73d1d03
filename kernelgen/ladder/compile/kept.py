"""Results of a search kept as JSON lines, each under a key, so that a killed run goes on where it was.

A line is written at once and whole. One that was cut short, by a kill or a full disk, is passed over when it is read,
and what it was of is made again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kernelgen.errors import BadInput


class Kept:
    """The records of one file."""

    def __init__(self, path: Path) -> None:
        """Read what is there. Raises BadInput where the file cannot be read or written."""
        self._path = path
        self._records: dict[str, dict[str, Any]] = {}
        try:
            text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
            with path.open("a", encoding="utf-8"):
                """It can be written."""
        except OSError as error:
            raise BadInput(f"{path} cannot be used to keep results: {error.strerror}.") from error
        for line in text.splitlines():
            record = _record(line)
            if record is not None:
                self._records[record["key"]] = record
        # what follows begins a line of its own
        self._gap = "\n" if text and not text.endswith("\n") else ""

    def get(self, key: str) -> Mapping[str, Any] | None:
        """The record under a key, without the key itself."""
        record = self._records.get(key)
        return None if record is None else {name: value for name, value in record.items() if name != "key"}

    def add(self, key: str, record: Mapping[str, Any]) -> None:
        """Keep one more. Raises BadInput where it cannot be written."""
        line = self._gap + json.dumps({"key": key, **record}, ensure_ascii=False) + "\n"
        try:
            descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
            with open(descriptor, "wb", buffering=0) as file:
                file.write(line.encode("utf-8"))
        except OSError as error:
            raise BadInput(f"{self._path}: a result cannot be written: {error.strerror}.") from error
        self._gap = ""
        self._records[key] = {"key": key, **record}


def _record(line: str) -> dict[str, Any] | None:
    """What a line holds; None where it is no record with a key."""
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) and isinstance(record.get("key"), str) else None
