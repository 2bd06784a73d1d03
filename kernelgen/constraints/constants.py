"""What constant expressions of a candidate's source stand for, read with `ast` and never executed.

Numbers, texts, tuples, dicts, comprehensions over them, and the few functions that configurations are computed with.
The source is anyone's, so numbers, sequences and the work in all are bounded; what is beyond that, or not constant, is
UNKNOWN.
"""

from __future__ import annotations

import ast
import itertools
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Any, TypeAlias

MOST_STEPS = 50_000
"""Expressions evaluated for one source."""
LONGEST_SEQUENCE = 4096
LARGEST_NUMBER = 2**63
LARGEST_EXPONENT = 64


class Unknown(Enum):
    """The one value of an expression that cannot be told."""

    UNKNOWN = "unknown"


UNKNOWN = Unknown.UNKNOWN
Constant: TypeAlias = Any
"""bool, int, float, str, None, tuple, dict, `Config`, or UNKNOWN."""


@dataclass(frozen=True)
class Config:
    """A `triton.Config(...)` of constants."""

    kwargs: Mapping[str, Constant]
    """Compile-time arguments."""
    options: Mapping[str, Constant] = field(default_factory=dict)
    """num_warps, num_stages and the like, as far as stated."""


class _NotConstant(Exception):
    """Leaves an evaluation; never leaves this module."""


_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = MappingProxyType(
    {
        ast.Add: operator.add,
        ast.Sub: operator.sub,
        ast.Mult: operator.mul,
        ast.FloorDiv: operator.floordiv,
        ast.Div: operator.truediv,
        ast.Mod: operator.mod,
    }
)
_COMPARE: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = MappingProxyType(
    {
        ast.Eq: operator.eq,
        ast.NotEq: operator.ne,
        ast.Lt: operator.lt,
        ast.LtE: operator.le,
        ast.Gt: operator.gt,
        ast.GtE: operator.ge,
        ast.In: lambda a, b: a in b,
        ast.NotIn: lambda a, b: a not in b,
        ast.Is: lambda a, b: a is b,
        ast.IsNot: lambda a, b: a is not b,
    }
)


class Evaluator:
    """Evaluates expressions of one source; all evaluations together are bounded."""

    def __init__(self) -> None:
        self._left = MOST_STEPS

    def value(self, node: ast.expr, names: Mapping[str, Constant]) -> Constant:
        """What the expression stands for, or UNKNOWN."""
        try:
            return self._value(node, names)
        except (_NotConstant, ArithmeticError, TypeError, ValueError, LookupError):
            return UNKNOWN

    def _value(self, node: ast.expr, names: Mapping[str, Constant]) -> Constant:
        self._left -= 1
        if self._left < 0:
            raise _NotConstant
        match node:
            case ast.Constant(value=value) if isinstance(value, bool | int | float | str | None):
                return _bounded(value)
            case ast.Name(id=name):
                return _known(names.get(name, UNKNOWN))
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                return _bounded(tuple(self._value(element, names) for element in elements))
            case ast.Dict(keys=keys, values=values) if None not in keys:
                pairs = zip(keys, values, strict=True)
                return {self._value(k, names): self._value(v, names) for k, v in pairs if k is not None}
            case (
                ast.ListComp(elt=element, generators=generators) | ast.GeneratorExp(elt=element, generators=generators)
            ):
                inner = self._comprehension(generators, dict(names))
                return _bounded(tuple(itertools.islice((self._value(element, n) for n in inner), LONGEST_SEQUENCE + 1)))
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self._value(body if self._value(test, names) else orelse, names)
            case ast.Subscript(value=value, slice=index):
                return self._value(value, names)[self._value(index, names)]
            case ast.Call():
                return self._call(node, names)
        return self._operation(node, names)

    def _operation(self, node: ast.expr, names: Mapping[str, Constant]) -> Constant:
        match node:
            case ast.BinOp(left=left, op=op, right=right):
                return self._binary(op, self._value(left, names), self._value(right, names))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self._value(operand, names)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return not self._value(operand, names)
            case ast.BoolOp(op=ast.And(), values=values):
                return all(self._value(value, names) for value in values)
            case ast.BoolOp(op=ast.Or(), values=values):
                return any(self._value(value, names) for value in values)
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARE:
                return _COMPARE[type(op)](self._value(left, names), self._value(right, names))
        raise _NotConstant

    def _binary(self, op: ast.operator, left: Constant, right: Constant) -> Constant:
        both_numbers = isinstance(left, int | float) and isinstance(right, int | float)
        if type(op) in _BINARY and both_numbers:
            return _bounded(_BINARY[type(op)](left, right))
        if isinstance(op, ast.Add) and isinstance(left, tuple) and isinstance(right, tuple):
            return _bounded(left + right)
        if isinstance(op, ast.Pow | ast.LShift) and isinstance(left, int) and isinstance(right, int):
            if not 0 <= right <= LARGEST_EXPONENT:
                raise _NotConstant
            return _bounded(left**right if isinstance(op, ast.Pow) else left << right)
        raise _NotConstant

    def _comprehension(
        self, generators: list[ast.comprehension], names: dict[str, Constant]
    ) -> Iterator[dict[str, Constant]]:
        if not generators:
            yield names
            return
        first, *rest = generators
        for item in self._value(first.iter, names):
            inner = {**names, **_bound(first.target, item)}
            if all(self._value(condition, inner) for condition in first.ifs):
                yield from self._comprehension(rest, inner)

    def _call(self, node: ast.Call, names: Mapping[str, Constant]) -> Constant:
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if any(isinstance(argument, ast.Starred) for argument in node.args) or None in {k.arg for k in node.keywords}:
            raise _NotConstant
        arguments = [self._value(argument, names) for argument in node.args]
        if called == "Config":
            options = {k.arg: self.value(k.value, names) for k in node.keywords if k.arg is not None}
            return Config(arguments[0] if arguments else options.pop("kwargs", {}), options)
        if called == "dict" and not arguments:
            return {keyword.arg: self._value(keyword.value, names) for keyword in node.keywords}
        if called not in _FUNCTIONS or node.keywords:
            raise _NotConstant
        return _bounded(_FUNCTIONS[called](*arguments))


def _known(value: Constant) -> Constant:
    if value is UNKNOWN:
        raise _NotConstant
    return value


def _bounded(value: Constant) -> Constant:
    if isinstance(value, int | float) and not abs(value) < LARGEST_NUMBER:
        raise _NotConstant
    if isinstance(value, tuple | str) and len(value) > LONGEST_SEQUENCE:
        raise _NotConstant
    return value


def _bound(target: ast.expr, item: Constant) -> dict[str, Constant]:
    """The names that a loop's or an assignment's target gives to an item."""
    if isinstance(target, ast.Name):
        return {target.id: item}
    if not isinstance(target, ast.Tuple | ast.List):
        raise _NotConstant
    found: dict[str, Constant] = {}
    for part, value in zip(target.elts, item, strict=True):
        found |= _bound(part, value)
    return found


def _range(*bounds: int) -> tuple[int, ...]:
    numbers = range(*bounds)
    if len(numbers) > LONGEST_SEQUENCE:
        raise _NotConstant
    return tuple(numbers)


def _product(*sequences: tuple[Constant, ...]) -> tuple[Constant, ...]:
    return tuple(itertools.islice(itertools.product(*sequences), LONGEST_SEQUENCE + 1))


def _next_power_of_2(number: int) -> int:
    return 1 << max(number - 1, 0).bit_length()


def _cdiv(number: int, by: int) -> int:
    return -(-number // by)


_FUNCTIONS: Mapping[str, Callable[..., Constant]] = MappingProxyType(
    {
        "range": _range,
        "product": _product,
        "next_power_of_2": _next_power_of_2,
        "cdiv": _cdiv,
        "min": min,
        "max": max,
        "len": len,
        "int": int,
        "list": tuple,
        "tuple": tuple,
        "constexpr": lambda value: value,
    }
)
"""By their last name, whatever module they come from."""
