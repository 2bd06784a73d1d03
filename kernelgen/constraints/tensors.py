"""The dtype of a tensor in host code, as far as its text tells it."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from types import MappingProxyType

Values = Mapping[str, Sequence[ast.expr | None]]
"""What is assigned to each name of a function; None for what is not told."""

_SAME = frozenset(
    {"view", "reshape", "contiguous", "transpose", "permute", "t", "unsqueeze", "squeeze", "flatten", "clone", "expand"}
)
"""Methods that keep a tensor's dtype, where none is named."""
_FLOAT32 = frozenset({"empty", "zeros", "ones", "empty_strided"})
"""Functions of torch that make float32, where no dtype is named."""
_MAKERS = _FLOAT32 | {"full", "arange", "tensor"}
_LIKE = frozenset({"empty_like", "zeros_like", "ones_like", "full_like"})
_CONVERTED: Mapping[str, str] = MappingProxyType(
    {"float": "float32", "half": "float16", "bfloat16": "bfloat16", "double": "float64", "int": "int32"}
)
"""Methods that convert, with what they convert to."""


def tensor_dtype(node: ast.expr, values: Values, known: Mapping[str, str]) -> str | None:
    """torch's name of an expression's dtype, or None; `known` are those of the function's arguments."""
    return _dtype(node, values, known, frozenset())


def _dtype(node: ast.expr, values: Values, known: Mapping[str, str], asked: frozenset[str]) -> str | None:
    match node:
        case ast.Name(id=name):
            given = [] if name in asked else values.get(name, [])
            if not given:
                return known.get(name)
            found = {None if value is None else _dtype(value, values, known, asked | {name}) for value in given}
            return found.pop() if len(found) == 1 else None
        case ast.Subscript(value=value) | ast.Attribute(value=value, attr="T" | "mT" | "data"):
            return _dtype(value, values, known, asked)
        case ast.Call(func=ast.Attribute(value=value, attr=method)):
            return _of_call(node, value, method, values, known, asked)
    return None


def _of_call(
    call: ast.Call, value: ast.expr, method: str, values: Values, known: Mapping[str, str], asked: frozenset[str]
) -> str | None:
    named = next((keyword.value for keyword in call.keywords if keyword.arg == "dtype"), None)
    literal = next((dtype for n in (named, *call.args) if n is not None and (dtype := _literal(n))), None)
    if literal is not None:
        return literal
    if isinstance(named, ast.Attribute) and named.attr == "dtype":
        return _dtype(named.value, values, known, asked)
    if named is not None:
        return None
    if method in _MAKERS:
        return "float32" if method in _FLOAT32 else None
    if method in _LIKE:
        return _dtype(call.args[0], values, known, asked) if call.args else None
    return _CONVERTED.get(method) or (_dtype(value, values, known, asked) if method in _SAME else None)


def _literal(node: ast.expr) -> str | None:
    """The dtype that `torch.float16` and the like names."""
    is_torch = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "torch"
    return node.attr if is_torch and isinstance(node, ast.Attribute) else None
