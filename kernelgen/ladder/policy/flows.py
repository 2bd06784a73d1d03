"""How values come into names other than by assignment: returns, arguments, what is put into containers and objects.

Each function says whether a name, or a function's result, can be more than before.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from kernelgen.ladder.policy.kinds import (
    ARGUMENTS,
    BOUND,
    CLASS,
    CONTAINER,
    DEF,
    FACTORY,
    FLOAT,
    GROWING,
    ITERATOR,
    KERNEL,
    LAUNCHER,
    NOTHING,
    OBJECT,
    PATH,
    RAW,
    TENSOR,
    Values,
    elements,
    union,
)
from kernelgen.ladder.policy.objects import ANY, OWN, field_names, is_method, method
from kernelgen.ladder.policy.results_of import TRITON_JIT
from kernelgen.ladder.policy.scopes import Function, Scope, parameters

if TYPE_CHECKING:
    from kernelgen.ladder.policy.values import Meanings

LIBRARIES = ("triton", "tilelang")
"""They call what they are handed with a kernel's arguments: grids, heuristics, hooks, prunings."""
CALLERS = frozenset({"map", "filter", "sorted", "min", "max"})
"""Builtins that call a function with the elements of their other arguments."""


def returned(meanings: Meanings, node: ast.Return, scope: Scope) -> bool:
    function = scope.function()
    return function is not None and meanings.give_back(function, meanings.of(node.value, scope))


def yielded(meanings: Meanings, node: ast.Yield | ast.YieldFrom, scope: Scope) -> bool:
    function = scope.function()
    if function is None:
        return False
    return meanings.give_back(function, meanings.of(node.value, scope) | {CONTAINER, ITERATOR})


def evaluated(meanings: Meanings, node: ast.Lambda, scope: Scope) -> bool:
    return meanings.give_back(node, meanings.of(node.body, meanings.module.scopes[node]))


def called(meanings: Meanings, node: ast.Call, scope: Scope) -> bool:
    """Arguments reach parameters, fields and kernels; what is put into a container is in it."""
    changed = False
    values = meanings.of(node.func, scope)
    for value in values:
        if value.startswith((DEF, FACTORY, BOUND)):
            function = meanings.functions[value.partition(":")[2]]
            changed |= _passed(meanings, node, scope, function, int(value.startswith(BOUND)))
        elif value.startswith(CLASS):
            changed |= _constructed(meanings, node, scope, meanings.definitions.get(value[len(CLASS) :]))
        elif value.startswith(OBJECT):
            answering = method(meanings, meanings.definitions.get(value[len(OBJECT) :]), "__call__")
            changed |= answering is not None and _passed(meanings, node, scope, answering, 1)
        elif value == LAUNCHER:
            changed |= _launched(meanings, node, scope)
        elif value.startswith(PATH):
            changed |= _handed(meanings, value[len(PATH) :], node, scope)
    if isinstance(node.func, ast.Attribute):
        if node.func.attr in GROWING:
            for argument in _written(node):
                changed |= _put(meanings, node.func.value, meanings.of(argument, scope), scope)
        elif node.func.attr == "copy_" and any(FLOAT in meanings.of(a, scope) for a in node.args):
            changed |= _add(meanings, node.func.value, frozenset({FLOAT}), scope)
    return changed


def _written(node: ast.Call) -> list[ast.expr]:
    """A call's arguments, by place and by name."""
    return [*node.args, *(keyword.value for keyword in node.keywords)]


def _given(meanings: Meanings, node: ast.Call, scope: Scope, names: list[str]) -> Iterator[tuple[str | None, Values]]:
    """What a call gives each parameter; None for what no parameter has the name or place of."""
    place = 0
    for argument in node.args:
        if isinstance(argument, ast.Starred):
            for name in names[place:]:
                yield name, elements(meanings.of(argument.value, scope))
            continue
        yield names[place] if place < len(names) else None, meanings.of(argument, scope)
        place += 1
    for keyword in node.keywords:
        values = meanings.of(keyword.value, scope)
        if keyword.arg is not None:
            yield keyword.arg if keyword.arg in names else None, values
            continue
        for name in names:
            yield name, meanings.argument(name) if ARGUMENTS in values else elements(values)


def _passed(meanings: Meanings, node: ast.Call, scope: Scope, function: Function, skipped: int = 0) -> bool:
    inner = meanings.module.scopes[function]
    arguments = function.args
    stars = [argument.arg for argument in (arguments.vararg, arguments.kwarg) if argument is not None]
    names = [argument.arg for argument in parameters(arguments) if argument.arg not in stars][skipped:]
    changed = False
    for name, values in _given(meanings, node, scope, names):
        if name is not None:
            changed |= meanings.add(inner, name, values)
            continue
        for star in stars:
            changed |= meanings.add(inner, star, values | {CONTAINER})
    return changed


def _constructed(meanings: Meanings, node: ast.Call, scope: Scope, made: ast.AST | None) -> bool:
    """The arguments of a class's call reach its fields."""
    if made is None:
        return False
    number = meanings.number(made)
    if not isinstance(made, ast.ClassDef):
        return meanings.add_field(number, ANY, union(meanings.of(argument, scope) for argument in _written(node)))
    function = method(meanings, made, "__init__") or method(meanings, made, "__new__")
    if function is not None:
        return _passed(meanings, node, scope, function, 1)
    changed = False
    for name, values in _given(meanings, node, scope, field_names(meanings, made)):
        changed |= meanings.add_field(number, name or ANY, values)
    return changed


def _launched(meanings: Meanings, node: ast.Call, scope: Scope) -> bool:
    """The arguments of a launch are what grids and hooks get by name."""
    wanted: set[str] = set()
    if isinstance(node.func, ast.Subscript):
        values = meanings.of(node.func.value, scope)
        wanted = {value[len(KERNEL) :] for value in values if value.startswith(KERNEL)}
    kernels = [kernel for kernel in meanings.kernels if not wanted or kernel.name in wanted]
    changed = False
    for kernel in kernels or meanings.kernels:
        names = [argument.arg for argument in parameters(kernel.args)]
        for name, values in _given(meanings, node, scope, names):
            if name is not None:
                changed |= meanings.add_argument(name, values)
    for argument in _written(node):
        changed |= _called_back(meanings, meanings.of(argument, scope), frozenset({ARGUMENTS}))
    return changed


def _handed(meanings: Meanings, path: str, node: ast.Call, scope: Scope) -> bool:
    """Functions handed to a library that calls them."""
    root, _, name = path.partition(".")
    if path in TRITON_JIT:
        return False
    arguments = [meanings.of(argument, scope) for argument in _written(node)]
    functions = union(arguments)
    if not any(value.startswith(OWN) for value in functions):
        return False
    if root in LIBRARIES:
        return _called_back(meanings, functions, frozenset({ARGUMENTS}))
    given = union(values for values in arguments if not any(value.startswith((DEF, BOUND)) for value in values))
    if path == "functools.partial":
        return _called_back(meanings, arguments[0] if arguments else NOTHING, union(arguments[1:]))
    if (root == "builtins" and name in CALLERS) or path == "functools.reduce" or root == "itertools":
        return _called_back(meanings, functions, elements(given))
    return False


def _called_back(meanings: Meanings, values: Iterable[str], given: Values) -> bool:
    """The functions among values are called with these by somebody else."""
    changed = False
    for value in values:
        function = None
        if value.startswith((DEF, BOUND)):
            function = meanings.functions[value.partition(":")[2]]
        elif value.startswith(OBJECT):
            function = method(meanings, meanings.definitions.get(value[len(OBJECT) :]), "__call__")
        if function is None or function in meanings.device:
            continue
        inner = meanings.module.scopes[function]
        has_receiver = not value.startswith(DEF) and is_method(meanings, function)
        for argument in parameters(function.args)[int(has_receiver) :]:
            changed |= meanings.add(inner, argument.arg, given)
    return changed


def gridded(meanings: Meanings, node: ast.Subscript, scope: Scope) -> bool:
    """A grid that is a function gets the kernel's arguments."""
    if not any(value.startswith((KERNEL, RAW)) for value in meanings.of(node.value, scope)):
        return False
    return _called_back(meanings, meanings.of(node.slice, scope), frozenset({ARGUMENTS}))


def stored(meanings: Meanings, node: ast.Assign, scope: Scope) -> bool:
    values = meanings.of(node.value, scope)
    return max([_stored(meanings, target, values, scope) for target in node.targets])


def stored_one(meanings: Meanings, node: ast.AnnAssign | ast.AugAssign, scope: Scope) -> bool:
    return _stored(meanings, node.target, meanings.of(node.value, scope), scope)


def _stored(meanings: Meanings, target: ast.AST, values: Values, scope: Scope) -> bool:
    if isinstance(target, ast.Tuple | ast.List):
        return max([False, *(_stored(meanings, item, elements(values), scope) for item in target.elts)])
    if isinstance(target, ast.Subscript):
        return _put(meanings, target.value, values, scope)
    return isinstance(target, ast.Attribute) and _add(meanings, target, values, scope)


def _put(meanings: Meanings, container: ast.AST, values: Values, scope: Scope) -> bool:
    return TENSOR not in meanings.of(container, scope) and _add(meanings, container, values, scope)


def _add(meanings: Meanings, place: ast.AST, values: Values, scope: Scope) -> bool:
    """Let what a name, an attribute or a container in one holds have further values."""
    while isinstance(place, ast.Subscript):
        place = place.value
    if isinstance(place, ast.Name):
        home = meanings.home(place.id, scope)
        return home is not None and meanings.add(home, place.id, values)
    if not isinstance(place, ast.Attribute):
        return False
    holders = [value for value in meanings.of(place.value, scope) if value.startswith(OWN)]
    return max([False, *(meanings.add_field(value.partition(":")[2], place.attr, values) for value in holders)])


FLOWS: dict[type[ast.AST], Callable[[Meanings, Any, Scope], bool]] = {
    ast.Return: returned,
    ast.Yield: yielded,
    ast.YieldFrom: yielded,
    ast.Lambda: evaluated,
    ast.Call: called,
    ast.Subscript: gridded,
    ast.Assign: stored,
    ast.AnnAssign: stored_one,
    ast.AugAssign: stored_one,
}
"""By the kind of node."""
