"""Opens a profile that is text, line by line, whatever wrote it: UTF-8 with or without a mark, or PowerShell's UTF-16.

Everything that keeps a file from being read as text ends in a ProfileError that names the file and, once reading has
begun, the line.
"""

from __future__ import annotations

import codecs
import hashlib
from collections.abc import Iterator
from pathlib import Path

from kernelgen.errors import ProfileError

HEAD_BYTES = 1 << 20  # a raw page's header alone takes over 100,000, and a program may print before it


def shown(path: Path) -> str:
    """The file's name without folders, printable also where its bytes are not UTF-8."""
    return path.name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def head(path: Path) -> str:
    """The first HEAD_BYTES, for sniffing; what is not text shows as replacement characters."""
    try:
        with path.open("rb") as file:
            start = file.read(HEAD_BYTES)
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error
    return start.decode(_encoding(start), "replace").removeprefix("\ufeff")


def digest(path: Path) -> str:
    """`sha256:…` of the file's bytes, without holding them."""
    try:
        with path.open("rb") as file:
            return "sha256:" + hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """Every line with its number, counted from 1, without its end."""
    number = 0
    try:
        with path.open("rb") as file:
            encoding = _encoding(file.read(len(codecs.BOM_UTF8)))
        with path.open(encoding=encoding) as text:
            for number, line in enumerate(text, 1):
                if "\0" in line:
                    raise ProfileError(f"{shown(path)}:{number}: holds binary data; export the profile to csv again")
                yield number, line.rstrip("\n")
    except UnicodeError as error:
        raise ProfileError(
            f"{shown(path)}:{number + 1}: is not UTF-8 text from about here; the file is damaged, export it again"
        ) from error
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error


def _encoding(start: bytes) -> str:
    return "utf-16" if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"


def _unreadable(path: Path, error: OSError | ValueError) -> ProfileError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return ProfileError(f"{shown(path)} cannot be read ({reason}); give the path of a profile file")
