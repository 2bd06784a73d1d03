"""Events to put in a log, and a connection that gets around its guards."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from kernelgen.eventlog import EventLog
from kernelgen.events import RegionFrozen, ReplyReceived
from kernelgen.ids import digest_text
from kernelgen.records import Usage

GUARDS = [f"{table}_no_{verb}" for table in ("events", "texts") for verb in ("update", "delete", "replace")]


def small(number: int = 0) -> RegionFrozen:
    """An event without texts."""
    return RegionFrozen(target="moe", hardware="h200", why=f"reason {number}")


def reply(iteration_id: str, text: str, messages: str = "[]", attempt: int = 1) -> ReplyReceived:
    """An event that names two texts."""
    return ReplyReceived(
        iteration_id=iteration_id,
        target="moe",
        hardware="h200",
        attempt=attempt,
        messages=digest_text(messages),
        request_key=digest_text("key"),
        text=digest_text(text),
        model="scripted",
        finish_reason="stop",
        usage=Usage(input_tokens=10, output_tokens=None, cost_usd=0.25, seconds=1.5),
    )


@contextmanager
def around_guards(path: Path) -> Iterator[sqlite3.Connection]:
    """A raw connection for which the triggers are gone; they are back, word for word, when it closes."""
    with closing(sqlite3.connect(path)) as raw:
        kept = raw.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in kept:
            raw.execute(f"DROP TRIGGER {name}")
        yield raw
        for _, sql in kept:
            raw.execute(sql)
        raw.commit()


def problems(path: Path) -> tuple[str, ...]:
    """What verifying the log finds."""
    with EventLog.read(path) as log:
        return log.verify().problems
