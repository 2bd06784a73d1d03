"""A kernel's source as the rules see it: statements, with comments and the contents of strings aside.

Layout does not matter to a rule, so a statement written over several lines is one text with single blanks. The scanner
is lexical and never fails, also on sources that do not parse; a string nested in an f-string's braces ends it early.
"""

from __future__ import annotations

import re
from functools import lru_cache

from kernelgen.records import Language

PYTHON_ASIDE = re.compile(
    r"""
    (?P<comment> \#[^\n]* | \\\r?\n )
  | (?P<string> \"{3} (?: [^\\] | \\. )*? (?: \"{3} | \Z )
              | '{3} (?: [^\\] | \\. )*? (?: '{3} | \Z )
              | " (?: [^"\\\n] | \\. )* "?
              | ' (?: [^'\\\n] | \\. )* '? )
    """,
    re.VERBOSE | re.DOTALL,
)
CUDA_ASIDE = re.compile(
    r"""
    (?P<comment> //[^\n]* | /\* .*? (?: \*/ | \Z ) | \\\r?\n )
  | (?P<string> \bR"(?P<fence>[^()\\\s]{0,16})\( .*? (?: \)(?P=fence)" | \Z )
              | " (?: [^"\\\n] | \\. )* "?
              | (?<![0-9A-Za-z_])' (?: [^'\\\n] | \\. )* ' )
    """,
    re.VERBOSE | re.DOTALL,
)
PYTHON_BREAK = re.compile(r"[\[\](){}\n;]")
CUDA_BREAK = re.compile(r"[;{}]|(?m:^\s*\#[^\n]*$)")


def _without(aside: re.Pattern[str], source: str) -> str:
    return aside.sub(lambda found: '""' if found["string"] else " ", source)


@lru_cache(maxsize=64)
def statements(source: str, language: Language) -> tuple[str, ...]:
    """The statements of a source in order, single-blanked; strings are `""`, comments are gone."""
    cut = _cuda_pieces if language == "cuda" else _python_pieces
    return tuple(text for piece in cut(source) if (text := " ".join(piece.split())))


def _python_pieces(source: str) -> list[str]:
    """Cut at line ends and semicolons outside brackets."""
    code = _without(PYTHON_ASIDE, source)
    pieces: list[str] = []
    start = depth = 0
    for found in PYTHON_BREAK.finditer(code):
        mark = found[0]
        if mark in "([{":
            depth += 1
        elif mark in ")]}":
            depth = max(depth - 1, 0)
        elif depth == 0:
            pieces.append(code[start : found.start()])
            start = found.end()
    pieces.append(code[start:])
    return pieces


def _cuda_pieces(source: str) -> list[str]:
    """Cut at semicolons and braces; a preprocessor line stands alone."""
    code = _without(CUDA_ASIDE, source)
    pieces: list[str] = []
    start = 0
    for found in CUDA_BREAK.finditer(code):
        pieces.append(code[start : found.start()])
        if found[0] not in ";{}":
            pieces.append(found[0])
        start = found.end()
    pieces.append(code[start:])
    return pieces
