"""Long texts, stored once under their digest.

Any Python string comes back as it was, lone surrogates included; its digest is checked at every read. A text that no
event names is no fault: it costs space only.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kernelgen.errors import LogError
from kernelgen.ids import digest_bytes

if TYPE_CHECKING:
    from sqlite_utils import Database

LEVEL = 3
"""zlib's effort: half the time of its default for a twentieth more bytes, on prompts and kernels."""


class Packed(NamedTuple):
    """A text as it is stored."""

    size_bytes: int
    """Of the text in UTF-8."""
    body: bytes
    """zlib stream."""


def encode(text: str) -> bytes:
    """UTF-8, lone surrogates included: the bytes that `kernelgen.ids.digest_text` hashes."""
    return text.encode("utf-8", "surrogatepass")


def stored(db: Database, digests: Iterable[str]) -> set[str]:
    """Which of these digests have a text in the database."""
    query = "SELECT digest FROM texts WHERE digest IN (SELECT value FROM json_each(?))"
    return {digest for (digest,) in db.execute(query, [json.dumps(list(digests))])}


def pack_new(db: Database, texts: Iterable[str]) -> dict[str, Packed | None]:
    """By digest, what has to be stored of `texts`; None for what is there already."""
    given = {digest_bytes(data): data for data in map(encode, texts)}
    there = stored(db, given) if given else set()
    return {
        digest: None if digest in there else Packed(len(data), zlib.compress(data, LEVEL))
        for digest, data in given.items()
    }


def insert(db: Database, packed: Mapping[str, Packed | None]) -> None:
    """Store what is still missing; inside a transaction."""
    new = {digest: text for digest, text in packed.items() if text is not None}
    if not new:
        return
    there = stored(db, new)  # another process may have been quicker
    for digest, text in new.items():
        if digest not in there:
            db.execute("INSERT INTO texts (digest, size_bytes, body) VALUES (?, ?, ?)", [digest, *text])


def unpack(digest: str, body: bytes) -> bytes:
    """The text's bytes; ValueError with what is wrong when they are not those of `digest`."""
    try:
        data = zlib.decompress(body)
    except zlib.error as error:
        raise ValueError(f"text {digest} was changed: it cannot be unpacked ({error})") from error
    if digest_bytes(data) != digest:
        raise ValueError(f"text {digest} was changed: its content has the digest {digest_bytes(data)}")
    return data


def read(db: Database, path: Path, digest: str) -> str:
    """The text with this digest. LogError when the log has none or it was changed."""
    found = db.execute("SELECT body FROM texts WHERE digest = ?", [digest]).fetchone()
    if found is None:
        raise LogError(f"{path}: the log has no text {digest}; see `kernelgen log verify`")
    try:
        return unpack(digest, found[0]).decode("utf-8", "surrogatepass")
    except ValueError as error:
        raise LogError(f"{path}: {error}; put back a copy of the log") from error
