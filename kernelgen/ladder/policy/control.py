"""How a Python candidate is built: fallbacks, tasks, classes that answer for tensors, things of others replaced."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

from kernelgen.ladder.policy.findings import Finding
from kernelgen.ladder.policy.kinds import (
    BOUND,
    COMPILED,
    DEF,
    FACTORY,
    KERNEL,
    LAUNCHER,
    METHOD,
    OBJECT,
    PATH,
    RAW,
    UNKNOWN,
)
from kernelgen.ladder.policy.methods import DUNDERS_DEFINED, DUNDERS_REFUSED
from kernelgen.ladder.policy.names import words
from kernelgen.ladder.policy.paths import look_up
from kernelgen.ladder.policy.python_names import DSLS
from kernelgen.ladder.policy.scopes import Scope
from kernelgen.ladder.policy.view import View, at, found

LAUNCHES = (LAUNCHER, COMPILED, DEF, BOUND, OBJECT, FACTORY, RAW)
_CLAUSES = (ast.ExceptHandler, ast.match_case)
INSIDE = "policy.introspection"
OF_KERNELS = words(
    "fn base_fn run warmup cache device_caches cache_hook compiled_hook configs key keys arg_names params signature "
    "src hash kernel launch_metadata pre_run_hooks pre_hook post_hook early_config_prune perf_model values"
)
SWITCHES = ("triton.knobs", "torch.backends", "tilelang.env", "torch.utils", "torch.cuda")


def check(view: View) -> Iterator[Finding]:
    """Every construct that may not be."""
    for node, scope in view.host:
        test = _TESTS.get(type(node))
        if test is not None:
            yield from test(view, node, scope)


def _try(view: View, node: ast.Try, scope: Scope) -> Iterator[Finding]:
    for left in _ways_out(node.finalbody):
        yield at(left, "policy.fallback", "a finally that returns, or leaves a loop, hides a kernel's error")
    if not node.handlers or all(_raises(handler) for handler in node.handlers):
        return
    inside = [inner for statement in node.body for inner in ast.walk(statement)]
    imported = [i for i in inside if isinstance(i, ast.Import | ast.ImportFrom) and _imports_dsl(i)]
    if imported:
        yield at(node, "policy.fallback", "the candidate goes on without the library that its kernels need")
        return
    if any(isinstance(i, ast.Yield | ast.YieldFrom) for i in inside):
        yield at(node, "policy.fallback", "an except around a yield hides a kernel's error")
        return
    called = [view.of(i.func, view.scope_of(i, scope)) for i in inside if isinstance(i, ast.Call)]
    if any(value.startswith(LAUNCHES) for values in called for value in values):
        yield at(node, "policy.fallback", "an except stands in for a kernel that fails")
    elif any(not values or UNKNOWN in values for values in called):
        yield at(node, "policy.fallback", "an except may stand in for a kernel that fails", in_doubt=True)


def _ways_out(statements: list[ast.stmt], *, in_loop: bool = False) -> Iterator[ast.stmt]:
    """Statements that leave a `finally`: not those of a function in it, nor what only leaves a loop in it."""
    for statement in statements:
        if isinstance(statement, ast.Return) or (isinstance(statement, ast.Break | ast.Continue) and not in_loop):
            yield statement
        elif not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            loops = isinstance(statement, ast.For | ast.AsyncFor | ast.While)
            inner = [part for part in ast.iter_child_nodes(statement) if isinstance(part, ast.stmt)]
            parts = [part.body for part in ast.iter_child_nodes(statement) if isinstance(part, _CLAUSES)]
            for body in (inner, *parts):
                yield from _ways_out(body, in_loop=in_loop or loops)


def _raises(handler: ast.ExceptHandler) -> bool:
    """Whether every way through a handler raises, as far as its last statement tells."""
    returns = any(isinstance(inner, ast.Return | ast.Continue | ast.Break) for inner in ast.walk(handler))
    return isinstance(handler.body[-1], ast.Raise) and not returns


def _imports_dsl(node: ast.Import | ast.ImportFrom) -> bool:
    """Whether it is the DSL itself that is imported, and not some part that one version has and another has not."""
    if isinstance(node, ast.Import):
        return any(alias.name.partition(".")[0] in DSLS | {"torch"} for alias in node.names)
    return node.module in ("triton", "tilelang", "triton.language", "tilelang.language", "torch")


def _tasks(view: View, node: ast.AST, scope: Scope) -> Iterator[Finding]:
    if not isinstance(node, ast.AsyncFunctionDef) or node.name in view.reached or scope.owner is not None:
        yield at(node, "policy.threads", "an asynchronous task does work beside the call")


def _class(view: View, node: ast.ClassDef, scope: Scope) -> Iterator[Finding]:
    if node.name not in view.reached and scope.owner is None:
        return
    for base in node.bases:
        for path in view.paths(base, scope):
            if path.startswith("torch.") and path.endswith(("Tensor", "Parameter", "Buffer", "Mode")):
                yield at(node, "policy.lazy_result", "a class of the candidate's own stands for a tensor")
    for keyword in node.keywords:
        yield at(
            node, "policy.introspection", f"a class with {keyword.arg or '**'} changes how classes work", in_doubt=True
        )
    for statement in node.body:
        names = [statement.name] if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef) else []
        if isinstance(statement, ast.Assign):
            names = [target.id for target in statement.targets if isinstance(target, ast.Name)]
        for name in names:
            yield from _special(name, statement)


def _special(name: str, node: ast.AST) -> Iterator[Finding]:
    """A special method of a class."""
    if name in DUNDERS_REFUSED:
        check_id, reason, in_doubt = DUNDERS_REFUSED[name]
        yield at(node, check_id, reason, in_doubt=in_doubt)
    elif name.startswith("__") and name.endswith("__") and name not in DUNDERS_DEFINED:
        yield at(node, "policy.introspection", f"{name} changes how the language works", in_doubt=True)


def _function(view: View, node: ast.FunctionDef, scope: Scope) -> Iterator[Finding]:
    if scope.parent is None and node.name.startswith("__") and node.name.endswith("__"):
        yield at(node, "policy.introspection", f"{node.name} changes how the module answers")
    if node.name == view.entry_point and scope.parent is None:
        inner = view.module.scopes[node]
        for part in ast.walk(node):
            if isinstance(part, ast.Yield | ast.YieldFrom) and view.scope_of(part, inner) is inner:
                yield at(
                    part, "policy.lazy_result", "the entry point gives a generator, which computes only when asked"
                )


def _stored(view: View, node: ast.Attribute, scope: Scope) -> Iterator[Finding]:
    """`x.name = …` and `del x.name` where x is not the candidate's own."""
    if isinstance(node.ctx, ast.Load):
        return
    for value in view.of(node.value, scope):
        if value.startswith(PATH):
            path = f"{value[len(PATH) :]}.{node.attr}"
            rule = look_up(path, view.allowed)
            if path.startswith(SWITCHES):
                yield at(node, "policy.flags", f"{path} is a global switch")
            elif rule is not None and rule.check == "policy.flags":
                yield found(rule, node)
            else:
                yield at(node, "policy.global_state", f"{path} is replaced")
        elif value.startswith((KERNEL, RAW, FACTORY, METHOD)):
            # a kernel's own attributes are Triton's; under any other name something is put by
            check_id = INSIDE if node.attr in OF_KERNELS or node.attr.startswith("_") else "policy.cache"
            said = "is replaced" if check_id == INSIDE else "keeps something from call to call"
            yield at(node, check_id, f".{node.attr} of the candidate's own kernel {said}")
            return


_TESTS: dict[type[ast.AST], Callable[[View, Any, Scope], Iterator[Finding]]] = {
    ast.Try: _try,
    ast.TryStar: _try,
    ast.AsyncFunctionDef: _tasks,
    ast.AsyncFor: _tasks,
    ast.AsyncWith: _tasks,
    ast.Await: _tasks,
    ast.ClassDef: _class,
    ast.FunctionDef: _function,
    ast.Attribute: _stored,
}
