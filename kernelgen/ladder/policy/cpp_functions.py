"""Which function each token of a CUDA C++ source is part of, and whether that runs on the host or on the device."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from kernelgen.ladder.policy.cpp_tokens import Token
from kernelgen.ladder.policy.names import words

Where = Literal["top", "host", "device", "both"]
NOT_NAMES = words(
    "alignas __align__ __launch_bounds__ __attribute__ __attribute decltype noexcept requires __declspec throw "
    "explicit __cluster_dims__ __block_size__ __maxnreg__ sizeof static_assert asm __asm__ __asm"
)
KINDS = frozenset({"class", "struct", "union", "enum"})


@dataclass
class Function:
    """One function with a body."""

    name: str
    """As written before its parameters."""
    where: Where
    """Where it runs."""
    declaration: list[Token]
    """All before its body."""
    parameters: list[list[Token]]
    """Tokens of each parameter."""
    is_kernel: bool
    """Whether it is `__global__`."""
    is_c: bool
    """Whether it has C linkage."""
    body: list[Token] = field(default_factory=list)
    """Tokens between its braces."""


class Piece(NamedTuple):
    """One token with its function."""

    token: Token
    where: Where
    function: Function | None


@dataclass
class _Level:
    """One open brace."""

    kind: str
    where: Where
    function: Function | None
    is_c: bool


def segment(code: list[Token]) -> tuple[list[Piece], list[Function], Token | None]:
    """Pieces, functions in order, and the first brace that does not fit; None where all do."""
    reader = _Segmenter()
    for token in code:
        reader.take(token)
    unfit = reader.unfit
    if unfit is None and len(reader.levels) > 1:
        unfit = code[-1]
    return reader.pieces, reader.functions, unfit


class _Segmenter:
    def __init__(self) -> None:
        self.levels = [_Level("space", "top", None, False)]
        self.pieces: list[Piece] = []
        self.functions: list[Function] = []
        self.unfit: Token | None = None
        self._declared: list[Token] = []
        self._branches: list[list[_Level]] = []

    def take(self, token: Token) -> None:
        """The next token."""
        level = self.levels[-1]
        if token.kind == "branch":
            self._branch(token.text)
            return
        if token.text == "{" and token.kind == "mark":
            self.levels.append(self._open(level))
            self._declared = []
        elif token.text == "}" and token.kind == "mark":
            self._declared = []
            if len(self.levels) > 1:
                self.levels.pop()
            elif self.unfit is None:
                self.unfit = token
        elif token.text == ";" and token.kind == "mark":
            self._declared = []
        else:
            self._declared.append(token)
        where = level.where
        if where == "top" and any(t.text in ("__device__", "__global__") for t in self._declared[:24]):
            where = "device"
        if where == "both" and self._branches:
            # as in `#ifdef __CUDA_ARCH__`
            where = "device"
        self.pieces.append(Piece(token, where, level.function))
        if level.function is not None:
            level.function.body.append(token)

    def _branch(self, name: str) -> None:
        """Every branch of a condition begins with the braces that were open before it."""
        if name == "if":
            self._branches.append(list(self.levels))
        elif self._branches:
            if name == "else":
                self.levels = list(self._branches[-1])
            else:
                self._branches.pop()

    def _open(self, level: _Level) -> _Level:
        words = [token.text for token in self._declared]
        if level.function is not None:
            is_device = level.where == "host" and "__device__" in words
            return _Level("block", "device" if is_device else level.where, level.function, level.is_c)
        is_c = level.is_c or ("extern" in words and '"C"' in words)
        opening = _first_group(self._declared)
        if "namespace" in words or words[-2:] == ["extern", '"C"']:
            return _Level("space", "top", None, is_c)
        if opening is None or (words and words[-1] == "=") or "=" in words[:opening]:
            return _Level("class" if KINDS & set(words) else "value", level.where, None, is_c)
        return self._function(words, opening, is_c)

    def _function(self, words: list[str], opening: int, is_c: bool) -> _Level:
        on_device = "__device__" in words or "__global__" in words
        where: Where = "both" if on_device and "__host__" in words else "device" if on_device else "host"
        function = Function(
            name=words[opening - 1],
            where=where,
            declaration=list(self._declared),
            parameters=_parameters(self._declared, opening),
            is_kernel="__global__" in words,
            is_c=is_c,
        )
        self.functions.append(function)
        return _Level("function", where, function, is_c)


def _first_group(declared: list[Token]) -> int | None:
    """Index of the parenthesis that opens the parameters of a function; None where none does."""
    depth = 0
    skipping = 0
    for index, token in enumerate(declared):
        if token.text == "(":
            named = index > 0 and (declared[index - 1].kind == "name" or declared[index - 1].text in ("]", ")", ">"))
            before = declared[index - 1].text if index else ""
            if depth == 0 and before in NOT_NAMES:
                skipping = 1
            elif depth == 0 and named:
                return index
            depth += 1
        elif token.text == ")":
            depth -= 1
            skipping = 0 if depth == 0 else skipping
    return None


def _parameters(declared: list[Token], opening: int) -> list[list[Token]]:
    depth = 0
    found: list[list[Token]] = [[]]
    for token in declared[opening:]:
        if token.text in "([<{" and token.kind == "mark":
            depth += 1
            if depth == 1:
                continue
        elif token.text in ")]>}" and token.kind == "mark":
            depth -= 1
            if depth == 0:
                break
        if token.text == "," and depth == 1:
            found.append([])
        else:
            found[-1].append(token)
    return [parameter for parameter in found if parameter and [t.text for t in parameter] != ["void"]]
