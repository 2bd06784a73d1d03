"""How values come into names other than by assignment: returns, arguments, what is put into containers.

Each function says whether a name, or a function's result, can be more than before.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kernelgen.ladder.policy.kinds import DEF, FACTORY, GROWING, TENSOR
from kernelgen.ladder.policy.scopes import Function, Scope, parameters

if TYPE_CHECKING:
    from kernelgen.ladder.policy.values import Meanings


def returned(meanings: Meanings, node: ast.Return, scope: Scope) -> bool:
    function = scope.function()
    return function is not None and meanings.give_back(function, meanings.of(node.value, scope))


def evaluated(meanings: Meanings, node: ast.Lambda, scope: Scope) -> bool:
    return meanings.give_back(node, meanings.of(node.body, meanings.module.scopes[node]))


def called(meanings: Meanings, node: ast.Call, scope: Scope) -> bool:
    """Arguments reach parameters, and what is put into a container is in it."""
    changed = False
    for value in meanings.of(node.func, scope):
        if value.startswith((DEF, FACTORY)):
            changed |= _passed(meanings, node, scope, meanings.functions[value.partition(":")[2]])
    if isinstance(node.func, ast.Attribute) and node.func.attr in GROWING:
        for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
            changed |= _put(meanings, node.func.value, argument, scope)
    return changed


def _passed(meanings: Meanings, node: ast.Call, scope: Scope, function: Function) -> bool:
    inner = meanings.module.scopes[function]
    names = [argument.arg for argument in parameters(function.args)]
    given = list(zip(names, node.args, strict=False))
    given += [(keyword.arg, keyword.value) for keyword in node.keywords if keyword.arg in names]
    changed = False
    for name, value in given:
        changed |= meanings.add(inner, name, meanings.of(value, scope))
    return changed


def stored(meanings: Meanings, node: ast.Assign, scope: Scope) -> bool:
    changed = False
    for target in node.targets:
        if isinstance(target, ast.Subscript):
            changed |= _put(meanings, target.value, node.value, scope)
    return changed


def _put(meanings: Meanings, container: ast.AST, value: ast.AST, scope: Scope) -> bool:
    if not isinstance(container, ast.Name) or TENSOR in meanings.of(container, scope):
        return False
    home = meanings.home(container.id, scope)
    return home is not None and meanings.add(home, container.id, meanings.of(value, scope))


FLOWS: dict[type[ast.AST], Callable[[Meanings, Any, Scope], bool]] = {
    ast.Return: returned,
    ast.Lambda: evaluated,
    ast.Call: called,
    ast.Assign: stored,
}
"""By the kind of node."""
