"""The checksums of a bundle's folder, in the form that `sha256sum -c SHA256SUMS` reads. Standard library alone.

`wrong` says what differs. A file that the sums do not name is wrong too where Python could import it; what the worker
itself leaves at the top of the folder is not. The sums tell accidents and edits apart from the bundle as it was made;
whoever can change the sums can change the worker.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SUMS = "SHA256SUMS"
CACHE = "__pycache__"
IMPORTED = (".py", ".pyc", ".pth", ".so")
"""Endings of what Python imports, or obeys."""


def digest_bytes(data: bytes) -> str:
    """`sha256:…` of bytes, as `kernelgen.ids` writes it."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def digest_text(text: str) -> str:
    """`sha256:…` of a text's UTF-8 bytes, as `kernelgen.ids` writes it."""
    return digest_bytes(text.encode("utf-8", "surrogatepass"))


def canonical(record: Any) -> str:
    """The one JSON text of a record, as `kernelgen.ids` writes it. Raises ValueError for NaN."""
    return json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def sums_of(folder: Path) -> str:
    """The text of SHA256SUMS for everything in a folder."""
    names = (name for name in files_in(folder) if name != SUMS)
    return "".join(f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}\n" for name in sorted(names))


def bundle_id(folder: Path) -> str:
    """The bundle's id: the digest of its sums. Raises OSError where it has none."""
    return digest_bytes((folder / SUMS).read_bytes())


def wrong(folder: Path) -> str | None:
    """What in the folder is not as the sums say, in a sentence; None where all is."""
    try:
        listed = dict(_listed((folder / SUMS).read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        return f"{folder / SUMS} cannot be read: {error}"
    for name, wanted in listed.items():
        path = folder / name
        if not path.is_file():
            return f"{path} is missing"
        if hashlib.sha256(path.read_bytes()).hexdigest() != wanted:
            return f"{path} is not what the bundle was made with"
    for name in files_in(folder):
        if name not in listed and name != SUMS and ("/" in name or name.endswith(IMPORTED)):
            return f"{folder / name} is no part of the bundle"
    return None


def files_in(folder: Path) -> Iterator[str]:
    """Every file below a folder, relative to it, Python's caches aside."""
    for path in folder.rglob("*"):
        name = path.relative_to(folder)
        if CACHE not in name.parts and (path.is_symlink() or not path.is_dir()):
            yield name.as_posix()


def _listed(text: str) -> Iterator[tuple[str, str]]:
    """Name and sum of each line. Raises ValueError for another form."""
    for line in text.splitlines():
        digest, separator, name = line.partition("  ")
        if not separator or Path(name).is_absolute() or ".." in Path(name).parts:
            raise ValueError(f"the line {line!r} is no checksum of a file in the bundle")
        yield name, digest
