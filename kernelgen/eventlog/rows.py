"""Reading events: by filter, by id, by generation.

A reading sees the log as it was when it began, however long it takes, and holds no lock meanwhile: the matching numbers
are taken at once, the rows a page at a time, which is sound because rows never change.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kernelgen.errors import LogError
from kernelgen.eventlog.chain import Row, from_payload
from kernelgen.eventlog.connection import sentences

if TYPE_CHECKING:
    from sqlite_utils import Database

PAGE_ROWS = 500
_COLUMNS = "seq, id, time, payload, hash"
_AFTER_ANY_ID = "\U0010ffff"
"""Sorts behind every character of an id."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Which events; None means any."""

    kinds: Collection[str] | None = None
    """Kinds of event."""
    target: str | None = None
    """Target name."""
    hardware: str | None = None
    """Hardware name."""
    state: int | None = None
    """State number."""
    iteration_id: str | None = None
    """Generation."""
    after: int = 0
    """Only events with a higher `seq`."""

    def where(self) -> tuple[str, list[object]]:
        """The SQL condition, with its parameters."""
        parts, values = ["seq > ?"], list[object]([self.after])
        if self.kinds is not None:
            parts.append("kind IN (SELECT value FROM json_each(?))")
            values.append(json.dumps(sorted(self.kinds)))
        for column in ("target", "hardware", "state", "iteration_id"):
            value = getattr(self, column)
            if value is not None:
                parts.append(f"{column} = ?")
                values.append(value)
        return " AND ".join(parts), values


def to_row(path: Path, seq: int, id: str, time: str, payload: str, hash: str) -> Row:
    """The stored event as a Row. LogError when its payload is no event this kernelgen knows."""
    try:
        event = from_payload(payload)
    except ValueError as error:
        raise LogError(f"{path}: event {seq} ({id}) cannot be read; see `kernelgen log verify`") from error
    return Row(seq, id, time, event, hash)


def select(db: Database, path: Path, wanted: Filter, *, newest_first: bool, limit: int | None) -> Iterator[Row]:
    """The wanted events in order, at most `limit` of them."""
    condition, values = wanted.where()
    order = "DESC" if newest_first else "ASC"
    query = f"SELECT seq FROM events WHERE {condition} ORDER BY seq {order} LIMIT ?"
    with sentences(path):
        numbers = [seq for (seq,) in db.execute(query, [*values, -1 if limit is None else limit])]
    query = f"SELECT {_COLUMNS} FROM events WHERE seq IN (SELECT value FROM json_each(?)) ORDER BY seq {order}"
    for start in itertools.count(0, PAGE_ROWS):
        page = numbers[start : start + PAGE_ROWS]
        if not page:
            return
        with sentences(path):
            found = db.execute(query, [json.dumps(page)]).fetchall()
        for columns in found:
            yield to_row(path, *columns)


def by_id(db: Database, path: Path, id: str) -> Row:
    """The event with this id. LogError when there is none."""
    with sentences(path):
        found = db.execute(f"SELECT {_COLUMNS} FROM events WHERE id = ?", [id]).fetchone()
    if found is None:
        raise LogError(f"{path} has no event '{id}'{_nearest(db, id)}")
    return to_row(path, *found)


def complete(db: Database, path: Path, prefix: str) -> str:
    """The one id, of an event or a generation, that begins with `prefix`. LogError when there is none or several."""
    found: set[str] = set()
    with sentences(path):
        for column in ("id", "iteration_id"):
            query = (
                f"SELECT DISTINCT {column} FROM events WHERE {column} >= ? AND {column} < ? ORDER BY {column} LIMIT 2"
            )
            found.update(id for (id,) in db.execute(query, [prefix, prefix + _AFTER_ANY_ID]))
    if prefix in found:
        return prefix
    if len(found) > 1:
        first, second, *_ = sorted(found)
        raise LogError(
            f"'{prefix}' is the beginning of several ids of {path}, such as {first} and {second}; give more of it"
        )
    if not found:
        raise LogError(f"{path} has no event or generation whose id begins with '{prefix}'{_nearest(db, prefix)}")
    return found.pop()


def _nearest(db: Database, id: str) -> str:
    """The mend for an unknown id: its neighbour in sort order that shares most of its beginning."""
    near: list[str] = []
    for column in ("id", "iteration_id"):
        for comparison, order in (("<=", "DESC"), (">", "ASC")):
            query = f"SELECT {column} FROM events WHERE {column} {comparison} ? ORDER BY {column} {order} LIMIT 1"
            near.extend(found for (found,) in db.execute(query, [id]))
    if not near:
        return "; the log is empty"

    def shared(other: str) -> int:
        return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(id, other, strict=False)))

    return f"; the nearest is '{max(near, key=shared)}'"
