"""How far a log's verdicts were learned from, kept beside it so that a start does not read all of them again.

The file is a hint: without it, or with one that does not fit the log, everything is learned again, to the same end.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from kernelgen.errors import LogError
from kernelgen.eventlog.store import EventLog

SUFFIX = ".learned"


class Mark:
    """The last event of the log that learning has seen."""

    def __init__(self, log: EventLog) -> None:
        self._path = log.path.with_name(log.path.name + SUFFIX)
        self._last = next(iter(log.rows(newest_first=True, limit=1)), None)
        self.seq = _read(self._path, log)

    def advance(self) -> None:
        """Learning is done with all that the log held when this mark was read."""
        if self._last is None or self._last.seq == self.seq:
            return
        draft = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        try:
            draft.write_text(json.dumps({"seq": self._last.seq, "id": self._last.id}), encoding="utf-8")
            draft.replace(self._path)
        except OSError:
            draft.unlink(missing_ok=True)  # a hint that cannot be written costs the next start its time, no more


def _read(path: Path, log: EventLog) -> int:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        return int(record["seq"]) if log.row(str(record["id"])).seq == record["seq"] else 0
    except (OSError, ValueError, KeyError, TypeError, LogError):
        return 0
