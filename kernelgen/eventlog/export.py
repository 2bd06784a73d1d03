"""The log as JSON lines, for other programs.

One event a line: `seq`, `id`, `time`, `hash`, `kind` and the event's own fields, with `texts` where asked for: every
stored text the event names, by digest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from kernelgen.eventlog.chain import Row, escape_surrogates
from kernelgen.events import stored_texts
from kernelgen.ids import canonical_json


def lines(rows: Iterable[Row], text: Callable[[str], str] | None = None) -> Iterator[str]:
    """A JSON object for each row, without the newline; `text` gives a digest's text, None leaves texts out."""
    for row in rows:
        record = row.event.model_dump(mode="json")
        record.update(seq=row.seq, id=row.id, time=row.time, hash=row.hash)
        if text is not None:
            record["texts"] = {digest: text(digest) for digest in stored_texts(row.event)}
        yield escape_surrogates(canonical_json(record))
