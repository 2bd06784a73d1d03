"""Numbers as people's locales print them: `27,595,520`, `27.595.520`, `27 595 520`, `65.77`, `65,77`.

One file has one decimal mark, and the file itself must tell which: a figure such as `65,77` or `341,204,992` does,
`95,712` does not. A file that shows both marks, or only figures that can be read two ways, is refused, never guessed.
"""

from __future__ import annotations

import math
import re

from kernelgen.errors import ProfileError

_NUMBER = re.compile(r"[+-]?(?P<mantissa>[0-9][0-9.,]*|[.,][0-9]+)(?:[eE][+-]?[0-9]+)?")
# what locales put between groups of three besides point and comma: spaces of three widths, apostrophes
_SPACES = str.maketrans("", "", " \u00a0\u202f\u2009'\u2019")
_SPACED = re.compile(r"[+-]?[0-9]{1,3}(?:[ \u00a0\u202f\u2009'\u2019][0-9]{3})+(?![0-9])")
_OTHER = {".": ",", ",": "."}
_GROUPED = {mark: re.compile(rf"[0-9]{{1,3}}(?:{re.escape(mark)}[0-9]{{3}})+") for mark in _OTHER}
EITHER = "either"


def decimal_mark(mantissa: str) -> str | None:
    """The decimal mark that a mantissa gives away: `.`, `,`, `EITHER` when it can be read two ways, or None."""
    marks = [mark for mark in mantissa if mark in _OTHER]
    if not marks:
        return None
    last = marks[-1]
    if len(set(marks)) > 1:
        return last if marks.count(last) == 1 else None
    if len(marks) > 1:
        return _OTHER[last] if _GROUPED[last].fullmatch(mantissa) else None
    grouped = _GROUPED[last].fullmatch(mantissa) and not mantissa.startswith("0")
    return EITHER if grouped else last


class NumberStyle:
    """Learns one file's decimal mark from its figures, then reads them."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._shown: dict[str, tuple[str, int]] = {}
        self._seen: set[str] = set()
        self._mark = "."

    def observe(self, text: str, line: int) -> None:
        """Learn from a figure that has a unit."""
        if text in self._seen:
            return
        self._seen.add(text)
        match = _NUMBER.fullmatch(_plain(text))
        mark = None if match is None else decimal_mark(match["mantissa"])
        if mark is not None:
            self._shown.setdefault(mark, (text, line))

    def settle(self) -> None:
        """Fix the mark; ProfileError when the file does not tell it, or tells two."""
        self._seen.clear()
        if "." in self._shown and "," in self._shown:
            (point, first), (comma, second) = self._shown["."], self._shown[","]
            raise ProfileError(
                f"{self._file} mixes two ways of writing numbers, '{point}' in line {first} and '{comma}' in line "
                f"{second}; export the whole file in one locale"
            )
        if "," in self._shown:
            self._mark = ","
        elif EITHER in self._shown and "." not in self._shown:
            text, line = self._shown[EITHER]
            raise ProfileError(
                f"{self._file}:{line}: '{text}' is ambiguous, its mark may separate thousands or decimals, and no "
                "other figure of the file tells which; export more metrics with it, as ncu's --set full does"
            )

    def number(self, text: str) -> float | None:
        """The text's value, or None where it is not a finite number."""
        match = _NUMBER.fullmatch(_plain(text))
        if match is None:
            return None
        mantissa, thousands = match["mantissa"], _OTHER[self._mark]
        whole, _, fraction = mantissa.partition(self._mark)
        grouped = thousands not in whole or _GROUPED[thousands].fullmatch(whole) is not None
        if not grouped or any(mark in fraction for mark in _OTHER):
            return None
        value = float(_plain(text).replace(thousands, "").replace(self._mark, "."))
        return value if math.isfinite(value) else None


def _plain(text: str) -> str:
    """The text without spaces or apostrophes between groups of three digits."""
    stripped = text.strip()
    return stripped.translate(_SPACES) if _SPACED.match(stripped) else stripped
