"""CUDA C++ as tokens with their places, comments gone and spliced lines joined. Lexical: it never fails.

What no literal or operator fits, such as a quote that is never closed, is a token of kind `bad`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import NamedTuple

TOKEN = re.compile(
    r"""
    (?P<blank> [ \t\r\f\v]+ | //[^\n]* | /\*.*?\*/ )
  | (?P<line> \n )
  | (?P<open> /\* .* )
  | (?P<raw> (?:u8|[uUL])?R"(?P<fence>[^()\\\s]{0,16})\( )
  | (?P<text> (?:u8|[uUL])? " (?: [^"\\\n] | \\[^\n] )* "? )
  | (?P<char> (?:u8|[uUL])? ' (?: [^'\\\n] | \\[^\n] )* '? )
  | (?P<number> \.?[0-9] (?: [eEpP][+-] | '[0-9A-Za-z_] | [0-9A-Za-z_.] )* )
  | (?P<name> [^\W\d][\w$]* | \$[\w$]* )
  | (?P<mark> %:%: | %: | <% | %>
            | <<< | >>> | \.\.\. | ->\* | <<= | >>= | -> | :: | \+\+ | -- | && | \|\| | \#\# | << | >>
            | [-+*/%&|^<>=!]= | [-+*/%&|^<>=!~?:;,.(){}\[\]\#] )
  | (?P<bad> . )
    """,
    re.VERBOSE | re.DOTALL,
)
SPLICE = re.compile(r"\\[ \t]*\r?\n")
RAW = re.compile(r'[^"]*"(?P<fence>[^()\\\s]*)\((?P<body>.*)\)(?P=fence)"', re.DOTALL)


# other spellings of a mark
DIGRAPHS = {"%:%:": "##", "%:": "#", "<%": "{", "%>": "}"}


class Token(NamedTuple):
    """One token."""

    kind: str
    """`name`, `number`, `text`, `char`, `mark`, `line` for a line's end, or `bad`."""
    text: str
    """As written; of a literal with its quotes."""
    line: int
    """Line, from 1."""
    column: int
    """Character of the line, from 0."""
    spaced: bool
    """Whether a blank stands before it."""

    def content(self) -> str:
        """What a text literal holds, escapes as written."""
        raw = RAW.fullmatch(self.text) if "R" in self.text.partition('"')[0] else None
        return raw["body"] if raw else self.text.partition('"')[2].removesuffix('"')


def tokens(source: str) -> list[Token]:
    """The tokens of a source, ends of lines among them."""
    joined, starts, offsets = _splice(source)
    lines = [0, *(found.end() for found in re.finditer("\n", source))]
    read: list[Token] = []
    spaced = True
    end = 0
    while found := TOKEN.match(joined, end):
        kind, text, end = _kind(found, joined)
        if kind == "blank":
            spaced = True
            continue
        place = found.start() + offsets[bisect_right(starts, found.start()) - 1]
        line = bisect_right(lines, place)
        read.append(Token(kind, DIGRAPHS.get(text, text), line, place - lines[line - 1], spaced))
        spaced = kind == "line"
    return read


def _kind(found: re.Match[str], joined: str) -> tuple[str, str, int]:
    """Kind, text and end of a token. What is opened and never closed is bad, and a raw text takes all that follows."""
    kind, text = found.lastgroup or "bad", found[0]
    if found["raw"] is not None:
        closing = f'){found["fence"]}"'
        close = joined.find(closing, found.end())
        end = len(joined) if close < 0 else close + len(closing)
        return ("bad" if close < 0 else "text"), joined[found.start() : end], end
    unclosed = kind == "open" or (kind in ("text", "char") and not _is_closed(text))
    return ("bad" if unclosed else kind), text, found.end()


def _is_closed(literal: str) -> bool:
    quote = literal[-1]
    opening = literal.find(quote)
    return quote in "\"'" and opening < len(literal) - 1 and literal.strip("uUL8")[0] == quote


def _splice(source: str) -> tuple[str, list[int], list[int]]:
    """The source with spliced lines joined, and where each piece of it came from."""
    pieces: list[str] = []
    starts, offsets = [0], [0]
    last = length = 0
    for found in SPLICE.finditer(source):
        pieces.append(source[last : found.start()])
        length += found.start() - last
        last = found.end()
        starts.append(length)
        offsets.append(last - length)
    return "".join([*pieces, source[last:]]), starts, offsets
