"""Floating-point inputs read into Python: `x.tolist()`, `list(x)`, a loop over a tensor or over its elements.

A host function reads integer metadata, such as offsets and lengths; what it does with a tensor's own values in Python
is the kernel's work.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from kernelgen.ladder.policy.findings import Finding
from kernelgen.ladder.policy.kinds import CONTAINER, FLOAT, TENSOR, Values
from kernelgen.ladder.policy.names import words
from kernelgen.ladder.policy.scopes import COMPREHENSIONS, Scope
from kernelgen.ladder.policy.view import View, at

LIBRARY = "policy.library_work"
WHOLE = words("tolist numpy __array__ __dlpack__")
NUMBERS = frozenset({"builtins.float", "builtins.int", "builtins.bool", "builtins.complex", "builtins.round"})
READERS = frozenset(
    f"builtins.{name}" for name in words("list tuple set frozenset sorted zip map filter enumerate iter reversed sum")
) | {"math.fsum", "math.prod", "math.sumprod", "statistics.mean", "statistics.fmean", "itertools.chain"}
LOOPS = (ast.For, ast.While, ast.Lambda, *COMPREHENSIONS)


def check(view: View) -> Iterator[Finding]:
    """Everything that takes a floating-point tensor's values one by one, or all."""
    for node, scope in view.host:
        if isinstance(node, ast.Attribute):
            if node.attr in WHOLE and _is_float(view.of(node.value, scope)):
                yield _found(node, f".{node.attr} reads a floating-point tensor into Python")
            elif node.attr == "item" and _is_float(view.of(node.value, scope)) and _in_loop(view, node):
                yield _found(node, "the elements of a floating-point tensor are read one by one")
        elif isinstance(node, ast.For | ast.comprehension):
            if _is_float(view.of(node.iter, scope)):
                yield _found(node.iter, "Python goes through a floating-point tensor")
        elif isinstance(node, ast.Starred):
            if isinstance(node.ctx, ast.Load) and _is_float(view.of(node.value, scope)):
                yield _found(node, "Python goes through a floating-point tensor")
        elif isinstance(node, ast.Call):
            yield from _call(view, node, scope)


def _call(view: View, node: ast.Call, scope: Scope) -> Iterator[Finding]:
    called = view.paths(node.func, scope)
    floats = [argument for argument in node.args if _is_float(view.of(argument, scope))]
    if not called or not floats:
        return
    readers = [path for path in called if path in READERS or path.startswith("itertools.")]
    if readers:
        yield _found(node, f"{readers[0].removeprefix('builtins.')} reads a floating-point tensor into Python")
    elif any(path in NUMBERS for path in called) and _in_loop(view, node):
        yield _found(node, "the elements of a floating-point tensor are read one by one")


def _is_float(values: Values) -> bool:
    return FLOAT in values and TENSOR in values and CONTAINER not in values


def _in_loop(view: View, node: ast.AST) -> bool:
    """Whether it is done over and over, as far as the function around it tells."""
    around = view.parent(node)
    while around is not None and not isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef):
        if isinstance(around, LOOPS):
            return True
        around = view.parent(around)
    return False


def _found(node: ast.AST, reason: str) -> Finding:
    return at(node, LIBRARY, reason, in_doubt=True)
