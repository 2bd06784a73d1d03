"""Extents of a target's tensors: a number, or arithmetic over the shape's dimensions such as `(B+1)*((S+63)//64)`."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping

from kernelgen.errors import ConfigError, nearest

OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


def extent(written: str | int, dims: Mapping[str, int]) -> int:
    """The number an extent stands for. Raises ConfigError for an unknown dimension or an operation but `+ - * // %`."""
    if isinstance(written, int):
        return written
    try:
        return _value(ast.parse(written, mode="eval").body, dims)
    except (SyntaxError, ZeroDivisionError) as error:
        raise ConfigError(f"extent '{written}' cannot be computed: {error}") from error


def _value(node: ast.expr, dims: Mapping[str, int]) -> int:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.Name):
        if node.id not in dims:
            raise ConfigError(
                f"an extent names the dimension '{node.id}', which the shape has not{nearest(node.id, dims)}"
            )
        return dims[node.id]
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        return OPERATORS[type(node.op)](_value(node.left, dims), _value(node.right, dims))
    raise ConfigError(f"extent '{ast.unparse(node)}' is not made of dimensions, numbers and + - * // % alone")
