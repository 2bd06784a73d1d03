"""The hash chain over the events.

Each event's hash covers the hash before it, so that no earlier event can change unseen:
`hash = sha256(canonical JSON of [prev, id, time, kind, payload])`, with `GENESIS` before the first.
What a chain cannot show by itself, that its end was cut off, the head file shows (`kernelgen.eventlog.head`).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from kernelgen.events import EVENT, Event
from kernelgen.ids import canonical_json, digest_text

GENESIS = "sha256:" + "0" * 64
"""Stands for the hash before the first event."""

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in the chain."""

    seq: int
    """Events up to here."""
    hash: str
    """Hash of the event here."""


START = Mark(0, GENESIS)
"""Before the first event."""


@dataclass(frozen=True, slots=True)
class Row:
    """One event as it stands in the log."""

    seq: int
    """Place in the log, from 1 without gaps."""
    id: str
    """Id of the event."""
    time: str
    """When it was appended, ISO 8601 UTC. Clocks may go back: `seq` is the order."""
    event: Event
    """What happened."""
    hash: str
    """Chains it to all before it."""


def link(prev: str, id: str, time: str, kind: str, payload: str) -> str:
    """The hash of an event that follows the one with hash `prev`; of none where a damaged file has no texts there."""
    if not all(isinstance(text, str) for text in (prev, id, time, kind, payload)):
        return ""
    return digest_text(canonical_json([prev, id, time, kind, payload]))


def to_payload(event: Event) -> str:
    """The event's canonical JSON. Lone surrogates, as in undecodable file names, are escaped, so that it is UTF-8."""
    return escape_surrogates(canonical_json(event.model_dump(mode="json")))


def from_payload(payload: str) -> Event:
    """The event again; ValueError when the text is none, or a damaged file has no text there."""
    if not isinstance(payload, str):
        raise ValueError(f"the payload is a {type(payload).__name__}")
    # not validate_json: pydantic's own reader refuses escaped lone surrogates
    return EVENT.validate_python(json.loads(payload))


def escape_surrogates(json_text: str) -> str:
    """The same JSON with every surrogate escaped."""
    return _SURROGATE.sub(lambda found: f"\\u{ord(found.group()):04x}", json_text)
