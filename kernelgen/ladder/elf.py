"""Reads what an untrusted ELF file exports and how large its sections are, without loading or running it.

Enough for a shared library's functions and a cubin's static shared memory: 64-bit, little-endian. Whatever does not add
up is a `ValueError`, never an access outside the file.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

_HEADER = struct.Struct("<16xHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_MAGIC = b"\x7fELF\x02\x01"
_DYNAMIC_SYMBOLS = 11
_UNDEFINED = 0
_GLOBAL_OR_WEAK = (1, 2)
_FUNCTION = 2
_NO_BITS = 8
MOST_SECTIONS = 65_535
LONGEST_NAME = 4096


@dataclass(frozen=True)
class Section:
    """One section of a file."""

    name: str
    """As in `.nv.shared.kernel`."""
    kind: int
    """ELF's `sh_type`."""
    offset: int
    """Of its bytes in the file."""
    size_bytes: int
    """How large it is once loaded."""
    link: int
    """Index of the section it refers to."""


def sections(data: bytes) -> list[Section]:
    """The sections of an ELF file. Raises ValueError where it is none, or damaged."""
    if not data.startswith(_MAGIC):
        raise ValueError("not a 64-bit little-endian ELF file")
    try:
        _, _, _, _, _, start, _, _, _, _, size, count, names_index = _HEADER.unpack_from(data)
        if size != _SECTION.size or count > MOST_SECTIONS or names_index >= count:
            raise ValueError("an ELF header that does not add up")
        raw = [_SECTION.unpack_from(data, start + index * size) for index in range(count)]
    except struct.error as error:
        raise ValueError(f"a damaged ELF file: {error}") from error
    names = raw[names_index]
    found = []
    for name, kind, _, _, offset, length, link, *_ in raw:
        if kind != _NO_BITS and offset + length > len(data):
            raise ValueError("an ELF section that ends outside the file")
        found.append(Section(_text(data, names[4] + name), kind, offset, length, link))
    return found


def exported_functions(data: bytes) -> set[str]:
    """Names of the functions that a shared library defines and exports. Raises ValueError as `sections` does."""
    found = sections(data)
    exported: set[str] = set()
    for section in found:
        if section.kind != _DYNAMIC_SYMBOLS:
            continue
        if section.link >= len(found):
            raise ValueError("an ELF symbol table without names")
        names = found[section.link].offset
        table = data[section.offset : section.offset + section.size_bytes]
        for name, info, _, index, _, _ in _SYMBOL.iter_unpack(table[: len(table) // _SYMBOL.size * _SYMBOL.size]):
            if index != _UNDEFINED and info & 15 == _FUNCTION and info >> 4 in _GLOBAL_OR_WEAK:
                exported.add(_text(data, names + name))
    return exported


def _text(data: bytes, start: int) -> str:
    """The text that ends in a zero byte."""
    end = data.find(b"\0", start, start + LONGEST_NAME)
    if end < 0:
        raise ValueError("an ELF name without an end")
    return data[start:end].decode("utf-8", "replace")
