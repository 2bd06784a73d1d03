"""A Python source as scopes and bindings: which name means what where, without running anything.

Bindings are collected without regard to order: a name means everything it is ever bound to in its scope. That is what
a check wants to know of a source that may hide things, and an honest source seldom binds a name twice.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True, eq=False)
class Binding:
    """One way in which a name gets a meaning."""

    how: Literal["value", "element", "path", "def", "class", "unknown"]
    """The value of `node`, an element of it, an imported `path`, a definition, or nothing that can be told."""
    node: ast.AST
    """The expression or definition."""
    scope: Scope
    """Where the expression is evaluated."""
    path: str = ""
    """Dotted name of what is imported."""


@dataclass(eq=False)
class Scope:
    """A module, function, class or comprehension."""

    node: ast.AST
    """What opens it."""
    parent: Scope | None
    """The scope around it; None for the module."""
    owner: str | None
    """The top-level function or class it is part of; None at module level."""
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    """By name."""
    elsewhere: dict[str, Scope] = field(default_factory=dict)
    """Names declared global or nonlocal, with the scope they are bound in."""

    @property
    def is_class(self) -> bool:
        """Whether its names are attributes, which nested functions do not see."""
        return isinstance(self.node, ast.ClassDef)

    def chain(self) -> Iterator[Scope]:
        """Scopes in which a name of this one is looked up, innermost first."""
        yield self
        scope = self.parent
        while scope is not None:
            if not scope.is_class:
                yield scope
            scope = scope.parent

    def function(self) -> Function | None:
        """The function it is part of; None at module level and in class bodies there."""
        scope: Scope | None = self
        while scope is not None:
            if isinstance(scope.node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                return scope.node
            scope = scope.parent
        return None


class Module:
    """A parsed source, every node with its scope and parent."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.root = Scope(tree, None, None)
        self.places: list[tuple[ast.AST, Scope]] = []
        """Every node in source order, with the scope it is evaluated in."""
        self.parents: dict[ast.AST, ast.AST] = {}
        """The node around each node."""
        self.scopes: dict[ast.AST, Scope] = {tree: self.root}
        """The scope that a node opens."""
        for statement in tree.body:
            self._visit(statement, self.root, tree)

    def parent(self, node: ast.AST) -> ast.AST | None:
        """The node around a node; None for the module."""
        return self.parents.get(node)

    def _visit(self, node: ast.AST, scope: Scope, parent: ast.AST) -> None:
        self.parents[node] = parent
        self.places.append((node, scope))
        special = _SPECIAL.get(type(node))
        if special is None:
            self._children(node, scope)
        else:
            special(self, node, scope)

    def _children(self, node: ast.AST, scope: Scope) -> None:
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(value, list):
                for item in value:
                    if isinstance(item, ast.AST):
                        self._visit(item, scope, node)
            elif isinstance(value, ast.AST) and not isinstance(value, ast.expr_context):
                self._visit(value, scope, node)

    def _bind(self, name: str, scope: Scope, binding: Binding) -> None:
        scope = scope.elsewhere.get(name, scope)
        scope.bindings.setdefault(name, []).append(binding)

    def _bind_target(self, target: ast.AST, value: ast.AST, how: Literal["value", "element"], scope: Scope) -> None:
        if isinstance(target, ast.Name):
            self._bind(target.id, scope, Binding(how, value, scope))
        elif isinstance(target, ast.Starred):
            self._bind_target(target.value, value, "element", scope)
        elif isinstance(target, ast.Tuple | ast.List):
            pairs = _pairs(target, value) if how == "value" else None
            for one, part in pairs or [(item, value) for item in target.elts]:
                self._bind_target(one, part, "value" if pairs else "element", scope)

    def _assign(self, node: ast.Assign, scope: Scope) -> None:
        for target in node.targets:
            self._bind_target(target, node.value, "value", scope)
        self._children(node, scope)

    def _assign_one(self, node: ast.AnnAssign | ast.AugAssign, scope: Scope) -> None:
        if node.value is not None:
            self._bind_target(node.target, node.value, "value", scope)
        self._children(node, scope)

    def _walrus(self, node: ast.NamedExpr, scope: Scope) -> None:
        home = scope
        while isinstance(home.node, COMPREHENSIONS) and home.parent is not None:
            home = home.parent
        self._bind(node.target.id, home, Binding("value", node.value, scope))
        self._children(node, scope)

    def _for(self, node: ast.For | ast.AsyncFor, scope: Scope) -> None:
        self._bind_target(node.target, node.iter, "element", scope)
        self._children(node, scope)

    def _with(self, node: ast.withitem, scope: Scope) -> None:
        if node.optional_vars is not None:
            self._bind_target(node.optional_vars, node.context_expr, "element", scope)
        self._children(node, scope)

    def _named(self, node: ast.ExceptHandler | ast.MatchAs | ast.MatchStar, scope: Scope) -> None:
        if node.name is not None:
            self._bind(node.name, scope, Binding("unknown", node, scope))
        self._children(node, scope)

    def _import(self, node: ast.Import, scope: Scope) -> None:
        for alias in node.names:
            path = alias.name if alias.asname else alias.name.partition(".")[0]
            self._bind(alias.asname or path, scope, Binding("path", node, scope, path))

    def _import_from(self, node: ast.ImportFrom, scope: Scope) -> None:
        for alias in node.names:
            path = f"{'.' * node.level}{node.module or ''}.{alias.name}"
            self._bind(alias.asname or alias.name, scope, Binding("path", node, scope, path))

    def _outer(self, node: ast.Global | ast.Nonlocal, scope: Scope) -> None:
        for name in node.names:
            holders = [s for s in scope.chain() if s is not scope and s is not self.root and name in s.bindings]
            scope.elsewhere[name] = holders[0] if isinstance(node, ast.Nonlocal) and holders else self.root

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> None:
        self._bind(node.name, scope, Binding("def", node, scope))
        for part in (*node.decorator_list, node.returns):
            if part is not None:
                self._visit(part, scope, node)
        inner = Scope(node, scope, scope.owner or node.name)
        self._parameters(node.args, scope, inner, node)
        for statement in node.body:
            self._visit(statement, inner, node)

    def _lambda(self, node: ast.Lambda, scope: Scope) -> None:
        inner = Scope(node, scope, scope.owner)
        self._parameters(node.args, scope, inner, node)
        self._visit(node.body, inner, node)

    def _parameters(self, arguments: ast.arguments, outer: Scope, inner: Scope, node: ast.AST) -> None:
        self.scopes[node] = inner
        for default in (*arguments.defaults, *arguments.kw_defaults):
            if default is not None:
                self._visit(default, outer, node)
        positional = [*arguments.posonlyargs, *arguments.args]
        defaults = {a.arg: d for a, d in zip(reversed(positional), reversed(arguments.defaults), strict=False)}
        defaults |= {a.arg: d for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d}
        for argument in parameters(arguments):
            if argument.annotation is not None:
                self._visit(argument.annotation, outer, node)
            default = defaults.get(argument.arg)
            bound = Binding("value", default, outer) if default is not None else Binding("unknown", argument, inner)
            self._bind(argument.arg, inner, bound)

    def _class(self, node: ast.ClassDef, scope: Scope) -> None:
        self._bind(node.name, scope, Binding("class", node, scope))
        inner = Scope(node, scope, scope.owner or node.name)
        self.scopes[node] = inner
        for part in (*node.decorator_list, *node.bases, *node.keywords):
            self._visit(part, scope, node)
        for statement in node.body:
            self._visit(statement, inner, node)

    def _comprehension(self, node: ast.ListComp, scope: Scope) -> None:
        inner = Scope(node, scope, scope.owner)
        self.scopes[node] = inner
        for generator in node.generators:
            self._bind_target(generator.target, generator.iter, "element", inner)
        self._children(node, inner)


def parameters(arguments: ast.arguments) -> list[ast.arg]:
    """All parameters of a function, `*args` and `**kwargs` among them."""
    stars = [a for a in (arguments.vararg, arguments.kwarg) if a is not None]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *stars]


def _pairs(target: ast.Tuple | ast.List, value: ast.AST) -> list[tuple[ast.AST, ast.AST]] | None:
    """Targets with their values, where both are written out."""
    if not isinstance(value, ast.Tuple | ast.List) or len(value.elts) != len(target.elts):
        return None
    if any(isinstance(item, ast.Starred) for item in (*target.elts, *value.elts)):
        return None
    return list(zip(target.elts, value.elts, strict=True))


_SPECIAL: dict[type[ast.AST], Callable[[Module, Any, Scope], None]] = {
    ast.Assign: Module._assign,
    ast.AnnAssign: Module._assign_one,
    ast.AugAssign: Module._assign_one,
    ast.NamedExpr: Module._walrus,
    ast.For: Module._for,
    ast.AsyncFor: Module._for,
    ast.withitem: Module._with,
    ast.ExceptHandler: Module._named,
    ast.MatchAs: Module._named,
    ast.MatchStar: Module._named,
    ast.Import: Module._import,
    ast.ImportFrom: Module._import_from,
    ast.Global: Module._outer,
    ast.Nonlocal: Module._outer,
    ast.FunctionDef: Module._function,
    ast.AsyncFunctionDef: Module._function,
    ast.Lambda: Module._lambda,
    ast.ClassDef: Module._class,
    **dict.fromkeys(COMPREHENSIONS, Module._comprehension),
}
