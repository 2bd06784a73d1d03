"""What a Python candidate keeps from call to call: tensors and results, by pointer, shape or count, and work at import.

Compiled kernels and numbers may be kept: that is what a cache is for.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from kernelgen.ladder.policy.findings import Finding
from kernelgen.ladder.policy.kinds import (
    ARGUMENTS,
    BOUND,
    CLASS,
    COMPILED,
    CONTAINER,
    DEF,
    GROWING,
    ITERATOR,
    LAUNCHER,
    POINTER,
    TENSOR,
    UNKNOWN,
)
from kernelgen.ladder.policy.objects import inside
from kernelgen.ladder.policy.scopes import Binding, Scope, parameters
from kernelgen.ladder.policy.view import View, at

CACHE = "policy.cache"
KEYED = "a result is kept and known again by its pointer"
KEPT = "a tensor is kept from call to call"
COUNTED = "calls are counted"
CACHES = frozenset({"functools.lru_cache", "functools.cache"})
ON_TENSOR = "something is kept on a tensor"
READ_ON = "a generator or iterator keeps its state from call to call"
TAKING = frozenset({"pop", "popleft", "popitem", "rotate"})
"""Methods by which a container counts down."""
LISTING = frozenset({"append", "appendleft", "extend", "insert"})
"""Methods by which it counts up."""
RESUMING = frozenset({"send", "throw"})
LOOK_UPS = frozenset({"get", "pop", "setdefault"})


def check(view: View) -> Iterator[Finding]:
    """Everything kept."""
    lasting = _lasting_classes(view)
    for node, scope in view.host:
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                yield from _store(view, target, node, scope, lasting)
            yield from _at_import(view, node, scope)
        elif isinstance(node, ast.Call):
            yield from _call(view, node, scope)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            if ITERATOR in view.of(node, scope) and _outlives(view, node, scope):
                yield at(node, CACHE, READ_ON, in_doubt=True)
        elif isinstance(node, ast.Attribute):
            yield from _attribute(view, node, scope, lasting)
        elif isinstance(node, ast.Subscript):
            if POINTER in view.of(node.slice, scope) and TENSOR not in view.of(node.value, scope):
                yield at(node, CACHE, KEYED)
        elif isinstance(node, ast.Compare):
            yield from _compare(view, node, scope)
        elif isinstance(node, ast.FunctionDef):
            yield from _cached(view, node, scope)


def _outlives(view: View, target: ast.AST, scope: Scope) -> bool:
    """Whether a name is bound outside the call: in the module, by a mutable default, or in a function around it."""
    if not isinstance(target, ast.Name) or scope.function() is None:
        return False
    home = view.meanings.home(target.id, scope)
    if home is None:
        return False
    if home.parent is None or any(_is_mutable_default(b, home) for b in home.bindings.get(target.id, [])):
        return True
    # a function around this one that hands a function out
    around = home.function()
    handed_out = around is not None and any(value.startswith((DEF, BOUND)) for value in view.meanings.returned(around))
    return handed_out and around is not scope.function()


def _is_mutable_default(binding: Binding, home: Scope) -> bool:
    return (
        binding.how == "value"
        and binding.scope is home.parent
        and isinstance(binding.node, ast.Dict | ast.List | ast.Set | ast.Call)
    )


def _store(view: View, target: ast.AST, node: ast.AST, scope: Scope, lasting: frozenset[str]) -> Iterator[Finding]:
    value = inside(view.meanings, view.of(getattr(node, "value", None), scope))
    if isinstance(target, ast.Tuple | ast.List):
        for item in target.elts:
            yield from _store(view, item, node, scope, lasting)
    elif isinstance(target, ast.Name):
        if _outlives(view, target, scope) and scope.function() is not None:
            yield from _kept(value, node, target.id in scope.elsewhere and _counts(target, node))
    elif isinstance(target, ast.Subscript):
        if POINTER in view.of(target.slice, scope):
            yield at(node, CACHE, KEYED)
        elif _is_table(view, target.value, scope) and (
            _outlives(view, target.value, scope) or _is_lasting(view, target.value, scope, lasting)
        ):
            yield from _kept(value, node, _counts(target, node))
    elif isinstance(target, ast.Attribute) and _is_lasting(view, target, scope, lasting):
        yield from _kept(value, node, _counts(target, node))


def _counts(target: ast.AST, node: ast.AST) -> bool:
    """Whether what is stored is made of what stood there: `n += 1`, `n = n + 1`."""
    if isinstance(node, ast.AugAssign):
        return True
    value = getattr(node, "value", None)
    if not isinstance(value, ast.BinOp | ast.UnaryOp):
        return False
    # the same place, read: all but the context in which it stands
    place = ast.unparse(target)
    return any(isinstance(part, type(target)) and ast.unparse(part) == place for part in ast.walk(value))


def _describes(view: View, node: ast.Attribute, scope: Scope) -> bool:
    """Whether a hook sets the block of what a kernel is given: a descriptor, which has one."""
    around = node.value.value if isinstance(node.value, ast.Subscript) else node.value
    return node.attr == "block_shape" and ARGUMENTS in view.of(around, scope)


def _attribute(view: View, node: ast.Attribute, scope: Scope, lasting: frozenset[str]) -> Iterator[Finding]:
    """What is kept on a tensor, and iterators and generators that are read on."""
    base = view.of(node.value, scope)
    if not isinstance(node.ctx, ast.Load):
        if TENSOR in base and CONTAINER not in base and not _describes(view, node, scope):
            yield at(node, CACHE, ON_TENSOR, in_doubt=True)
        elif UNKNOWN in base and TENSOR in view.of(getattr(view.parent(node), "value", None), scope):
            yield at(node, CACHE, "a tensor is kept on what may be a tensor", in_doubt=True)
    elif node.attr in RESUMING or (node.attr == "grad" and TENSOR in base):
        said = READ_ON if node.attr in RESUMING else ON_TENSOR
        yield at(node, CACHE, said, in_doubt=True)
    elif ITERATOR in view.of(node, scope) and scope.function() is not None and _is_lasting(view, node, scope, lasting):
        yield at(node, CACHE, READ_ON, in_doubt=True)


def _is_table(view: View, node: ast.AST, scope: Scope) -> bool:
    """Whether what is stored into is a container, and not a tensor."""
    values = view.of(node, scope)
    return TENSOR not in values or CONTAINER in values


def _kept(value: frozenset[str], node: ast.AST, counts: bool) -> Iterator[Finding]:
    if POINTER in value:
        yield at(node, CACHE, KEYED, in_doubt=True)
    elif TENSOR in value:
        yield at(node, CACHE, KEPT, in_doubt=True)
    elif counts:
        yield at(node, CACHE, COUNTED, in_doubt=True)


def _is_lasting(view: View, target: ast.AST, scope: Scope, lasting: frozenset[str]) -> bool:
    """Whether `x.name` outlives the call: x is a function, a class, or an object made at import."""
    if not isinstance(target, ast.Attribute):
        return False
    values = view.of(target.value, scope)
    if any(value.startswith((DEF, CLASS)) for value in values) or _outlives(view, target.value, scope):
        return True
    inside = scope.parent
    while inside is not None and not inside.is_class:
        inside = inside.parent
    name = target.value.id if isinstance(target.value, ast.Name) else ""
    made = isinstance(inside, Scope) and isinstance(inside.node, ast.ClassDef) and inside.node.name in lasting
    return name == "cls" or (name == "self" and made)


def _lasting_classes(view: View) -> frozenset[str]:
    """Classes of which an object is made at import."""
    return frozenset(
        node.func.id
        for node, scope in view.host
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and scope.function() is None
        if any(value.startswith(CLASS) for value in view.of(node.func, scope))
    )


def _at_import(view: View, node: ast.Assign | ast.AnnAssign | ast.AugAssign, scope: Scope) -> Iterator[Finding]:
    if scope.function() is None and TENSOR in view.of(node.value, scope):
        yield at(node, CACHE, "a tensor is made at import", in_doubt=True)


def _call(view: View, node: ast.Call, scope: Scope) -> Iterator[Finding]:
    called = view.of(node.func, scope)
    if scope.function() is None and any(value == LAUNCHER for value in called):
        yield at(node, CACHE, "a kernel is launched at import")
    if scope.function() is None and COMPILED in called:
        yield at(node, CACHE, "a kernel is run at import", in_doubt=True)
    if isinstance(node.func, ast.Attribute):
        given = [view.of(argument, scope) for argument in (*node.args, *(k.value for k in node.keywords))]
        if node.func.attr in LOOK_UPS and given and POINTER in given[0]:
            yield at(node, CACHE, KEYED)
        if node.func.attr in GROWING and _outlives(view, node.func.value, scope):
            for value in given:
                yield from _kept(inside(view.meanings, value), node, counts=node.func.attr in LISTING)
        if node.func.attr in TAKING and _outlives(view, node.func.value, scope):
            yield at(node, CACHE, COUNTED, in_doubt=True)
    is_next = "builtins.next" in view.paths(node.func, scope)
    if is_next and node.args and _outlives(view, node.args[0], scope):
        yield at(node, CACHE, COUNTED, in_doubt=True)


def _compare(view: View, node: ast.Compare, scope: Scope) -> Iterator[Finding]:
    sides = [view.of(side, scope) for side in (node.left, *node.comparators)]
    if POINTER not in frozenset().union(*sides):
        return
    if any(isinstance(op, ast.In | ast.NotIn) for op in node.ops):
        yield at(node, CACHE, KEYED)
    elif not all(isinstance(side, ast.Constant) for side in node.comparators):
        yield at(node, CACHE, "a tensor is known again by its pointer", in_doubt=True)


def _cached(view: View, node: ast.FunctionDef, scope: Scope) -> Iterator[Finding]:
    """A function whose results `functools` keeps."""
    decorators = [part.func if isinstance(part, ast.Call) else part for part in node.decorator_list]
    if node in view.meanings.device or not any(p in CACHES for part in decorators for p in view.paths(part, scope)):
        return
    inner = view.module.scopes[node]
    names = [argument.arg for argument in parameters(node.args)]
    if any(TENSOR in view.meanings.named(inner, name) for name in names):
        yield at(node, CACHE, "results are kept and known again by the tensors they came from")
    elif TENSOR in view.meanings.returned(node):
        yield at(node, CACHE, KEPT, in_doubt=True)
