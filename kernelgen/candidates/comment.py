"""Foreign text inside comments: escaped so that no line of it can end the comment, and read back exactly.

Escaped are the backslash, every control, format and separator character but the tab, lone surrogates, and the `*/` that
would end a C comment. `unescaped(escaped(text)) == text` for every text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator

from kernelgen.records import Language

PREFIX: dict[Language, str] = {"python": "#", "cuda": " *"}
"""What each line of a header begins with."""

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_LONGEST_SHORT_ESCAPE = 0xFFFF
_ESCAPE = re.compile(r"\\(?:u([0-9a-f]{4})|U([0-9a-f]{8})|(.))")


def escaped(text: str) -> str:
    """The text on one line, of printable characters and tabs."""
    if text.isascii() and text.isprintable() and "\\" not in text:
        return text.replace("*/", r"*\/")
    return "".join(map(_escape, text)).replace("*/", r"*\/")


def unescaped(text: str) -> str:
    """The text that `escaped` was given."""
    return _ESCAPE.sub(lambda match: match[3] or chr(int(match[1] or match[2], 16)), text)


def commented(lines: Iterable[str], language: Language) -> Iterator[str]:
    """The lines as comment lines; their text must be escaped already."""
    prefix = PREFIX[language]
    for line in lines:
        yield f"{prefix} {line}\n" if line else f"{prefix}\n"


def uncommented(line: str, language: Language) -> str | None:
    """The text of a comment line, or None for any other line."""
    prefix = PREFIX[language]
    if line == prefix:
        return ""
    return line.removeprefix(f"{prefix} ") if line.startswith(f"{prefix} ") else None


def _escape(character: str) -> str:
    if character == "\\":
        return r"\\"
    if character == "\t" or unicodedata.category(character) not in _HIDDEN:
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code <= _LONGEST_SHORT_ESCAPE else f"\\U{code:08x}"
