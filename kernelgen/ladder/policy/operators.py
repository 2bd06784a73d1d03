"""Work that torch does for an operator: `x @ w`, `x + y`, `x[ids]`. Numbers and shapes are a host's to compute with."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

from kernelgen.ladder.policy.findings import Finding
from kernelgen.ladder.policy.kinds import CONTAINER, HOST, TENSOR, UNKNOWN, Values, paths
from kernelgen.ladder.policy.scopes import Scope
from kernelgen.ladder.policy.view import View, at

LIBRARY = "policy.library_work"
UNTOLD = "an operator on values that nobody can tell may have torch compute"
TRACERS = ("tilelang.", "tvm.")
NO_OPERATORS = frozenset({"operator.is_", "operator.is_not", "operator.length_hint", "operator.itemgetter"})
FOLDS = frozenset({"builtins.sum", "builtins.max", "builtins.min", "builtins.abs", "builtins.pow", "builtins.sorted"})


def check(view: View) -> Iterator[Finding]:
    """Every operator on tensors."""
    for node, scope in view.host:
        test = _TESTS.get(type(node))
        if test is not None:
            yield from test(view, node, scope)


def _is_tensor(values: Values) -> bool:
    return TENSOR in values and CONTAINER not in values


def _surely(values: Values) -> bool:
    """A tensor wherever it stands: a name that is reused for a number is not."""
    return _is_tensor(values) and HOST not in values


def _binary(view: View, node: ast.BinOp, scope: Scope) -> Iterator[Finding]:
    left, right = view.of(node.left, scope), view.of(node.right, scope)
    if isinstance(node.op, ast.MatMult):
        yield at(node, LIBRARY, "@ has torch multiply matrices")
    elif _is_tensor(left) and _is_tensor(right):
        yield at(node, LIBRARY, "torch computes with two tensors", in_doubt=not (_surely(left) and _surely(right)))
    elif (_surely(left) or _surely(right)) and CONTAINER not in left | right:
        yield at(node, LIBRARY, "torch computes with a tensor and a number", in_doubt=True)
    elif left <= {UNKNOWN} and right <= {UNKNOWN} and not _is_traced(view, scope):
        yield at(node, LIBRARY, UNTOLD, in_doubt=True)


def _is_traced(view: View, scope: Scope) -> bool:
    """Whether it is part of a TileLang program, whose operators make a kernel's instructions."""
    inner: Scope | None = scope
    while inner is not None:
        for part in getattr(inner.node, "decorator_list", ()):
            made = part.func if isinstance(part, ast.Call) else part
            if any(path.startswith(TRACERS) for path in view.paths(made, view.module.root)):
                return True
        inner = inner.parent
    return False


def _in_place(view: View, node: ast.AugAssign, scope: Scope) -> Iterator[Finding]:
    target, value = view.of(node.target, scope), view.of(node.value, scope)
    if isinstance(node.op, ast.MatMult):
        yield at(node, LIBRARY, "@ has torch multiply matrices")
    elif _is_tensor(target) and _is_tensor(value):
        yield at(node, LIBRARY, "torch computes with two tensors", in_doubt=not (_surely(target) and _surely(value)))
    elif _surely(target):
        yield at(node, LIBRARY, "torch computes with a tensor and a number", in_doubt=True)
    elif target <= {UNKNOWN} and value <= {UNKNOWN} and not _is_traced(view, scope):
        yield at(node, LIBRARY, UNTOLD, in_doubt=True)


def _unary(view: View, node: ast.UnaryOp, scope: Scope) -> Iterator[Finding]:
    if not isinstance(node.op, ast.Not) and _surely(view.of(node.operand, scope)):
        yield at(node, LIBRARY, "torch computes with a tensor", in_doubt=True)


def _compare(view: View, node: ast.Compare, scope: Scope) -> Iterator[Finding]:
    if any(isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in node.ops):
        return
    sides = [view.of(side, scope) for side in (node.left, *node.comparators)]
    if any(_surely(side) for side in sides):
        yield at(node, LIBRARY, "torch compares the elements of a tensor", in_doubt=True)


def _index(view: View, node: ast.Subscript, scope: Scope) -> Iterator[Finding]:
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if _is_tensor(view.of(node.value, scope)) and any(_surely(view.of(part, scope)) for part in parts):
        yield at(node, LIBRARY, "torch gathers or scatters by a tensor of indices")


def _assign(view: View, node: ast.Assign, scope: Scope) -> Iterator[Finding]:
    for target in node.targets:
        into = isinstance(target, ast.Subscript) and _is_tensor(view.of(target.value, scope))
        if into and _surely(view.of(node.value, scope)):
            yield at(node, LIBRARY, "torch copies one tensor into another", in_doubt=True)


def _fold(view: View, node: ast.Call, scope: Scope) -> Iterator[Finding]:
    """Operators by their functions: `operator.add(x, y)`, `map(operator.add, …)`, `sum([x, y])`."""
    called = view.paths(node.func, scope)
    given = [view.of(argument, scope) for argument in node.args]
    if not any(TENSOR in values and HOST not in values for values in given):
        return
    named = [path for path in called if path.startswith("operator.") and path not in NO_OPERATORS]
    if named:
        yield at(node, LIBRARY, f"{named[0]} has torch compute with tensors")
    elif any(path.startswith("operator.") for values in given for path in paths(values)):
        yield at(node, LIBRARY, "an operator's function may have torch compute with tensors", in_doubt=True)
    elif any(path in FOLDS for path in called):
        name = called[0].removeprefix("builtins.")
        yield at(node, LIBRARY, f"{name} has torch compute with tensors", in_doubt=True)


_TESTS: dict[type[ast.AST], Callable[[View, Any, Scope], Iterator[Finding]]] = {
    ast.BinOp: _binary,
    ast.AugAssign: _in_place,
    ast.UnaryOp: _unary,
    ast.Compare: _compare,
    ast.Subscript: _index,
    ast.Assign: _assign,
    ast.Call: _fold,
}
