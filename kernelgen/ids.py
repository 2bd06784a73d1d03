"""Identifiers and digests.

Ids are unique across processes and hosts, sort by time and are legal Python module names:
`g20261130t181420123456_9f3ac2d1b06e` is prefix, UTC time to the microsecond, 48 random bits.
Digests carry their algorithm: `sha256:<64 hex digits>`, over UTF-8 text or over canonical JSON.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

_last_issued = datetime.min.replace(tzinfo=UTC)
_lock = threading.Lock()


def utc_now() -> datetime:
    """The time now, in UTC."""
    return datetime.now(UTC)


def timestamp(moment: datetime) -> str:
    """ISO 8601 in UTC to the microsecond: `2026-11-30T18:14:20.123456Z`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def new_id(prefix: str) -> str:
    """A new id; within a process each sorts after the one before, also when the clock stands still or goes back."""
    global _last_issued
    with _lock:
        moment = max(utc_now(), _last_issued + timedelta(microseconds=1))
        _last_issued = moment
    return f"{prefix}{moment.strftime('%Y%m%dt%H%M%S%f')}_{secrets.token_hex(6)}"


def canonical_json(value: Any) -> str:
    """The one JSON text of a value: sorted keys, no spaces, no NaN."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest_text(text: str) -> str:
    """`sha256:…` of the UTF-8 bytes of a text."""
    return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def digest_bytes(data: bytes) -> str:
    """`sha256:…` of bytes."""
    return "sha256:" + hashlib.sha256(data).hexdigest()
