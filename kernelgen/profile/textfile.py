"""Opens a profile that is text, by lines or by pieces, whatever wrote it: UTF-8 with or without a mark, or PowerShell's
UTF-16; any of them packed with gzip.

Everything that keeps a file from being read as text ends in a ProfileError that names the file and, once reading has
begun, the line. No file is held whole.
"""

from __future__ import annotations

import codecs
import gzip
import hashlib
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from kernelgen.errors import ProfileError

HEAD_BYTES = 1 << 20  # a raw page's header alone takes over 100,000, and a program may print before it
PIECE_CHARS = 1 << 20
_GZIP = b"\x1f\x8b"


def shown(path: Path) -> str:
    """The file's name without folders, printable also where its bytes are not UTF-8."""
    return path.name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def head(path: Path) -> str:
    """The first HEAD_BYTES, unpacked, for sniffing; what is not text shows as replacement characters."""
    with _binary(path) as file:
        start = file.read(HEAD_BYTES)
    return start.decode(_encoding(start), "replace").removeprefix("\ufeff")


def digest(path: Path) -> str:
    """`sha256:…` of the file's bytes as they are, without holding them."""
    try:
        with path.open("rb") as file:
            return "sha256:" + hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error


def whole(path: Path) -> str:
    """The text, for files that are small by nature."""
    return "".join(pieces(path))


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """Every line with its number, counted from 1, without its end."""
    number = 0
    with _text(path) as text:
        try:
            for number, line in enumerate(text, 1):
                if "\0" in line:
                    raise ProfileError(f"{shown(path)}:{number}: holds binary data; export the profile to csv again")
                yield number, line.rstrip("\n")
        except UnicodeError as error:
            raise _not_text(path, number + 1) from error


def pieces(path: Path) -> Iterator[str]:
    """The text in pieces of PIECE_CHARS."""
    line = 1
    with _text(path) as text:
        try:
            while piece := text.read(PIECE_CHARS):
                yield piece
                line += piece.count("\n")
        except UnicodeError as error:
            raise _not_text(path, line) from error


@contextmanager
def _text(path: Path) -> Iterator[io.TextIOWrapper]:
    with _binary(path) as file:
        encoding = _encoding(file.read(len(codecs.BOM_UTF8)))
    with _binary(path) as file, io.TextIOWrapper(file, encoding=encoding) as text:
        yield text


@contextmanager
def _binary(path: Path) -> Iterator[BinaryIO]:
    """The file's bytes, unpacked where gzip packed them; what goes wrong within is said of the file."""
    try:
        with path.open("rb") as file:
            packed = file.read(len(_GZIP)) == _GZIP
        with gzip.open(path) if packed else path.open("rb") as opened:
            yield cast(BinaryIO, opened)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ProfileError(f"{shown(path)} is cut or damaged ({error}); copy the packed file again") from error
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error


def _encoding(start: bytes) -> str:
    return "utf-16" if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"


def _not_text(path: Path, line: int) -> ProfileError:
    return ProfileError(
        f"{shown(path)}:{line}: is not UTF-8 text from about here; the file is damaged, export it again"
    )


def _unreadable(path: Path, error: OSError | ValueError) -> ProfileError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return ProfileError(f"{shown(path)} cannot be read ({reason}); give the path of a profile file")
