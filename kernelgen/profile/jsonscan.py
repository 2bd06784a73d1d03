"""Reads a large JSON object piece by piece: its members in order, and the items of an array member one at a time.

Only the value at hand is held. A file that is cut or damaged ends in a ProfileError with file and line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from kernelgen.errors import ProfileError

LONGEST_VALUE_CHARS = 1 << 26
"""A value longer than this is a string whose end is lost."""
LONGEST_TOKEN_CHARS = 64
"""No number, word or escape is longer: an error this far before the end of what was read is not for want of more."""
NUMBER_TAIL_CHARS = 3
"""So near the end of a piece a number may go on in the next one: json reads `1` of `1`, `1.` and `1e+`."""

_SPACE = re.compile(r"[ \t\r\n]*")
_COMMA = re.compile(r"[ \t\r\n]*,[ \t\r\n]*")
_OPEN_ENDED = "Unterminated string"  # json reports these at the string's start, wherever the text ends


class JsonScanner:
    """One pass over the JSON object that the pieces make up."""

    def __init__(self, pieces: Iterator[str], file: str) -> None:
        self._pieces = pieces
        self._file = file
        self._text = ""
        self._at = 0
        self._line = 1
        self._counted = 0
        self._decode = json.JSONDecoder().raw_decode

    @property
    def line(self) -> int:
        """Line of the file at which the scanner stands, counted from 1."""
        self._line += self._text.count("\n", self._counted, self._at)
        self._counted = self._at
        return self._line

    def members(self) -> Iterator[str]:
        """Keys of the object; between two keys the caller takes the value with `value` or `items`."""
        self._expect("{")
        if self._accept("}"):
            return
        while True:
            key = self.value()
            if not isinstance(key, str):
                raise self._broken("a key is not a string")
            self._expect(":")
            yield key
            if self._accept("}"):
                return
            self._expect(",")

    def items(self) -> Iterator[Any]:
        """Items of the array that comes next."""
        self._expect("[")
        if self._accept("]"):
            return
        while True:
            yield from self._items_at_hand()
            yield self.value()
            if self._accept("]"):
                return
            self._expect(",")

    def _items_at_hand(self) -> Iterator[Any]:
        """The items that lie whole in the piece at hand with the comma behind them: nearly all, at the least cost."""
        self._next()
        decode, comma = self._decode, _COMMA.match
        while True:
            try:
                value, end = decode(self._text, self._at)
            except (ValueError, RecursionError):
                return
            found = comma(self._text, end)
            if found is None or found.end() == len(self._text):
                return
            self._at = found.end()
            yield value

    def value(self) -> Any:
        """The value that comes next, whole."""
        self._next()
        while True:
            try:
                value, end = self._decode(self._text, self._at)
            except json.JSONDecodeError as error:
                early = error.pos < len(self._text) - LONGEST_TOKEN_CHARS and not error.msg.startswith(_OPEN_ENDED)
                if early or len(self._text) - self._at > LONGEST_VALUE_CHARS or not self._more():
                    raise self._broken(error.msg) from error
                continue
            except (RecursionError, ValueError) as error:  # nested too deeply; a number of thousands of digits
                raise self._broken(str(error)) from error
            if len(self._text) - end < NUMBER_TAIL_CHARS and self._more():
                continue
            self._at = end
            return value

    def _next(self) -> str:
        """The next character that is not a space, or an empty text at the end."""
        while True:
            found = _SPACE.match(self._text, self._at)
            self._at = found.end() if found else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def _accept(self, char: str) -> bool:
        if self._next() != char:
            return False
        self._at += 1
        return True

    def _expect(self, char: str) -> None:
        if not self._accept(char):
            raise self._broken(f"expected '{char}'")

    def _more(self) -> bool:
        """Read another piece; False at the end of the file."""
        piece = next(self._pieces, "")
        if not piece:
            return False
        self._line += self._text.count("\n", self._counted, self._at)
        self._text, self._at, self._counted = self._text[self._at :] + piece, 0, 0
        return True

    def _broken(self, reason: str) -> ProfileError:
        return ProfileError(
            f"{self._file}:{self.line}: is no whole JSON from here on ({reason}); the file was cut or damaged, "
            "export it again"
        )
