"""The rule language: a condition over a candidate's facts that a program can check.

    shared_bytes <= 232448
    num_warps in (1, 2, 4, 8) and not (block("BLOCK_M") == 256 and num_stages > 3)
    not source_matches(r"tl\\.dot\\([^)]*float8e4nv")

Python's syntax, read with `ast` and never executed. A rule states what must hold, and answers in Kleene's three-valued
logic: True, False, or None where a fact that decides is missing or does not fit the operation. Names outside `FACTS`
are allowed and cannot be told until someone supplies them. The functions are in `kernelgen.constraints.terms`.
"""

from __future__ import annotations

import ast
import operator
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType

from kernelgen.constraints.terms import FUNCTIONS, Evaluate, Facts, Number, Value, is_number, is_value
from kernelgen.errors import ConstraintError, nearest

LONGEST_RULE = 500
"""Characters."""
DEEPEST_RULE = 40
"""Nested operations."""

FACTS: Mapping[str, str] = MappingProxyType(
    {
        "shared_bytes": "shared memory of a block, static and dynamic",
        "registers": "32-bit registers of a thread",
        "spill_bytes": "bytes a thread spills to local memory",
        "threads": "threads of a block",
        "num_warps": "warps of a block",
        "num_stages": "software pipeline stages",
        "num_ctas": "blocks of a cluster",
        "staged_bytes": "shared memory that a Triton kernel's loops stage for tl.dot, counted in its source",
        "odd_extents": "extents of tl.arange and of blocks made that are no power of two",
        "mixed_dots": "products whose operands have different dtypes, or one that no product takes",
        "shallow_dots": "products whose inner extent is too small, or not the same on both sides",
        "bad_descriptors": "tensor descriptors with under 16 bytes in a row, or rows with gaps",
        "dsl": "triton, tilelang or cuda",
        "language": "python or cuda",
        "arch": "compiler target, as in sm_90a",
        "blocks": 'constexpr values by name, for block("NAME")',
        "source": "the model's source, for source_matches",
    }
)
"""Keys of the facts a rule is checked on; every one may be absent."""

ARITHMETIC: Mapping[type[ast.operator], Callable[[Number, Number], Number]] = MappingProxyType(
    {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
     ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod}
)  # fmt: skip
ORDER: Mapping[type[ast.cmpop], Callable[[Number, Number], bool]] = MappingProxyType(
    {ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge}
)


@dataclass(frozen=True, slots=True)
class Rule:
    """A parsed rule."""

    text: str
    _names: frozenset[str] = field(repr=False, compare=False)
    _evaluate: Evaluate = field(repr=False, compare=False)

    def check(self, facts: Mapping[str, object]) -> bool | None:
        """Whether the rule holds of these facts (keys as in `FACTS`); None where they do not say."""
        return _truth(self._evaluate(facts))

    def names(self) -> frozenset[str]:
        """The facts it asks for: names, `block("NAME")` for a constexpr, and `source`."""
        return self._names


@lru_cache(maxsize=16384)
def parse(text: str) -> Rule:
    """The rule a text says; ConstraintError with the column and the mend."""
    if len(text) > LONGEST_RULE:
        raise ConstraintError(f"A rule has at most {LONGEST_RULE} characters, this one {len(text)}: split it")
    try:
        with warnings.catch_warnings():
            # "\." is a legible pattern; Python warns that it is not an escape
            warnings.simplefilter("ignore")
            tree = ast.parse(text.strip(), mode="eval")
    except SyntaxError as error:
        place = f"The rule '{_shown(text)}', column {error.offset}"
        raise ConstraintError(f"{place}: {error.msg}; write a condition such as num_warps <= 8") from None
    except (ValueError, RecursionError, MemoryError):
        raise ConstraintError(f"The rule {text!r} cannot be read: use plain characters and fewer brackets") from None
    reader = _Reader(text.strip())
    evaluate = reader.condition(tree.body, DEEPEST_RULE)
    return Rule(text, frozenset(reader.names), evaluate)


def _shown(text: str) -> str:
    return " ".join(text.split())


def _truth(value: Value) -> bool | None:
    return value if isinstance(value, bool) else None


class _Reader:
    """Turns a syntax tree into functions of the facts; what the language does not have is refused with its column."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.names: set[str] = set()

    def refuse(self, node: ast.expr, problem: str) -> ConstraintError:
        # ast counts columns in UTF-8 bytes of the node's line
        line = self.text.split("\n")[node.lineno - 1]
        column = len(line.encode()[: node.col_offset].decode()) + 1
        return ConstraintError(f"The rule '{_shown(self.text)}', column {column}: {problem}")

    def condition(self, node: ast.expr, depth: int) -> Evaluate:
        """An expression that is true or false."""
        match node:
            case ast.BoolOp() | ast.UnaryOp(op=ast.Not()) | ast.Compare() | ast.Name() | ast.Constant(value=bool()):
                return self.expression(node, depth)
            case ast.Call(func=ast.Name(id=name)) if name not in FUNCTIONS or FUNCTIONS[name].is_condition:
                return self.expression(node, depth)
        raise self.refuse(node, "a condition is needed here, such as num_warps <= 8")

    def expression(self, node: ast.expr, depth: int) -> Evaluate:
        if depth == 0:
            raise self.refuse(node, f"more than {DEEPEST_RULE} nested operations; split it")
        match node:
            case ast.Constant(value=value) if is_value(value):
                return lambda facts: value
            case ast.Name(id=name):
                return self.name(name)
            case ast.BoolOp(op=op, values=values):
                return _junction(isinstance(op, ast.Or), [self.condition(v, depth - 1) for v in values])
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return _negation(self.condition(operand, depth - 1))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return _arithmetic(operator.sub, lambda facts: 0, self.expression(operand, depth - 1))
            case ast.BinOp(left=left, op=op, right=right) if type(op) in ARITHMETIC:
                sides = self.expression(left, depth - 1), self.expression(right, depth - 1)
                return _arithmetic(ARITHMETIC[type(op)], *sides)
            case ast.Compare():
                return self.comparison(node, depth - 1)
            case ast.Call():
                return self.call(node, depth - 1)
        raise self.refuse(node, "this is not part of the rule language")

    def name(self, name: str) -> Evaluate:
        self.names.add(name)

        def look_up(facts: Facts) -> Value:
            value = facts.get(name)
            return value if is_value(value) else None

        return look_up

    def comparison(self, node: ast.Compare, depth: int) -> Evaluate:
        left = self.expression(node.left, depth)
        if any(isinstance(op, ast.In | ast.NotIn) for op in node.ops):
            return self.membership(node, left, depth)
        links: list[Evaluate] = []
        for op, right_node in zip(node.ops, node.comparators, strict=True):
            right = self.expression(right_node, depth)
            links.append(self.link(node, op, left, right))
            left = right
        return links[0] if len(links) == 1 else _junction(False, links)

    def membership(self, node: ast.Compare, left: Evaluate, depth: int) -> Evaluate:
        if len(node.ops) > 1:
            raise self.refuse(node, "`in` cannot be part of a chain; join conditions with `and`")
        choices = node.comparators[0]
        if not isinstance(choices, ast.Tuple | ast.List | ast.Set):
            raise self.refuse(choices, "`in` needs its choices in brackets, as in (1, 2, 4)")
        member = _junction(True, [_equality(left, self.expression(choice, depth)) for choice in choices.elts])
        return member if isinstance(node.ops[0], ast.In) else _negation(member)

    def link(self, node: ast.Compare, op: ast.cmpop, left: Evaluate, right: Evaluate) -> Evaluate:
        if isinstance(op, ast.Eq):
            return _equality(left, right)
        if isinstance(op, ast.NotEq):
            return _negation(_equality(left, right))
        if type(op) in ORDER:
            return _arithmetic(ORDER[type(op)], left, right)
        raise self.refuse(node, "`is` is not part of the rule language; write ==")

    def call(self, node: ast.Call, depth: int) -> Evaluate:
        if not isinstance(node.func, ast.Name) or node.func.id not in FUNCTIONS:
            called = ast.unparse(node.func)
            raise self.refuse(node, f"there is no function '{called}'{nearest(called, FUNCTIONS)}")
        function = FUNCTIONS[node.func.id]
        if len(node.args) != 1 or node.keywords or isinstance(node.args[0], ast.Starred):
            raise self.refuse(node, f"{node.func.id} takes one argument: {function.usage}")
        argument = node.args[0]
        if function.of_text is None:
            return function.of_value(self.expression(argument, depth))
        if not isinstance(argument, ast.Constant) or not isinstance(argument.value, str):
            raise self.refuse(argument, f"{node.func.id} takes a text in quotes: {function.usage}")
        try:
            evaluate, needed = function.of_text(argument.value)
        except ValueError as error:
            raise self.refuse(argument, str(error)) from None
        self.names.add(needed)
        return evaluate


def _junction(any_of: bool, parts: list[Evaluate]) -> Evaluate:
    """Kleene's `or` (any_of) or `and`: one deciding part settles it, whatever the others say."""

    def evaluate(facts: Facts) -> Value:
        told = [_truth(part(facts)) for part in parts]
        if any_of in told:
            return any_of
        return None if None in told else not any_of

    return evaluate


def _negation(part: Evaluate) -> Evaluate:
    def evaluate(facts: Facts) -> Value:
        truth = _truth(part(facts))
        return None if truth is None else not truth

    return evaluate


def _equality(left: Evaluate, right: Evaluate) -> Evaluate:
    def evaluate(facts: Facts) -> Value:
        a, b = left(facts), right(facts)
        return None if a is None or b is None else a == b

    return evaluate


def _arithmetic(apply: Callable[[Number, Number], Value], left: Evaluate, right: Evaluate) -> Evaluate:
    """An operation on two numbers; anything else, and what they do not allow, cannot be told."""

    def evaluate(facts: Facts) -> Value:
        a, b = left(facts), right(facts)
        if not is_number(a) or not is_number(b):
            return None
        try:
            return apply(a, b)
        except (ZeroDivisionError, OverflowError):
            return None

    return evaluate
