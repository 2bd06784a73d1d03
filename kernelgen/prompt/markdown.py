"""Fenced blocks and section headings, as CommonMark fences them: how a prompt quotes a source and a reply is cut up.

A fence opens with three or more backticks or tildes and closes with at least as many of the same; headings count only
outside fences. Text is cut at line feeds only: no other separator ends a line.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

_OPENING = re.compile(r"^( {0,3})(`{3,}|~{3,})(.*)$")
_BACKTICKS = re.compile(r"`+")
_SHORTEST_FENCE = 3


def fenced(text: str, info: str) -> str:
    """The text in a fenced block, with one backtick more than any run inside it."""
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=0)
    fence = "`" * max(_SHORTEST_FENCE, longest + 1)
    return f"{fence}{info}\n{text}{'' if text.endswith(chr(10)) else chr(10)}{fence}"


@dataclass(frozen=True)
class Block:
    """One fenced block."""

    info: str
    """The first word after the opening fence, in lower case."""
    text: str
    """The lines inside, joined by line feeds."""


@dataclass
class Section:
    """What stands under a heading."""

    lines: list[str] = field(default_factory=list)
    """All lines, fences included."""
    prose: list[str] = field(default_factory=list)
    """The lines outside fences."""
    blocks: list[Block] = field(default_factory=list)
    """The fenced blocks, in order."""

    @property
    def text(self) -> str:
        """All lines, stripped at both ends; where one fenced block is all there is, what is inside it."""
        if len(self.blocks) == 1 and not any(line.strip() for line in self.prose):
            return self.blocks[0].text.strip()
        return "\n".join(self.lines).strip()


class Unterminated(ValueError):
    """A fence was opened and never closed."""


def sections(text: str, heading: Callable[[str], tuple[str, str] | None]) -> dict[str, Section]:
    """The sections of a text by heading; a repeated heading starts its section anew.

    `heading` gives the name of the section that a line opens and what follows on the same line, or None. Lines before
    the first heading are dropped. Raises Unterminated.
    """
    found: dict[str, Section] = {}
    current = Section()
    fence: re.Match[str] | None = None
    inside: list[str] = []
    for line in text.split("\n"):
        if fence is not None:
            current.lines.append(line)
            if fence[2] in line and _closes(line, fence):
                current.blocks.append(Block(_info(fence), "\n".join(inside)))
                fence = None
            else:
                inside.append(_outdented(line, len(fence[1])) if fence[1] else line)
        elif title := heading(line):
            name, rest = title
            current = found[name] = Section(lines=[rest], prose=[rest])
        else:
            current.lines.append(line)
            fence, inside = _opening(line), []
            if fence is None:
                current.prose.append(line)
    if fence is not None:
        raise Unterminated
    return found


def _opening(line: str) -> re.Match[str] | None:
    match = _OPENING.match(line)
    return None if match and match[2][0] == "`" and "`" in match[3] else match


def _closes(line: str, fence: re.Match[str]) -> bool:
    match = _OPENING.match(line)
    return bool(match and match[2][0] == fence[2][0] and len(match[2]) >= len(fence[2]) and not match[3].strip())


def _info(fence: re.Match[str]) -> str:
    words = fence[3].split()
    return words[0].lower() if words else ""


def _outdented(line: str, width: int) -> str:
    """The line without the spaces by which its fence is indented, as CommonMark has it."""
    return line[min(width, len(line) - len(line.lstrip(" "))) :]
