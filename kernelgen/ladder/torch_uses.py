"""Where a solution's Python has torch, or another library, do a family of work: by name, method, operator or module.

A module of torch that is made for its weights alone does no work; one that is called does. A method counts where it can
be a tensor's.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from kernelgen.ladder.policy.scopes import Scope
from kernelgen.ladder.policy.values import PATH, TENSOR, UNKNOWN
from kernelgen.ladder.policy.view import View
from kernelgen.ladder.torch_work import FAMILIES, family_of, family_of_module, own_family

LIBRARIES = frozenset({"numpy", "scipy", "cupy", "jax", "xformers", "flash_attn", "flashinfer", "cublas", "apex"})
LOADERS = frozenset({"torch.utils.cpp_extension.load_inline", "torch.utils.cpp_extension.load"})
ALIASES = 3
"""How often what a loader built is followed from name to name."""
ALLOCATES = frozenset(
    {
        "empty",
        "empty_like",
        "empty_strided",
        "zeros",
        "zeros_like",
        "ones",
        "full",
        "full_like",
        "new_empty",
        "new_zeros",
    }
)
# also names of what lists, sets, texts and dictionaries have: only where a tensor is meant
EVERYDAY = frozenset(
    {"add", "all", "any", "sum", "max", "min", "mode", "index", "sort", "take", "unique", "round", "where", "cat",
     "stack", "pad", "fold", "mean", "norm", "dist", "trace", "sub", "roll", "flip", "gather", "unfold"}
)  # fmt: skip


@dataclass(frozen=True)
class Use:
    """One place where torch, or a library, does a family of work."""

    family: str
    """Which."""
    name: str
    """What is used, as a reader knows it."""
    line: int
    """Line of the source, from 1."""
    on_own_buffer: bool = False
    """Whether it works on what the solution allocated and its kernels wrote."""


def uses(view: View, skipped: set[ast.AST], unlisted: frozenset[str]) -> Iterator[Use]:
    """Every place where Python code asks torch, or a library, for work."""
    made, own = dict(_modules_made(view)), _own_names(view)
    for node, scope in view.host:
        if node in skipped:
            continue
        if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.MatMult):
            yield Use("matrix product", "@", node.lineno)
        elif isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Load):
            yield from _named(view, node, scope, unlisted)
            if isinstance(node, ast.Attribute) and not _is_own(node, own):
                yield from _method(view, node, scope, unlisted)
            if isinstance(node, ast.Attribute) and node.attr in made and _is_used(view, node):
                family, name = made[node.attr]
                yield Use(family, f"{name}, called as .{node.attr}", node.lineno)
        elif isinstance(node, ast.Call):
            yield from _made_and_called(view, node, scope)
        elif isinstance(node, ast.ClassDef):
            yield from _inherited(view, node, scope)


def _named(view: View, node: ast.Attribute | ast.Name, scope: Scope, unlisted: frozenset[str]) -> Iterator[Use]:
    """A function by its path, or a method of what is no module."""
    parent = view.parent(node)
    if isinstance(parent, ast.Attribute) and parent.value is node:
        return
    paths = view.paths(node, scope)
    call = parent if isinstance(parent, ast.Call) and parent.func is node else None
    for path in paths:
        root, *rest = path.split(".")
        families = [family for part in rest if (family := _family(part, unlisted)) is not None]
        if (root == "torch" or root in LIBRARIES) and families:
            operand = call.args[0] if call and call.args else None
            yield Use(families[-1], path, node.lineno, _is_own_buffer(view, operand, scope))


def _method(view: View, node: ast.Attribute, scope: Scope, unlisted: frozenset[str]) -> Iterator[Use]:
    """A method of what is, or may be, a tensor."""
    parent = view.parent(node)
    family, base = _family(node.attr, unlisted), view.of(node.value, scope)
    if family is None or not (isinstance(parent, ast.Call) and parent.func is node):
        return
    is_open = (not base or UNKNOWN in base) and node.attr.rstrip("_") not in EVERYDAY
    if (TENSOR in base or is_open) and not any(value.startswith(PATH) for value in base):
        yield Use(family, f".{node.attr}", node.lineno, _is_own_buffer(view, node.value, scope))


def _own_names(view: View) -> frozenset[str]:
    """Names and attributes that hold what torch's loader built, whose functions are the solution's own kernels."""
    held: set[str] = set()
    for _ in range(ALIASES):
        for node, scope in view.host:
            if not isinstance(node, ast.Assign):
                continue
            value = node.value
            called = view.paths(value.func, scope) if isinstance(value, ast.Call) else []
            if set(called) & LOADERS or _last_name(value) in held:
                held |= {_last_name(target) for target in node.targets}
    return frozenset(held - {""})


def _is_own(node: ast.Attribute, own: frozenset[str]) -> bool:
    """Whether `x.name` is the solution's own: x is `self`, or what a loader built."""
    return _last_name(node.value) in own | {"self"}


def _last_name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _family(name: str, unlisted: frozenset[str]) -> str | None:
    family = family_of(name)
    return own_family(name) if family is None and own_family(name) in unlisted else family


def _modules_made(view: View) -> Iterator[tuple[str, tuple[str, str]]]:
    """Attributes that hold a module of torch.nn, or a row of such, with its family and name."""
    for node, scope in view.host:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        inner = (call for call in ast.walk(node.value) if isinstance(call, ast.Call))
        modules = [found for call in inner for found in _module(view, call, scope)]
        for target in targets:
            if isinstance(target, ast.Attribute) and modules:
                yield target.attr, min(modules, key=lambda module: _rank(module[0]))


def _rank(family: str) -> int:
    """Where a family stands, the heavy ones first."""
    return list(FAMILIES).index(family)


def _module(view: View, call: ast.Call, scope: Scope) -> Iterator[tuple[str, str]]:
    for path in view.paths(call.func, scope):
        last = path.rpartition(".")[2]
        family = family_of_module(last) if path.startswith("torch.nn.") else None
        if family is not None:
            yield family, path


def _is_used(view: View, node: ast.Attribute) -> bool:
    """Whether `self.linear` is called or handed on, rather than asked for its weight."""
    parent = view.parent(node)
    return not isinstance(parent, ast.Attribute) and not isinstance(parent, ast.Assign | ast.AnnAssign | ast.Delete)


def _made_and_called(view: View, node: ast.Call, scope: Scope) -> Iterator[Use]:
    """`nn.Linear(…)(x)`."""
    if isinstance(node.func, ast.Call):
        for family, path in _module(view, node.func, scope):
            yield Use(family, path, node.lineno)


def _inherited(view: View, node: ast.ClassDef, scope: Scope) -> Iterator[Use]:
    """`class ModelNew(nn.Softmax)`, whose forward is torch's."""
    for path in (path for base in node.bases for path in view.paths(base, scope)):
        family = family_of_module(path.rpartition(".")[2]) if path.startswith("torch.nn.") else None
        if family is not None:
            yield Use(family, f"{path}, inherited from", node.lineno)


def _is_own_buffer(view: View, operand: ast.AST | None, scope: Scope) -> bool:
    """Whether an operand is memory that the same function allocated."""
    while isinstance(operand, ast.Attribute | ast.Subscript | ast.Call):
        operand = operand.func if isinstance(operand, ast.Call) else operand.value
    if not isinstance(operand, ast.Name):
        return False
    home = view.meanings.home(operand.id, scope)
    bound = home.bindings.get(operand.id, []) if home is not None else []
    return bool(bound) and all(_allocates(binding.node) for binding in bound)


def _allocates(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return name in ALLOCATES
