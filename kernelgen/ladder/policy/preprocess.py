"""Macros of CUDA C++ expanded on tokens, so that no name hides behind `#define` and `##`.

Headers are not read. Both branches of a condition are kept but for `#if 0`, with marks between them; a macro defined
anew keeps its former bodies in `Unit.hidden`, to be searched for names.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TypeAlias

from kernelgen.ladder.policy.cpp_tokens import Token, tokens

MOST_STEPS = 1_000_000
"""Tokens that expanding may read in all: beyond, the source is a bomb."""
Marked: TypeAlias = tuple[Token, frozenset[str]]
CONDITIONS = frozenset({"if", "ifdef", "ifndef"})
BRANCHES = frozenset({"else", "elif", "elifdef", "elifndef"})


class TooMuch(Exception):
    """The macros grow without end."""


@dataclass(frozen=True)
class Macro:
    """One `#define`."""

    parameters: tuple[str, ...] | None
    """Names of its parameters; None for a macro that is no function."""
    body: tuple[Token, ...]
    """What stands for it."""


@dataclass
class Unit:
    """A translation unit after preprocessing."""

    code: list[Token] = field(default_factory=list)
    """Tokens of the program; of kind `branch` where a condition begins, changes or ends."""
    includes: list[tuple[str, Token]] = field(default_factory=list)
    """Headers as written, with their quotes, and where."""
    hidden: list[Token] = field(default_factory=list)
    """Bodies of macros that were defined anew."""


def preprocess(source: str) -> Unit:
    """Expand a source. Raises TooMuch where its macros do not end."""
    return _Reader().read(tokens(source))


class _Reader:
    def __init__(self) -> None:
        self._unit = Unit()
        self._macros: dict[str, Macro] = {}
        self._steps = 0

    def read(self, source: list[Token]) -> Unit:
        waiting: list[Token] = []
        line: list[Token] = []
        skipped = 0
        for token in [*source, Token("line", "\n", 0, 0, False)]:
            if token.kind != "line":
                line.append(token)
                continue
            directive = bool(line) and line[0].text == "#" and line[0].kind == "mark"
            if skipped:
                skipped = self._skip(line[1:] if directive else [], skipped)
            elif directive:
                self._flush(waiting)
                skipped = self._directive(line[1:])
            else:
                waiting += line
            line = []
        self._flush(waiting)
        return self._unit

    def _flush(self, waiting: list[Token]) -> None:
        self._unit.code += self._expand(waiting)
        waiting.clear()

    def _skip(self, words: list[Token], depth: int) -> int:
        """Levels of conditions still to be skipped after a line within `#if 0`."""
        name = words[0].text if words else ""
        if name in CONDITIONS:
            return depth + 1
        if name == "endif" or (depth == 1 and name in BRANCHES):
            self._branch(words[0], "endif" if name == "endif" else "else", only=depth == 1)
            return depth - 1
        return depth

    def _branch(self, token: Token, name: str, *, only: bool = True) -> None:
        if only:
            self._unit.code.append(token._replace(kind="branch", text=name))

    def _directive(self, words: list[Token]) -> int:
        """Take a directive in; 1 where what follows is never compiled."""
        name = words[0].text if words else ""
        if name == "define" and len(words) > 1:
            self._define(words[1:])
        elif name == "include" and len(words) > 1:
            self._unit.includes.append(("".join(token.text for token in words[1:]), words[0]))
        elif name == "embed":
            self._unit.includes.append(("embed", words[0]))
        elif name in CONDITIONS:
            self._branch(words[0], "if")
            return int(name == "if" and [token.text for token in words[1:]] == ["0"])
        elif name in BRANCHES or name == "endif":
            self._branch(words[0], "endif" if name == "endif" else "else")
        return 0

    def _define(self, words: list[Token]) -> None:
        name, rest = words[0].text, words[1:]
        parameters: tuple[str, ...] | None = None
        if rest and rest[0].text == "(" and not rest[0].spaced:
            end = next((i for i, token in enumerate(rest) if token.text == ")"), len(rest) - 1)
            names = [token.text for token in rest[1:end] if token.text != ","]
            parameters = tuple("__VA_ARGS__" if part == "..." else part for part in names)
            rest = rest[end + 1 :]
        former = self._macros.get(name)
        if former is not None:
            self._unit.hidden += former.body
        self._macros[name] = Macro(parameters, tuple(rest))

    def _expand(self, line: list[Token], around: frozenset[str] = frozenset()) -> list[Token]:
        waiting: deque[Marked] = deque((token, around) for token in line)
        done: list[Token] = []
        while waiting:
            self._step()
            token, hidden = waiting.popleft()
            macro = self._macros.get(token.text) if token.kind == "name" and token.text not in hidden else None
            if macro is None:
                done.append(token)
                continue
            given: list[list[Token]] | None = []
            if macro.parameters is not None:
                given = self._arguments(waiting)
            if given is None:
                done.append(token)
                continue
            body = self._substitute(macro, given, hidden | {token.text}, token)
            waiting.extendleft((part, hidden | {token.text}) for part in reversed(body))
        return done

    def _arguments(self, waiting: deque[Marked]) -> list[list[Token]] | None:
        """The arguments of a macro's call, taken from what follows; None where there is no call."""
        if not waiting or waiting[0][0].text != "(":
            return None
        depth = 0
        given: list[list[Token]] = [[]]
        for taken, (token, _) in enumerate(waiting, start=1):
            self._step()
            if token.text == "(" and depth == 0:
                depth = 1
                continue
            depth += {"(": 1, ")": -1}.get(token.text, 0)
            if depth == 0:
                for _ in range(taken):
                    waiting.popleft()
                return given
            if token.text == "," and depth == 1:
                given.append([])
            else:
                given[-1].append(token)
        return None

    def _step(self) -> None:
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise TooMuch

    def _substitute(self, macro: Macro, given: list[list[Token]], hidden: frozenset[str], place: Token) -> list[Token]:
        """A macro's body with its arguments in place, `#` and `##` carried out."""
        bound = _bind(macro.parameters or (), given)
        out: list[Token] = []
        body = macro.body
        index = 0
        while index < len(body):
            token = body[index]
            following = body[index + 1].text if index + 1 < len(body) else ""
            if token.text == "#" and following in bound:
                out.append(token._replace(kind="text", text='"' + " ".join(t.text for t in bound[following]) + '"'))
                index += 2
                continue
            if token.text == "##" and out and index + 1 < len(body):
                right = bound.get(following, [body[index + 1]])
                out[-1:] = _paste(out[-1], right)
                index += 2
                continue
            if token.text in bound:
                argument = bound[token.text]
                out += argument if following == "##" else self._expand(argument, hidden)
            else:
                out.append(token)
            index += 1
        return [token._replace(line=place.line, column=place.column) for token in out]


def _bind(parameters: tuple[str, ...], given: list[list[Token]]) -> dict[str, list[Token]]:
    bound: dict[str, list[Token]] = {}
    for index, name in enumerate(parameters):
        rest = given[index:] if name == "__VA_ARGS__" else given[index : index + 1]
        joined: list[Token] = []
        for part in rest:
            joined += ([Token("mark", ",", 1, 0, False)] if joined else []) + part
        bound[name] = joined
    return bound


def _paste(left: Token, right: list[Token]) -> list[Token]:
    """Two tokens as one, such as a name put together of pieces."""
    if not right:
        return [left]
    made = [token for token in tokens(left.text + right[0].text) if token.kind != "line"]
    return [token._replace(line=left.line, column=left.column) for token in made] + right[1:]
