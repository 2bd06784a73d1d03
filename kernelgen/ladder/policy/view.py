"""One Python candidate as every check of the policy sees it: its nodes, their meanings, and which of them can run.

Judged is what runs at import and what the entry point can reach by any name that stands in it; a reference or a
benchmark that a file carries along, and what stands under `if __name__ == "__main__":`, is not.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from kernelgen.ladder.policy.findings import Finding
from kernelgen.ladder.policy.kinds import Values, paths
from kernelgen.ladder.policy.python_names import DSLS, Rule
from kernelgen.ladder.policy.scopes import Module, Scope
from kernelgen.ladder.policy.values import Meanings

PLAIN_DECORATORS = DSLS | {"functools", "torch", "dataclasses", "contextlib", "builtins", "typing", "abc"}
LARGEST_LITERAL = 1 << 20
"""Characters of a text put together of literals."""


class View:
    """A parsed candidate."""

    def __init__(
        self,
        module: Module,
        meanings: Meanings,
        entry_point: str,
        allowed: frozenset[str],
        denied: frozenset[str],
        floats: frozenset[str],
    ) -> None:
        self.module = module
        self.meanings = meanings
        self.entry_point = entry_point
        self.allowed = allowed
        """Further dotted names that may be used."""
        self.denied = denied
        """Further dotted names that may not."""
        self.floats = floats
        """Input tensors of the entry point that hold floating-point values."""
        self._aside = set(_never_run(module))
        if "__name__" not in module.root.bindings:
            self._aside |= set(_under_main(module.tree))
        self.reached = self._reach()
        """Top-level functions and classes that can run."""
        self.places = [place for place in module.places if self._runs(*place)]
        """Judged nodes in source order, with their scopes."""
        self.host = [(node, scope) for node, scope in self.places if not meanings.in_kernel(scope)]
        """Those of them that Python runs: all but the bodies of kernels."""

    def of(self, node: ast.AST | None, scope: Scope) -> Values:
        """The values of an expression."""
        return self.meanings.of(node, scope)

    def paths(self, node: ast.AST | None, scope: Scope) -> list[str]:
        """The dotted names an expression can be."""
        return paths(self.meanings.of(node, scope))

    def parent(self, node: ast.AST) -> ast.AST | None:
        """The node around a node."""
        return self.module.parent(node)

    def scope_of(self, node: ast.AST, scope: Scope) -> Scope:
        """The scope of a node within a statement of a scope: that of the innermost function or comprehension around."""
        around = self.parent(node)
        while around is not None and around is not scope.node:
            if around in self.module.scopes:
                return self.module.scopes[around]
            around = self.parent(around)
        return scope

    def entry(self) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        """The entry point's definition, the last where there are several."""
        found = [
            node
            for node in self.module.tree.body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == self.entry_point
        ]
        return found[-1] if found else None

    def text(self, node: ast.AST | None, scope: Scope, depth: int = 8) -> str | None:
        """The text of an expression made of literals and of names bound once to such; None where it is not."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return node.value
        if depth == 0:
            return None
        if isinstance(node, ast.Name):
            home = self.meanings.home(node.id, scope)
            bound = home.bindings[node.id] if home is not None and node.id in home.bindings else []
            if len(bound) != 1 or bound[0].how != "value":
                return None
            return self.text(bound[0].node, bound[0].scope, depth - 1)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return self._joined([node.left, node.right], scope, depth)
        if isinstance(node, ast.List | ast.Tuple):
            return self._joined(node.elts, scope, depth)
        return None

    def _joined(self, nodes: list[ast.expr], scope: Scope, depth: int) -> str | None:
        parts = [self.text(node, scope, depth - 1) for node in nodes]
        whole = [part for part in parts if part is not None]
        return "".join(whole) if len(whole) == len(parts) and sum(map(len, whole)) < LARGEST_LITERAL else None

    def _runs(self, node: ast.AST, scope: Scope) -> bool:
        return node not in self._aside and (scope.owner is None or scope.owner in self.reached)

    def _reach(self) -> frozenset[str]:
        names: dict[str | None, set[str]] = {}
        for node, scope in self.module.places:
            if node not in self._aside:
                names.setdefault(scope.owner, set()).update(_named(node))
        definitions = {
            node.name: node
            for node in self.module.tree.body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        }
        waiting = {self.entry_point, *names.get(None, ())}
        waiting |= {name for name, node in definitions.items() if name.startswith("__") or self._is_handed_on(node)}
        # what stands in an `if` or a loop at module level is an owner too, and runs as far as anyone can tell
        waiting |= {owner for owner in names if owner is not None and owner not in definitions}
        reached: set[str] = set()
        while waiting:
            name = waiting.pop()
            if name not in reached:
                reached.add(name)
                waiting |= names.get(name, set()) - reached
        return frozenset(reached)

    def _is_handed_on(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
        """Whether a decorator that nobody knows gets hold of it."""
        for part in node.decorator_list:
            said = self.paths(part.func if isinstance(part, ast.Call) else part, self.module.root)
            if not said or any(path.partition(".")[0] not in PLAIN_DECORATORS for path in said):
                return True
        return False


def found(rule: Rule, node: ast.AST) -> Finding:
    """A rule broken at a node."""
    return at(node, rule.check, rule.reason, in_doubt=rule.in_doubt)


def at(node: ast.AST, check: str, reason: str, *, in_doubt: bool = False) -> Finding:
    """A finding at a node."""
    return Finding(check, reason, getattr(node, "lineno", 1), getattr(node, "col_offset", 0), in_doubt)


def _named(node: ast.AST) -> Iterator[str]:
    """Names by which a node could reach a function."""
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield node.attr
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 200:
        yield node.value


def _never_run(module: Module) -> Iterator[ast.AST]:
    """Every node of what stands under `if False:`, or beside `if True:`."""
    for node, _ in module.places:
        if isinstance(node, ast.If | ast.While) and isinstance(node.test, ast.Constant):
            for inner in node.orelse if node.test.value else node.body:
                yield from ast.walk(inner)


def _under_main(tree: ast.Module) -> Iterator[ast.AST]:
    """Every node of the bodies of `if __name__ == "__main__":` at module level."""
    for statement in tree.body:
        if isinstance(statement, ast.If) and _asks_for_main(statement.test):
            for inner in statement.body:
                yield from ast.walk(inner)


def _asks_for_main(test: ast.expr) -> bool:
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Eq):
        return False
    sides = (test.left, test.comparators[0])
    asked = any(isinstance(side, ast.Name) and side.id == "__name__" for side in sides)
    return asked and any(isinstance(side, ast.Constant) and side.value == "__main__" for side in sides)
