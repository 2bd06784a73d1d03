"""What attributes of a candidate's own objects hold: fields of its classes, attributes of its functions, properties.

Kept by the number of the definition and the attribute's name; `ANY` stands for all names of a definition.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from kernelgen.ladder.policy.kinds import (
    ARGUMENTS,
    ARGUMENTS_METHOD,
    BOUND,
    CLASS,
    CONTAINER,
    DEF,
    HOST,
    NOTHING,
    OBJECT,
    UNKNOWN,
    Values,
    member,
    paths,
    union,
)
from kernelgen.ladder.policy.scopes import Function, Scope

if TYPE_CHECKING:
    from kernelgen.ladder.policy.values import Meanings

ANY = "*"
OWN = (OBJECT, CLASS, DEF, BOUND)
PROPERTIES = frozenset({"builtins.property", "functools.cached_property"})
STATIC = "builtins.staticmethod"
OF_CLASS = "builtins.classmethod"
DEEPEST = 6
"""Classes above one another that are looked into."""
OF_ARGUMENTS = frozenset({"get", "items", "values", "pop", "setdefault", "copy", "popitem"})


def member_of(meanings: Meanings, values: Values, name: str) -> Values:
    """The values of `x.name`, by those of x, the candidate's own objects among them."""
    own = [value for value in values if value.startswith(OWN)]
    found = union(_field(meanings, value, name) for value in own)
    if ARGUMENTS in values:
        found |= {ARGUMENTS_METHOD if name in OF_ARGUMENTS else HOST}
    rest = values - {*own, ARGUMENTS}
    if not own and ARGUMENTS not in values:
        return member(values, name)
    if CONTAINER in values:
        return found or values
    if rest:
        found |= member(rest, name)
    return found or frozenset({UNKNOWN})


def _field(meanings: Meanings, value: str, name: str) -> Values:
    number = value.partition(":")[2]
    found = meanings.field(number, name) | meanings.field(number, ANY)
    node = meanings.definitions.get(number)
    if not isinstance(node, ast.ClassDef) or not value.startswith((OBJECT, CLASS)):
        return found
    for place in lineage(meanings, node):
        found |= meanings.field(meanings.number(place.node), name)
        found |= union(
            _of_class(meanings, held, is_object=value.startswith(OBJECT)) for held in meanings.named(place, name)
        )
    return found


def _of_class(meanings: Meanings, held: str, *, is_object: bool) -> Values:
    """What stands in a class, reached through an object or the class itself."""
    function = meanings.functions.get(held.partition(":")[2]) if held.startswith(DEF) else None
    if function is None:
        return frozenset({held})
    kinds = decorators(meanings, function)
    if is_object and kinds & PROPERTIES:
        return meanings.returned(function)
    binds = OF_CLASS in kinds or (is_object and is_method(meanings, function))
    return frozenset({held.replace(DEF, BOUND, 1) if binds else held})


def decorators(meanings: Meanings, function: Function) -> frozenset[str]:
    """Dotted names of a function's decorators."""
    scope = meanings.module.scopes[function].parent
    parts = function.decorator_list if not isinstance(function, ast.Lambda) else []
    return frozenset(path for part in parts if scope is not None for path in paths(meanings.of(part, scope)))


def is_method(meanings: Meanings, function: Function) -> bool:
    """Whether a function's first parameter is the object it is called on, or its class."""
    scope = meanings.module.scopes[function].parent
    return scope is not None and scope.is_class and STATIC not in decorators(meanings, function)


def receiver(meanings: Meanings, function: Function) -> Values:
    """The values of a method's first parameter; nothing for a plain function."""
    scope = meanings.module.scopes[function].parent
    if scope is None or not is_method(meanings, function):
        return NOTHING
    kind = CLASS if OF_CLASS in decorators(meanings, function) else OBJECT
    return frozenset({kind + meanings.number(scope.node)})


def lineage(meanings: Meanings, node: ast.ClassDef, depth: int = DEEPEST) -> Iterator[Scope]:
    """The scopes of a class and of the candidate's own classes above it."""
    inner = meanings.module.scopes[node]
    yield inner
    for base in node.bases if depth else ():
        for value in meanings.of(base, inner.parent or inner):
            above = meanings.definitions.get(value[len(CLASS) :]) if value.startswith(CLASS) else None
            if isinstance(above, ast.ClassDef) and above is not node:
                yield from lineage(meanings, above, depth - 1)


def method(meanings: Meanings, node: ast.AST | None, name: str) -> Function | None:
    """The function that a class has under a name, its own or one above it."""
    if not isinstance(node, ast.ClassDef):
        return None
    for place in lineage(meanings, node):
        for value in meanings.named(place, name):
            if value.startswith(DEF):
                return meanings.functions[value[len(DEF) :]]
    return None


def field_names(meanings: Meanings, node: ast.ClassDef) -> list[str]:
    """The fields of a dataclass or a named tuple in the order of its constructor, those of classes above first."""
    return [
        statement.target.id
        for place in reversed(list(lineage(meanings, node)))
        for statement in getattr(place.node, "body", [])
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
    ]


def inside(meanings: Meanings, values: Values) -> Values:
    """The values, and those that objects and functions among them hold."""
    numbers = {value.partition(":")[2] for value in values if value.startswith(OWN)}
    return values | meanings.held_by(numbers) if numbers else values
