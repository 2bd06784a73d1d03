"""Which kernels may not be run twice on the same tensors, as an autotuner does.

A kernel that uses atomics, or reads what it writes, gives another result when it is run again. Pointers are followed
through assignments and through calls of other jitted functions; where host code passes the same tensor for a parameter
that is read and one that is written, that counts as well. Errs on the side of saying yes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass
class Effects:
    """What a function does with its parameters."""

    loads: set[str] = field(default_factory=set)
    """Parameters it reads through."""
    stores: set[str] = field(default_factory=set)
    """Parameters it writes through."""
    atomics: bool = False
    """Whether it updates memory atomically."""


def kernels_with_side_effects(
    jitted: Iterable[ast.FunctionDef], launches: Mapping[str, tuple[ast.Call, ...]]
) -> frozenset[str]:
    """Names of the functions that must not be run again on what they have written."""
    functions = {node.name: node for node in jitted}
    found = set()
    for name, node in functions.items():
        effects = _effects(node, functions, ())
        if effects.atomics or effects.loads & effects.stores or _same_tensor(node, effects, launches[name]):
            found.add(name)
    return frozenset(found)


def _effects(node: ast.FunctionDef, functions: Mapping[str, ast.FunctionDef], within: tuple[str, ...]) -> Effects:
    parameters = [argument.arg for argument in node.args.args]
    made_of = _origins(node, parameters)
    effects = Effects()
    for call in (part for part in ast.walk(node) if isinstance(part, ast.Call)):
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if name.startswith("atomic_"):
            effects.atomics = True
        elif name in ("load", "store") and call.args:
            (effects.loads if name == "load" else effects.stores).update(_roots(call.args[0], made_of))
        elif name in functions and name not in within:
            _add_call(
                effects, call, functions[name], _effects(functions[name], functions, (*within, node.name)), made_of
            )
    return effects


def _add_call(
    effects: Effects, call: ast.Call, called: ast.FunctionDef, inner: Effects, made_of: Mapping[str, set[str]]
) -> None:
    """The effects of a called function, in the caller's names."""
    names = [argument.arg for argument in called.args.args]
    passed = dict(zip(names, call.args, strict=False))
    passed |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None}
    effects.atomics |= inner.atomics
    for name, value in passed.items():
        roots = _roots(value, made_of)
        if name in inner.loads:
            effects.loads |= roots
        if name in inner.stores:
            effects.stores |= roots


def _origins(node: ast.FunctionDef, parameters: list[str]) -> dict[str, set[str]]:
    """For each variable the pointer-like parameters that it may be computed from, loaded values aside."""
    made_of = {name: {name} for name in parameters}
    assignments = [part for part in ast.walk(node) if isinstance(part, ast.Assign | ast.AugAssign)]
    for _ in assignments:
        before = {name: set(origins) for name, origins in made_of.items()}
        for part in assignments:
            targets = part.targets if isinstance(part, ast.Assign) else [part.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    made_of.setdefault(target.id, set()).update(_roots(part.value, made_of))
        if made_of == before:
            break
    return made_of


def _roots(node: ast.expr, made_of: Mapping[str, set[str]]) -> set[str]:
    """Parameters an address may be made of: the names of a sum, not what stands inside a call or a product."""
    if isinstance(node, ast.Name):
        return set(made_of.get(node.id, ()))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        return _roots(node.left, made_of) | _roots(node.right, made_of)
    if isinstance(node, ast.IfExp):
        return _roots(node.body, made_of) | _roots(node.orelse, made_of)
    return set()


def _same_tensor(node: ast.FunctionDef, effects: Effects, launches: tuple[ast.Call, ...]) -> bool:
    """Whether a launch passes one variable both for a parameter that is read and for one that is written."""
    names = [argument.arg for argument in node.args.args]
    for call in launches:
        passed = dict(zip(names, call.args, strict=False))
        passed |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None}
        variables = {name: _variable(value) for name, value in passed.items()}
        read = {variables[name] for name in effects.loads if variables.get(name)}
        if read & {variables[name] for name in effects.stores if variables.get(name)}:
            return True
    return False


def _variable(node: ast.expr) -> str:
    """The variable that an argument is, or is a view or attribute of; empty where it is none."""
    while isinstance(node, ast.Attribute | ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""
