"""What an expression of a Python candidate can be, as far as its source tells: a module's name, a tensor, a kernel.

An approximation from above: sets of values over all that a name is bound to, in a few rounds, without order. Values are
short texts, made by the functions below; `UNKNOWN` stands for anything that is not told.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from kernelgen.ladder.policy.methods import HOST_ATTRIBUTES, TENSOR_ATTRIBUTES
from kernelgen.ladder.policy.results_of import DECORATORS, result_of
from kernelgen.ladder.policy.scopes import Binding, Module, Scope, parameters

Values: TypeAlias = frozenset[str]
TENSOR, HOST, UNKNOWN, POINTER, LAUNCHER, RAW, CONTAINER, COMPILED, DECORATOR = (
    "tensor", "host", "?", "pointer", "launcher", "raw kernel", "container", "compiled", "decorator",
)  # fmt: skip
KERNEL, FACTORY, PATH, DEF, CLASS, METHOD = "kernel:", "factory:", "path:", "def:", "class:", "method:"
NOTHING: Values = frozenset()
ROUNDS = 8
LARGEST = 24
"""Values of one expression; more are not told apart."""
GROWING = frozenset({"append", "add", "insert", "setdefault", "update", "extend", "appendleft", "push"})
TRITON_JIT = frozenset({"triton.jit", "triton.runtime.jit.jit", "triton.runtime.jit", "triton.experimental.gluon.jit"})
TILELANG_JIT = frozenset({"tilelang.jit", "tilelang.jit.jit", "tilelang.lazy_jit", "tilelang.autotune"})
PRIM_FUNCS = frozenset({"prim_func", "macro"})


def paths(values: Values) -> list[str]:
    """The dotted names among values."""
    return [value[len(PATH) :] for value in values if value.startswith(PATH)]


class Meanings:
    """The values of a module's names and expressions."""

    def __init__(self, module: Module, entry_point: str, tensors: Iterable[str], numbers: Iterable[str]) -> None:
        self.module = module
        self._names: dict[tuple[Scope, str], Values] = {}
        self._returned: dict[str, Values] = {}
        self.definitions: dict[str, ast.AST] = {}
        """Functions and classes by the number in their value."""
        self._numbers: dict[ast.AST, str] = {}
        self._settled: dict[ast.AST, Values] | None = None
        self._given = {name: frozenset({TENSOR}) for name in tensors} | dict.fromkeys(numbers, frozenset({HOST}))
        self._entry_point = entry_point
        self.device: set[ast.AST] = set()
        """Functions whose bodies are a kernel's, which Python does not run."""
        for node, _ in module.places:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
                self._numbers[node] = str(len(self._numbers))
                self.definitions[self._numbers[node]] = node
        self._settle()

    def of(self, node: ast.AST | None, scope: Scope) -> Values:
        """The values of an expression evaluated in a scope."""
        if node is None:
            return NOTHING
        if self._settled is not None and node in self._settled:
            return self._settled[node]
        evaluate = _EVALUATE.get(type(node))
        values = evaluate(self, node, scope) if evaluate else _union(self.of(c, scope) for c in _children(node))
        if len(values) > LARGEST:
            values = frozenset(sorted(values)[:LARGEST]) | {UNKNOWN}
        if self._settled is not None:
            self._settled[node] = values
        return values

    def named(self, scope: Scope, name: str) -> Values:
        """The values of a name bound in a scope."""
        return self._names.get((scope, name), NOTHING)

    def returned(self, function: ast.AST) -> Values:
        """The values that a function returns."""
        return self._returned.get(self._numbers[function], NOTHING)

    def in_kernel(self, scope: Scope) -> bool:
        """Whether the scope is part of a kernel's body."""
        inner: Scope | None = scope
        while inner is not None:
            if inner.node in self.device:
                return True
            inner = inner.parent
        return False

    def home(self, name: str, scope: Scope) -> Scope | None:
        """The scope that a name is looked up in; None for what the source does not bind."""
        if name in scope.elsewhere:
            return scope.elsewhere[name]
        return next((place for place in scope.chain() if name in place.bindings), None)

    def _settle(self) -> None:
        """Bind names until nothing changes."""
        scopes = [self.module.root, *self.module.scopes.values()]
        bindings = [(s, name, b) for s in dict.fromkeys(scopes) for name, bound in s.bindings.items() for b in bound]
        for scope, name, binding in bindings:
            if binding.how == "path":
                self._add((scope, name), frozenset({PATH + binding.path}))
        self._find_kernels()
        hidden = {scope for scope in dict.fromkeys(scopes) if self.in_kernel(scope)}
        bindings = [(s, name, b) for s, name, b in bindings if s not in hidden]
        places = [(node, scope) for node, scope in self.module.places if scope not in hidden and type(node) in _FLOWS]
        for _ in range(ROUNDS):
            changed = [self._add((scope, name), self._bound(name, scope, b)) for scope, name, b in bindings]
            changed += [_FLOWS[type(node)](self, node, scope) for node, scope in places]
            if not any(changed):
                break
        self._find_kernels()
        self._settled = {}

    def _find_kernels(self) -> None:
        """Note which functions are kernels: those whose decorator is Triton's and nothing else."""
        self.device = {
            node
            for node, scope in self.module.places
            if isinstance(node, ast.FunctionDef)
            and any(self._is_only(part, scope, TRITON_JIT) for part in node.decorator_list)
        }

    def _is_only(self, decorator: ast.AST, scope: Scope, wanted: frozenset[str]) -> bool:
        values = self.of(decorator.func if isinstance(decorator, ast.Call) else decorator, scope)
        return bool(values) and all(value.removeprefix(PATH) in wanted for value in values)

    def _add(self, key: tuple[Scope, str], values: Values) -> bool:
        held = self._names.get(key, NOTHING)
        self._names[key] = held | values
        return len(self._names[key]) > len(held)

    def _bound(self, name: str, scope: Scope, binding: Binding) -> Values:
        if binding.how == "value":
            return self.of(binding.node, binding.scope)
        if binding.how == "element":
            return elements(self.of(binding.node, binding.scope))
        if binding.how == "path":
            return frozenset({PATH + binding.path})
        if binding.how == "class":
            return frozenset({CLASS + self._numbers[binding.node]})
        if binding.how == "def" and isinstance(binding.node, ast.FunctionDef | ast.AsyncFunctionDef):
            return self._definition(binding.node, binding.scope)
        return self._parameter(name, scope, binding)

    def _parameter(self, name: str, scope: Scope, binding: Binding) -> Values:
        """What a parameter may be: told for the entry point, elsewhere gathered from the calls."""
        function = scope.node
        if isinstance(function, ast.FunctionDef) and scope.owner == function.name == self._entry_point:
            return self._given.get(name, frozenset({UNKNOWN}))
        annotation = binding.node.annotation if isinstance(binding.node, ast.arg) else None
        said = paths(self.of(annotation, scope.parent or scope)) if annotation is not None else []
        return frozenset({TENSOR}) if "torch.Tensor" in said else NOTHING

    def _definition(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> Values:
        if node in self.device:
            return frozenset({KERNEL + node.name})
        for part in node.decorator_list:
            said = paths(self.of(part.func if isinstance(part, ast.Call) else part, scope))
            if any(path in TILELANG_JIT for path in said):
                return frozenset({FACTORY + self._numbers[node]})
            if any(path.startswith("tilelang.") and path.rpartition(".")[2] in PRIM_FUNCS for path in said):
                return frozenset({HOST})
        return frozenset({DEF + self._numbers[node]})

    def _name(self, node: ast.Name, scope: Scope) -> Values:
        home = self.home(node.id, scope)
        if home is not None:
            return self._names.get((home, node.id), NOTHING)
        return frozenset({f"{PATH}builtins.{node.id}" if hasattr(builtins, node.id) or _is_hidden(node.id) else UNKNOWN})

    def _attribute(self, node: ast.Attribute, scope: Scope) -> Values:
        return self.member(self.of(node.value, scope), node.attr)

    def member(self, values: Values, name: str) -> Values:
        """The values of `x.name`."""
        found: set[str] = set()
        for value in values or {UNKNOWN}:
            if value.startswith(PATH):
                found.add(f"{value}.{name}")
            elif value == CONTAINER:
                found |= values
            elif value.startswith(KERNEL) and name in ("fn", "base_fn"):
                found.add(RAW + value.removeprefix("kernel"))
            elif value.startswith(KERNEL) and name in ("run", "warmup"):
                found.add(LAUNCHER)
            elif value in (HOST, POINTER) or (name in HOST_ATTRIBUTES and not value.startswith(RAW)):
                found.add(HOST)
            elif name in TENSOR_ATTRIBUTES and value == TENSOR:
                found.add(TENSOR)
            elif name == "data_ptr":
                found.add(POINTER)
            else:
                found.add(METHOD + name if value in (TENSOR, UNKNOWN) else UNKNOWN)
                if value == TENSOR:
                    found.add(METHOD + ":" + name)
        return frozenset(found)

    def _call(self, node: ast.Call, scope: Scope) -> Values:
        called = self.of(node.func, scope)
        # once for all values: nested calls would take time exponential in their depth
        given = _union(self.of(a, scope) for a in (*node.args, *(k.value for k in node.keywords)))
        return _union(self._called(value, node, scope, called, given) for value in called or {UNKNOWN})

    def _called(self, value: str, node: ast.Call, scope: Scope, called: Values, given: Values) -> Values:
        if value.startswith(PATH):
            return self._path_called(value[len(PATH) :], node, scope, given)
        if value.startswith(DEF):
            return self._returned.get(value[len(DEF) :], NOTHING)
        if value == DECORATOR:
            return given
        if value.startswith(METHOD + ":"):
            return frozenset({TENSOR})
        if value.startswith(FACTORY):
            return frozenset({TENSOR if TENSOR in given else COMPILED})
        if value == COMPILED:
            return frozenset({TENSOR})
        if value == CONTAINER:
            return called
        return frozenset({value if value in (HOST, POINTER, TENSOR) else UNKNOWN})

    def _path_called(self, path: str, node: ast.Call, scope: Scope, given: Values) -> Values:
        if path in DECORATORS:
            return frozenset({DECORATOR})
        if path in TRITON_JIT:
            return frozenset({f"{KERNEL}{ast.unparse(node.args[0])[:80]}" if node.args else DECORATOR})
        if path == "builtins.getattr" and len(node.args) > 1:
            name = node.args[1]
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                return self.member(self.of(node.args[0], scope), name.value)
        return result_of(path, given)

    def _subscript(self, node: ast.Subscript, scope: Scope) -> Values:
        values = self.of(node.value, scope)
        if any(value.startswith((KERNEL, RAW)) for value in values):
            return frozenset({LAUNCHER})
        return elements(values)

    def _sequence(self, node: ast.Tuple | ast.List | ast.Set, scope: Scope) -> Values:
        return _union(self.of(item, scope) for item in node.elts) | {CONTAINER}

    def _mapping(self, node: ast.Dict, scope: Scope) -> Values:
        return _union(self.of(item, scope) for item in node.values) | {CONTAINER}

    def _generated(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp, scope: Scope) -> Values:
        return self.of(node.elt, self.module.scopes[node]) | {CONTAINER}

    def _generated_mapping(self, node: ast.DictComp, scope: Scope) -> Values:
        return self.of(node.value, self.module.scopes[node]) | {CONTAINER}

    def _operation(self, node: ast.BinOp, scope: Scope) -> Values:
        values = self.of(node.left, scope) | self.of(node.right, scope)
        if POINTER in values and isinstance(node.op, ast.Mod | ast.BitAnd | ast.FloorDiv):
            return frozenset({HOST})
        return frozenset(v for v in values if v in (TENSOR, POINTER, UNKNOWN, CONTAINER)) or frozenset({HOST})

    def _comparison(self, node: ast.Compare, scope: Scope) -> Values:
        if all(isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in node.ops):
            return frozenset({HOST})
        values = _union(self.of(item, scope) for item in (node.left, *node.comparators))
        return frozenset({TENSOR if TENSOR in values and CONTAINER not in values else HOST})

    def _choice(self, node: ast.IfExp, scope: Scope) -> Values:
        return self.of(node.body, scope) | self.of(node.orelse, scope)

    def _lambda(self, node: ast.Lambda, scope: Scope) -> Values:
        return frozenset({DEF + self._numbers[node]})

    def _flow_return(self, node: ast.Return, scope: Scope) -> bool:
        function = scope.function()
        if function is None:
            return False
        return self._give_back(self._numbers[function], self.of(node.value, scope))

    def _flow_lambda(self, node: ast.Lambda, scope: Scope) -> bool:
        return self._give_back(self._numbers[node], self.of(node.body, self.module.scopes[node]))

    def _give_back(self, number: str, values: Values) -> bool:
        held = self._returned.get(number, NOTHING)
        self._returned[number] = held | values
        return len(held | values) > len(held)

    def _flow_call(self, node: ast.Call, scope: Scope) -> bool:
        """Arguments reach parameters, and what is put into a container is in it."""
        changed = False
        for value in self.of(node.func, scope):
            if value.startswith((DEF, FACTORY)):
                function = self.definitions[value.partition(":")[2]]
                assert isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
                changed |= self._pass(node, scope, function)
        if isinstance(node.func, ast.Attribute) and node.func.attr in GROWING:
            for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
                changed |= self._put(node.func.value, argument, scope)
        return changed

    def _pass(self, node: ast.Call, scope: Scope, function: Any) -> bool:
        inner = self.module.scopes[function]
        names = [argument.arg for argument in parameters(function.args)]
        given = list(zip(names, node.args, strict=False))
        given += [(keyword.arg, keyword.value) for keyword in node.keywords if keyword.arg in names]
        return any([self._add((inner, str(name)), self.of(value, scope)) for name, value in given])

    def _flow_assign(self, node: ast.Assign, scope: Scope) -> bool:
        stores = [target for target in node.targets if isinstance(target, ast.Subscript)]
        return any([self._put(target.value, node.value, scope) for target in stores])

    def _put(self, container: ast.AST, value: ast.AST, scope: Scope) -> bool:
        home = self.home(container.id, scope) if isinstance(container, ast.Name) else None
        if home is None or not isinstance(container, ast.Name) or TENSOR in self.of(container, scope):
            return False
        return self._add((home, container.id), self.of(value, scope))


def elements(values: Values) -> Values:
    """What is in a container, or comes of indexing."""
    inside = values - {CONTAINER} if CONTAINER in values else values
    kept = frozenset(v for v in inside if not v.startswith((KERNEL, METHOD)) or CONTAINER in values)
    return kept or (frozenset({UNKNOWN}) if values else NOTHING)


def _union(several: Iterable[Values]) -> Values:
    return frozenset().union(*several)


def _children(node: ast.AST) -> Iterable[ast.AST]:
    return (child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr))


def _is_hidden(name: str) -> bool:
    """Names that every module has and `builtins` has not."""
    return name in ("__file__", "__builtins__", "__spec__", "__loader__")


def _constant(meanings: Meanings, node: ast.AST, scope: Scope) -> Values:
    return frozenset({HOST})


def _of_value(meanings: Meanings, node: Any, scope: Scope) -> Values:
    return meanings.of(node.value, scope)


_EVALUATE: dict[type, Callable[[Meanings, Any, Scope], Values]] = {
    ast.Name: Meanings._name,
    ast.Attribute: Meanings._attribute,
    ast.Call: Meanings._call,
    ast.Subscript: Meanings._subscript,
    ast.Tuple: Meanings._sequence,
    ast.List: Meanings._sequence,
    ast.Set: Meanings._sequence,
    ast.Dict: Meanings._mapping,
    ast.ListComp: Meanings._generated,
    ast.SetComp: Meanings._generated,
    ast.GeneratorExp: Meanings._generated,
    ast.DictComp: Meanings._generated_mapping,
    ast.BinOp: Meanings._operation,
    ast.Compare: Meanings._comparison,
    ast.IfExp: Meanings._choice,
    ast.Lambda: Meanings._lambda,
    ast.NamedExpr: _of_value,
    ast.Starred: _of_value,
    ast.Constant: _constant,
    ast.JoinedStr: _constant,
}
_FLOWS: dict[type, Callable[[Meanings, Any, Scope], bool]] = {
    ast.Return: Meanings._flow_return,
    ast.Lambda: Meanings._flow_lambda,
    ast.Call: Meanings._flow_call,
    ast.Assign: Meanings._flow_assign,
}
