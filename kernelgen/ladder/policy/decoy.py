"""Whether a Python candidate's kernels do its work: launched at all, writing at all, and what they write returned."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeAlias

from kernelgen.ladder.policy.findings import Finding
from kernelgen.ladder.policy.kinds import (
    BOUND,
    CLASS,
    COMPILED,
    DEF,
    FACTORY,
    GROWING,
    LAUNCHER,
    METHOD,
    OBJECT,
    UNKNOWN,
)
from kernelgen.ladder.policy.methods import ALLOCATES, ALLOWED, HOST_ATTRIBUTES
from kernelgen.ladder.policy.python_names import TORCH_ALLOCATES
from kernelgen.ladder.policy.scopes import Scope
from kernelgen.ladder.policy.view import View, at

DECOY = "policy.decoy"
Call: TypeAlias = tuple[ast.Call, Scope]
NATIVE = "torch.utils.cpp_extension"
FROM_KERNEL = "a kernel's result"
"""Among names, which have no blanks: what a kernel or a function of the candidate gave."""


def check(view: View) -> Iterator[Finding]:
    """Kernels that are not there, not launched, write nothing, or whose work is thrown away."""
    entry = view.entry()
    if entry is None or any(
        NATIVE in path for n, s in view.host if isinstance(n, ast.Call) for path in view.paths(n.func, s)
    ):
        return
    calls = [(n, s) for n, s in view.host if isinstance(n, ast.Call) and s.owner is not None]
    launches = [place for place in calls if _is_launch(view, *place)]
    if not view.meanings.device and not _has_tilelang(view):
        yield at(entry, DECOY, "the candidate has no kernel")
    elif not launches:
        unsure = any(_is_unknown(view, *place) for place in calls)
        yield at(entry, DECOY, "no kernel is launched", in_doubt=unsure)
    elif view.meanings.device and not _has_tilelang(view) and not any(_writes(node) for node in view.meanings.device):
        yield at(entry, DECOY, "no kernel writes anything", in_doubt=True)
    elif not _is_returned(view, entry, calls):
        yield at(entry, DECOY, "what the kernels write is not what is returned")


def _has_tilelang(view: View) -> bool:
    return any(
        path.startswith("tilelang.")
        for node, scope in view.host
        if isinstance(node, ast.FunctionDef)
        for part in node.decorator_list
        for path in view.paths(part.func if isinstance(part, ast.Call) else part, scope)
    ) or any(
        path in ("tilelang.compile", "tilelang.jit")
        for node, scope in view.host
        if isinstance(node, ast.Call)
        for path in view.paths(node.func, scope)
    )


def _is_launch(view: View, node: ast.Call, scope: Scope) -> bool:
    values = view.of(node.func, scope)
    if LAUNCHER in values or COMPILED in values:
        return True
    return any(value.startswith(FACTORY) for value in values) and "tensor" in view.of(node, scope)


def _is_unknown(view: View, node: ast.Call, scope: Scope) -> bool:
    values = view.of(node.func, scope)
    return not values or UNKNOWN in values


def _writes(kernel: ast.AST) -> bool:
    """Whether a kernel's body has a store, an atomic or instructions of its own."""
    for node in ast.walk(kernel):
        name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        if "store" in name or "atomic" in name or "asm" in name or name.startswith(("copy", "call_")):
            return True
    return False


def _is_returned(view: View, entry: ast.FunctionDef | ast.AsyncFunctionDef, calls: list[Call]) -> bool:
    """Whether any return of the entry point leads back to what a launch, or a function of the candidate, was given."""
    inside = set(ast.walk(entry))
    returns = [node for node in inside if isinstance(node, ast.Return) and node.value is not None]
    own = view.module.scopes[entry]
    if not returns or any(_has_live_call(view, node, own) for node in returns):
        return True
    given: set[str] = set()
    for node, scope in calls:
        if node in inside and not _is_library(view, node, scope):
            given |= {name for argument in (*node.args, *node.keywords) for name in _names(argument)}
    sources = _sources(view, inside, own)
    # what stands in a container or a view that a launch was given, the launch was given too
    given = _back(given, sources) | {FROM_KERNEL}
    return bool(given & _back({name for node in returns for name in _names(node)}, sources))


def _back(names: set[str], sources: dict[str, set[str]]) -> set[str]:
    """The names, and all that they are views of or were put together of."""
    waiting, seen = set(names), set()
    while waiting:
        name = waiting.pop()
        seen.add(name)
        waiting |= sources.get(name, set()) - seen
    return seen


def _sources(view: View, inside: set[ast.AST], own: Scope) -> dict[str, set[str]]:
    """By name, the names its values are views of or were put together of, and `FROM_KERNEL`."""
    sources: dict[str, set[str]] = {}
    for node in inside:
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.NamedExpr | ast.For):
            value = node.iter if isinstance(node, ast.For) else node.value
            targets: list[ast.expr] = node.targets if isinstance(node, ast.Assign) else [node.target]
            if value is None:
                continue
            came = {FROM_KERNEL} if _has_live_call(view, value, own) else set()
            came |= set() if _is_fresh(view, value, own) else _names(value)
            for name in (name for target in targets for name in _names(target)):
                sources.setdefault(name, set()).update(came)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in GROWING:
            put = {name for argument in (*node.args, *node.keywords) for name in _names(argument)}
            for name in _names(node.func.value):
                sources.setdefault(name, set()).update(put)
    return sources


def _is_fresh(view: View, value: ast.AST, scope: Scope) -> bool:
    """Whether an expression allocates, so that it is a view of nothing."""
    if isinstance(value, ast.GeneratorExp | ast.ListComp):
        value = value.elt
    if not isinstance(value, ast.Call):
        return False
    if isinstance(value.func, ast.Attribute) and value.func.attr in ALLOCATES - {"fill_", "zero_", "copy_"}:
        return True
    said = view.paths(value.func, scope)
    return bool(said) and all(path.removeprefix("torch.") in TORCH_ALLOCATES for path in said)


def _has_live_call(view: View, value: ast.AST, scope: Scope) -> bool:
    """Whether an expression calls a kernel, a function of the candidate, or something that nobody knows."""
    return any(
        isinstance(node, ast.Call) and not _is_library(view, node, view.scope_of(node, scope))
        for node in ast.walk(value)
    )


def _is_library(view: View, node: ast.Call, scope: Scope) -> bool:
    """Whether a call is of a library's function, of a tensor's method or of a number's, and of nothing else."""
    values = view.of(node.func, scope)
    if not values or any(
        value.startswith((LAUNCHER, COMPILED, DEF, BOUND, FACTORY, CLASS, OBJECT, UNKNOWN)) for value in values
    ):
        return False
    methods = [value[len(METHOD) :] for value in values if value.startswith(METHOD)]
    return all(name.startswith(":") or name in ALLOWED or f":{name}" in methods for name in methods)


def _names(node: ast.AST) -> set[str]:
    """The names in an expression whose values go into it: those asked only for their shape are not."""
    found: set[str] = set()
    waiting = [node]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, ast.Name):
            found.add(inner.id)
        if not (isinstance(inner, ast.Attribute) and inner.attr in HOST_ATTRIBUTES):
            waiting += ast.iter_child_nodes(inner)
    return found
