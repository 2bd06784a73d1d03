"""What a Python candidate names: libraries, built-in functions, methods. Judged where it stands, called or not."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator

from kernelgen.ladder.policy.findings import Finding
from kernelgen.ladder.policy.kinds import OBJECT, PATH, TENSOR, UNKNOWN
from kernelgen.ladder.policy.methods import DUNDERS_READ, OTHER, REDUCTIONS, look_up_method
from kernelgen.ladder.policy.paths import canonical, is_module, look_up
from kernelgen.ladder.policy.python_names import ALLOWED_ROOTS, DSLS, ROOTS, Rule
from kernelgen.ladder.policy.scopes import Scope
from kernelgen.ladder.policy.view import View, at, found

CLOCK_IN_ASM = re.compile(r"%(global_?timer|clock)|\b(global_?timer|clock64|clock)\b\s*\(", re.IGNORECASE)
NATIVE_CALLS = frozenset({"inline_asm_elementwise", "call_extern", "call_pure_extern", "import_source", "evaluate"})
STAR_OK = DSLS | {"math", "typing"}
FLOAT8 = "torch.float8"
RAW_CALL = "a kernel's body is called as Python, without Triton"


def check(view: View) -> Iterator[Finding]:
    """Everything that may not be named."""
    methods = {
        node.name
        for node, scope in view.module.places
        if scope.is_class and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    for node, scope in view.places:
        if isinstance(node, ast.Attribute):
            yield from _attribute(view, node, scope, methods)
        elif isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load) and not _is_base(view, node):
                yield from _paths(view, node, scope)
        elif isinstance(node, ast.Call):
            yield from _call(view, node, scope)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from _import(view, node)
        elif isinstance(node, ast.MatchClass):
            for name in node.kwd_attrs:
                rule = look_up_method(name, is_tensor=True)
                if rule is not None:
                    yield found(rule, node)


def _is_base(view: View, node: ast.AST) -> bool:
    parent = view.parent(node)
    return isinstance(parent, ast.Attribute) and parent.value is node


def _paths(view: View, node: ast.Name | ast.Attribute, scope: Scope) -> Iterator[Finding]:
    """The dotted names that an expression can be, each against the tables."""
    for path in view.paths(node, scope):
        rule = denied(view, path) or look_up(path, view.allowed)
        if rule is not None:
            yield found(rule, node)
        elif is_module(path) and not _may_stand(view, node, scope):
            yield at(node, "policy.introspection", f"the module {canonical(path)} is handed on as a value")


def denied(view: View, path: str) -> Rule | None:
    """The rule of this project against a name."""
    whole = canonical(path)
    for name in view.denied:
        if whole == name or whole.startswith(f"{name}.") or path == name or path.startswith(f"{name}."):
            return Rule("policy.denied", f"{whole} is denied by conf/policy")
    return None


def _may_stand(view: View, node: ast.AST, scope: Scope) -> bool:
    """Whether a module's name stands where it is followed: bound to a name, or asked for a literal attribute."""
    parent = view.parent(node)
    if isinstance(parent, ast.Assign):
        return not scope.is_class and all(isinstance(target, ast.Name) for target in parent.targets)
    if isinstance(parent, ast.Call) and parent.args and parent.args[0] is node and len(parent.args) > 1:
        asked = view.paths(parent.func, scope)
        return asked in (["builtins.getattr"], ["builtins.hasattr"]) and isinstance(parent.args[1], ast.Constant)
    return isinstance(parent, ast.NamedExpr | ast.Expr)


def _attribute(view: View, node: ast.Attribute, scope: Scope, methods: set[str]) -> Iterator[Finding]:
    base = view.of(node.value, scope)
    whole = isinstance(node.ctx, ast.Load) and not _is_base(view, node)
    if whole:
        yield from _paths(view, node, scope)
    if view.meanings.in_kernel(scope):
        return
    if node.attr in OTHER or (_is_dunder(node.attr) and node.attr not in DUNDERS_READ):
        rule = look_up_method(node.attr, is_tensor=False)
        if rule is not None:
            yield found(rule, node)
        return
    if base and all(value.startswith(PATH) for value in base):
        return
    if node.attr in ("fn", "base_fn") and any(value.startswith("kernel:") for value in base) and _strays(view, node):
        yield at(node, "policy.library_work", RAW_CALL)
    rule = _method_rule(view, node, scope, methods)
    if rule is not None and isinstance(node.ctx, ast.Load):
        yield found(rule, node)


def _strays(view: View, node: ast.Attribute) -> bool:
    """Whether a kernel's function goes where it could be called: neither to a launch nor to a name that is followed."""
    parent = view.parent(node)
    if isinstance(parent, ast.Call):
        return parent.func is not node
    return not isinstance(parent, ast.Subscript | ast.Attribute | ast.Assign)


def _method_rule(view: View, node: ast.Attribute, scope: Scope, methods: set[str]) -> Rule | None:
    """The rule against a method, where x of `x.name` is no module."""
    base = view.of(node.value, scope)
    is_tensor = TENSOR in base and "container" not in base
    is_plain = bool(base) and TENSOR not in base and UNKNOWN not in base
    is_plain = is_plain and not any(value.startswith(OBJECT) for value in base)
    if (node.attr in methods and not is_tensor) or "compiled" in base:
        return None
    parent = view.parent(node)
    is_called = isinstance(parent, ast.Call) and parent.func is node
    if node.attr in REDUCTIONS and is_called and _goes_to_host(view, parent, scope):
        return _float_reduction(view, node)
    if node.attr in ("to", "type") and is_tensor and is_called and isinstance(parent, ast.Call):
        given = [p for a in (*parent.args, *(k.value for k in parent.keywords)) for p in view.paths(a, scope)]
        if any(path.startswith(FLOAT8) for path in given):
            return Rule("policy.library_work", ".to has torch quantise to fp8", in_doubt=True)
    return look_up_method(node.attr, is_tensor=is_tensor, is_called=is_called, is_plain=is_plain)


def _goes_to_host(view: View, call: ast.AST | None, scope: Scope) -> bool:
    """Whether the value of a call becomes a Python number at once."""
    outer = view.parent(call) if call is not None else None
    if isinstance(outer, ast.Attribute):
        return outer.attr in ("item", "tolist")
    if isinstance(outer, ast.Call):
        return any(p in ("builtins.int", "builtins.bool", "builtins.float") for p in view.paths(outer.func, scope))
    return False


def _float_reduction(view: View, node: ast.Attribute) -> Rule | None:
    """A reduction of what is no integer metadata, as far as can be told: a plain name of an input is."""
    if isinstance(node.value, ast.Name) and node.value.id in view.floats:
        return Rule("policy.library_work", f".{node.attr} has torch do work that the target's kernel has to do")
    return None


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _call(view: View, node: ast.Call, scope: Scope) -> Iterator[Finding]:
    called = view.paths(node.func, scope)
    for path in called:
        name = canonical(path).removeprefix("builtins.")
        if name in ("getattr", "hasattr", "setattr"):
            yield from _by_name(view, node, scope, name)
        elif name == "type" and len(node.args) > 1:
            yield at(node, "policy.introspection", "type makes a class at run time")
    last = node.func.attr if isinstance(node.func, ast.Attribute) else called[0].rpartition(".")[2] if called else ""
    if last in NATIVE_CALLS:
        texts = [view.text(a, scope) or "" for a in (*node.args, *(k.value for k in node.keywords))]
        if any(CLOCK_IN_ASM.search(text) or text in ("clock", "clock64", "globaltimer") for text in texts):
            yield at(node, "policy.clock", "a kernel reads a clock")
    if any(value.startswith("raw kernel") for value in view.of(node.func, scope)):
        yield at(node, "policy.library_work", RAW_CALL)


def _by_name(view: View, node: ast.Call, scope: Scope, name: str) -> Iterator[Finding]:
    """getattr and its like: a literal name is judged as if it were written out."""
    if len(node.args) < 2 or any(isinstance(argument, ast.Starred) for argument in node.args):
        yield at(node, "policy.introspection", f"{name} reaches an attribute by a name that is not written out")
        return
    asked = node.args[1]
    if not isinstance(asked, ast.Constant) or not isinstance(asked.value, str):
        yield at(node, "policy.introspection", f"{name} reaches an attribute by a name that is not written out")
        return
    base = view.of(node.args[0], scope)
    if name == "setattr":
        if any(value.startswith((PATH, "kernel:", "def:", "class:")) for value in base):
            yield at(node, "policy.global_state", f"setattr replaces .{asked.value}")
        elif TENSOR in base:
            yield at(node, "policy.cache", "something is kept on a tensor", in_doubt=True)
        return
    for value in base:
        if value.startswith(PATH):
            rule = look_up(f"{value[len(PATH) :]}.{asked.value}", view.allowed)
        else:
            rule = look_up_method(asked.value, is_tensor=value == TENSOR)
        if rule is not None and (name == "getattr" or rule.check == "policy.introspection"):
            yield found(rule, node)


def _import(view: View, node: ast.Import | ast.ImportFrom) -> Iterator[Finding]:
    """Imports that hide names, or run what nobody knows; a known module is judged where it is used."""
    if isinstance(node, ast.Import):
        modules = [alias.name for alias in node.names]
    else:
        modules = ["." * node.level + (node.module or "")]
        root = modules[0].partition(".")[0]
        if any(alias.name == "*" for alias in node.names) and root not in STAR_OK:
            yield at(node, "policy.introspection", f"a star import of {modules[0]} hides which names are used")
    for module in modules:
        root = module.partition(".")[0]
        rule = denied(view, module)
        if rule is not None:
            yield found(rule, node)
        elif module in view.allowed or root in view.allowed:
            continue
        elif root == "kernelgen":
            yield at(node, "policy.introspection", "kernelgen is imported by a candidate")
        elif root not in ALLOWED_ROOTS and root not in ROOTS and root not in sys.stdlib_module_names:
            reason = f"the module {module or '.'} is not known as a host's need, and importing it runs it"
            yield at(node, "policy.library_work", reason, in_doubt=True)


def check_texts(view: View) -> Iterator[Finding]:
    """Clocks in assembly, wherever its text stands; docstrings aside."""
    for node, _ in view.places:
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and "%" in node.value
            and not isinstance(view.parent(node), ast.Expr)
            and re.search(r"%(global_?timer|clock)", node.value, re.IGNORECASE)
        ):
            yield at(node, "policy.clock", "a kernel reads a clock")
