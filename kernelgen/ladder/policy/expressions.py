"""The values of each kind of expression, by those of its parts."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kernelgen.ladder.policy.kinds import (
    ARGUMENTS,
    ARGUMENTS_METHOD,
    BOUND,
    CLASS,
    COMPILED,
    CONTAINER,
    DECORATOR,
    DEF,
    FACTORY,
    FLOAT,
    HOST,
    ITERATOR,
    KERNEL,
    LAUNCHER,
    MARKS,
    OBJECT,
    OF_TENSOR,
    PARTS,
    PATH,
    POINTER,
    RAW,
    TENSOR,
    UNKNOWN,
    Values,
    elements,
    union,
)
from kernelgen.ladder.policy.methods import ALLOCATES
from kernelgen.ladder.policy.objects import inside, member_of, method
from kernelgen.ladder.policy.results_of import DECORATORS, RECORDS, TRITON_JIT, result_of
from kernelgen.ladder.policy.scopes import Scope

if TYPE_CHECKING:
    from kernelgen.ladder.policy.values import Meanings

LONGEST_NAME = 80
"""Characters of a kernel's name."""


def name(meanings: Meanings, node: ast.Name, scope: Scope) -> Values:
    home = meanings.home(node.id, scope)
    if home is not None:
        return meanings.named(home, node.id)
    # every module has these, and `builtins` has not
    is_builtin = hasattr(builtins, node.id) or node.id in ("__file__", "__builtins__", "__spec__", "__loader__")
    return frozenset({f"{PATH}builtins.{node.id}" if is_builtin else UNKNOWN})


def attribute(meanings: Meanings, node: ast.Attribute, scope: Scope) -> Values:
    return member_of(meanings, meanings.of(node.value, scope), node.attr)


def call(meanings: Meanings, node: ast.Call, scope: Scope) -> Values:
    called = meanings.of(node.func, scope)
    # once for all values: nested calls would take time exponential in their depth
    given = union(meanings.of(a, scope) for a in (*node.args, *(k.value for k in node.keywords)))
    return union(_called(meanings, value, node, scope, called, given) for value in (called - MARKS) or {UNKNOWN})


def _called(meanings: Meanings, value: str, node: ast.Call, scope: Scope, called: Values, given: Values) -> Values:
    """What a call gives, of one of the values of what is called."""
    if value.startswith(PATH):
        return _path_called(meanings, value[len(PATH) :], node, scope, given)
    if value.startswith((DEF, BOUND)):
        return meanings.returned_by(value.partition(":")[2])
    if value.startswith(CLASS):
        # what is no class statement is a named tuple's maker, whose objects are tuples too
        is_tuple = isinstance(meanings.definitions.get(value[len(CLASS) :]), ast.Call)
        return frozenset({OBJECT + value[len(CLASS) :]}) | (given | {CONTAINER} if is_tuple else frozenset())
    if value.startswith(OBJECT):
        function = method(meanings, meanings.definitions.get(value[len(OBJECT) :]), "__call__")
        return meanings.returned(function) if function is not None else frozenset({UNKNOWN})
    if value == ARGUMENTS_METHOD:
        return _of_arguments(meanings, node)
    if value == DECORATOR:
        return given
    if value.startswith(OF_TENSOR):
        return _of_tensor(meanings, value[len(OF_TENSOR) :], node, scope)
    if value.startswith(FACTORY):
        return frozenset({TENSOR if TENSOR in given else COMPILED})
    if value == COMPILED:
        return frozenset({TENSOR})
    if value == CONTAINER:
        return called
    return frozenset({value if value in (HOST, POINTER, TENSOR) else UNKNOWN})


def _of_tensor(meanings: Meanings, name: str, node: ast.Call, scope: Scope) -> Values:
    """What a tensor's method gives: views and copies of floating-point values are such themselves."""
    made = frozenset({TENSOR, CONTAINER} if name in PARTS else {TENSOR})
    if name in ALLOCATES and name.startswith("new_"):
        return made
    base = meanings.of(node.func.value, scope) if isinstance(node.func, ast.Attribute) else frozenset({FLOAT})
    return made | (base & {FLOAT})


def _of_arguments(meanings: Meanings, node: ast.Call) -> Values:
    """What a method of a kernel's arguments by name gives: `get`, `items` and their like."""
    asked = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    if asked == "copy":
        return frozenset({ARGUMENTS})
    if asked in ("items", "values", "popitem") or not node.args:
        return meanings.argument(None) | {CONTAINER}
    return meanings.argument(_literal(node.args[0]))


def _literal(node: ast.AST) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _path_called(meanings: Meanings, path: str, node: ast.Call, scope: Scope, given: Values) -> Values:
    if path in DECORATORS:
        return frozenset({DECORATOR})
    if path in TRITON_JIT:
        return frozenset({KERNEL + ast.unparse(node.args[0])[:LONGEST_NAME] if node.args else DECORATOR})
    if path == "builtins.getattr" and len(node.args) > 1:
        asked = node.args[1]
        if isinstance(asked, ast.Constant) and isinstance(asked.value, str):
            return member_of(meanings, meanings.of(node.args[0], scope), asked.value)
    if path in RECORDS:
        return frozenset({CLASS + meanings.number(node)})
    if path in ("dataclasses.astuple", "dataclasses.asdict"):
        return inside(meanings, given) | {CONTAINER}
    return result_of(path, given)


def subscript(meanings: Meanings, node: ast.Subscript, scope: Scope) -> Values:
    values = meanings.of(node.value, scope)
    is_container = CONTAINER in values
    if ARGUMENTS in values:
        return meanings.argument(_literal(node.slice))
    if any(value.startswith(OBJECT) for value in values) and not is_container:
        return _indexed(meanings, values)
    launchers = {LAUNCHER for value in values if value.startswith((KERNEL, RAW)) and not is_container}
    return frozenset(launchers) or elements(values)


def _indexed(meanings: Meanings, values: Values) -> Values:
    """What the objects among values give when they are indexed."""
    numbers = [value[len(OBJECT) :] for value in values if value.startswith(OBJECT)]
    functions = [method(meanings, meanings.definitions.get(number), "__getitem__") for number in numbers]
    return union(meanings.returned(function) for function in functions if function is not None) or frozenset({UNKNOWN})


def sequence(meanings: Meanings, node: ast.Tuple | ast.List | ast.Set, scope: Scope) -> Values:
    return union(meanings.of(item, scope) for item in node.elts) | {CONTAINER}


def mapping(meanings: Meanings, node: ast.Dict, scope: Scope) -> Values:
    return union(meanings.of(item, scope) for item in node.values) | {CONTAINER}


def generated(meanings: Meanings, node: ast.ListComp | ast.SetComp | ast.GeneratorExp, scope: Scope) -> Values:
    return meanings.of(node.elt, meanings.module.scopes[node]) | {CONTAINER}


def generated_mapping(meanings: Meanings, node: ast.DictComp, scope: Scope) -> Values:
    return meanings.of(node.value, meanings.module.scopes[node]) | {CONTAINER}


def operation(meanings: Meanings, node: ast.BinOp, scope: Scope) -> Values:
    values = meanings.of(node.left, scope) | meanings.of(node.right, scope)
    if POINTER in values and isinstance(node.op, ast.Mod | ast.BitAnd | ast.FloorDiv):
        # alignment, not an address
        return frozenset({HOST})
    return values & {TENSOR, FLOAT, POINTER, UNKNOWN, CONTAINER, ARGUMENTS} or frozenset({HOST})


def comparison(meanings: Meanings, node: ast.Compare, scope: Scope) -> Values:
    if all(isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in node.ops):
        return frozenset({HOST})
    values = union(meanings.of(item, scope) for item in (node.left, *node.comparators))
    return frozenset({TENSOR if TENSOR in values and CONTAINER not in values else HOST})


def choice(meanings: Meanings, node: ast.IfExp, scope: Scope) -> Values:
    return meanings.of(node.body, scope) | meanings.of(node.orelse, scope)


def function(meanings: Meanings, node: ast.Lambda, scope: Scope) -> Values:
    return frozenset({DEF + meanings.number(node)})


def of_value(meanings: Meanings, node: Any, scope: Scope) -> Values:
    return meanings.of(node.value, scope)


def starred(meanings: Meanings, node: ast.Starred, scope: Scope) -> Values:
    return elements(meanings.of(node.value, scope))


def lazy(meanings: Meanings, node: ast.GeneratorExp, scope: Scope) -> Values:
    return generated(meanings, node, scope) | {ITERATOR}


def sent(meanings: Meanings, node: ast.Yield | ast.YieldFrom, scope: Scope) -> Values:
    return frozenset({UNKNOWN})


def constant(meanings: Meanings, node: ast.AST, scope: Scope) -> Values:
    return frozenset({HOST})


def anything(meanings: Meanings, node: ast.AST, scope: Scope) -> Values:
    return union(meanings.of(child, scope) for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr))


EVALUATE: dict[type[ast.AST], Callable[[Meanings, Any, Scope], Values]] = {
    ast.Name: name,
    ast.Attribute: attribute,
    ast.Call: call,
    ast.Subscript: subscript,
    ast.Tuple: sequence,
    ast.List: sequence,
    ast.Set: sequence,
    ast.Dict: mapping,
    ast.ListComp: generated,
    ast.SetComp: generated,
    ast.GeneratorExp: lazy,
    ast.DictComp: generated_mapping,
    ast.BinOp: operation,
    ast.Compare: comparison,
    ast.IfExp: choice,
    ast.Lambda: function,
    ast.NamedExpr: of_value,
    ast.Starred: starred,
    ast.Yield: sent,
    ast.YieldFrom: sent,
    ast.Constant: constant,
    ast.JoinedStr: constant,
}
"""By the kind of expression; `anything` for the others."""
