"""What a CUDA C++ launcher keeps from call to call: pointers of its inputs, containers of results, counts of calls.

Settings made once, and scratch memory allocated once, may be kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kernelgen.ladder.policy.cpp_functions import Function, Piece
from kernelgen.ladder.policy.cpp_tokens import Token
from kernelgen.ladder.policy.findings import Finding
from kernelgen.ladder.policy.names import words

CACHE = "policy.cache"
CONTAINERS = frozenset({"map", "unordered_map", "multimap", "set", "unordered_set", "vector", "deque", "list", "array"})
NOT_VARIABLES = words(
    "typedef using template struct class union enum extern namespace constexpr const __device__ __constant__ "
    "__shared__ __global__ friend static_assert operator return if for while public private protected"
)
KEYED = "a pointer of an input is kept and known again"


@dataclass(frozen=True)
class _Kept:
    """A variable that outlives the call."""

    name: Token
    is_pointer: bool
    is_container: bool


def check(pieces: list[Piece], functions: list[Function]) -> Iterator[Finding]:
    """Everything that outlives a call and could hold a result."""
    kept = {variable.name.text: variable for variable in _variables(pieces)}
    if not kept:
        return
    inputs = {
        parameter[-1].text
        for function in functions
        if function.where == "host"
        for parameter in function.parameters
        if any(token.text == "*" for token in parameter)
    }
    for variable in kept.values():
        if variable.is_container:
            reason = "a container outlives the call and could hold results"
            yield Finding(CACHE, reason, variable.name.line, variable.name.column, True)
    host = [piece.token for piece in pieces if piece.where == "host"]
    for index, token in enumerate(host):
        used = kept.get(token.text) if token.kind == "name" else None
        if used is not None:
            yield from _use(used, host, index, inputs)


def _use(variable: _Kept, host: list[Token], index: int, inputs: set[str]) -> Iterator[Finding]:
    token = host[index]
    if _is_keyed(variable, host, index, inputs):
        yield Finding(CACHE, KEYED, token.line, token.column)
        return
    before, after = _around(host, index)
    if not variable.is_pointer and ("++" in (before, after) or after == "+="):
        yield Finding(CACHE, "calls are counted", token.line, token.column, True)
    elif [t.text for t in host[max(0, index - 2) : index]] == ["if", "("] and after == ")":
        following = [t.text for t in host[index + 2 : index + 6] if t.text != "{"]
        if following[:1] == ["return"] and following[1:2] in (["0"], ["cudaSuccess"]):
            yield Finding(CACHE, "the launcher returns without launching once it has run", token.line, token.column)


def _is_keyed(variable: _Kept, host: list[Token], index: int, inputs: set[str]) -> bool:
    """Whether a use of a lasting variable sets it to an input's pointer, compares it with one or looks one up in it."""
    before, after = _around(host, index)
    value = _until(host, index + 2, {";"} if after == "=" else {";", "?", "&&", "||", "{", ")"})
    if after in ("=", "==", "!=") and any(part.text in inputs for part in value) and not _is_allocation(value):
        return True
    if before in ("==", "!=") and index > 1 and host[index - 2].text in inputs:
        return True
    return variable.is_container and any(part.text in inputs for part in _until(host, index + 1, {";"})[:12])


def _around(host: list[Token], index: int) -> tuple[str, str]:
    """The tokens before and after one."""
    return host[index - 1].text if index else "", host[index + 1].text if index + 1 < len(host) else ""


def _is_allocation(value: list[Token]) -> bool:
    return any("alloc" in token.text.lower() for token in value)


def _until(host: list[Token], start: int, ends: set[str]) -> list[Token]:
    taken: list[Token] = []
    for token in host[start : start + 64]:
        if token.text in ends:
            break
        taken.append(token)
    return taken


def _variables(pieces: list[Piece]) -> Iterator[_Kept]:
    """Static variables of host functions, and the host's variables outside functions."""
    statement: list[Piece] = []
    for piece in pieces:
        if piece.token.kind == "mark" and piece.token.text in (";", "{", "}", "="):
            variable = _variable(statement)
            if variable is not None and piece.token.text != "}":
                yield variable
            statement = [piece] if piece.token.text == "=" else []
        else:
            statement.append(piece)


def _variable(statement: list[Piece]) -> _Kept | None:
    """The variable that a statement declares, up to its value; None where it declares none that lasts."""
    words = [piece.token.text for piece in statement]
    if not statement or any(piece.where not in ("host", "top") for piece in statement):
        return None
    is_static = words[0] in ("static", "thread_local") or words[:2] == ["inline", "static"]
    if (statement[0].where == "host" and not is_static) or "=" in words[:1]:
        return None
    is_pointer = "*" in words
    refused = NOT_VARIABLES - {"const"} if is_pointer else NOT_VARIABLES
    if set(words) & refused or "(" in words:
        return None
    names = [piece.token for piece in statement if piece.token.kind == "name"]
    if "[" in words:
        names = [piece.token for piece in statement[: words.index("[")] if piece.token.kind == "name"]
    if len(names) < 2:
        return None
    return _Kept(names[-1], is_pointer, bool(CONTAINERS & set(words)))
