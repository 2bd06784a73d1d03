"""What the names and expressions of a Python candidate can be, as far as its source tells: modules, tensors, kernels.

An approximation from above: of everything that a name is ever bound to, in a few rounds, without regard to order.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from kernelgen.ladder.policy.expressions import EVALUATE, anything
from kernelgen.ladder.policy.flows import FLOWS
from kernelgen.ladder.policy.kinds import (
    CLASS,
    DEF,
    FACTORY,
    FLOAT,
    HOST,
    KERNEL,
    NOTHING,
    PATH,
    TENSOR,
    UNKNOWN,
    Values,
    elements,
    paths,
    union,
)
from kernelgen.ladder.policy.objects import receiver
from kernelgen.ladder.policy.results_of import PRIM_FUNCS, TILELANG_JIT, TRITON_JIT
from kernelgen.ladder.policy.scopes import Binding, Function, Module, Scope

__all__ = ["PATH", "TENSOR", "UNKNOWN", "Meanings"]

ROUNDS = 8
LARGEST = 24
"""Values of one expression; more are not told apart."""


class Meanings:
    """The values of a module's names and expressions."""

    def __init__(
        self,
        module: Module,
        entry_point: str,
        tensors: Iterable[str],
        numbers: Iterable[str],
        floats: Iterable[str] = (),
    ) -> None:
        self.module = module
        self.functions: dict[str, Function] = {}
        """By the number in their values."""
        self.device: set[ast.AST] = set()
        """Functions whose bodies are a kernel's, which Python does not run."""
        self.kernels: list[ast.FunctionDef] = []
        """The same in their order."""
        self.definitions: dict[str, ast.AST] = {}
        """Functions, classes and calls that make a class, by their numbers."""
        self._names: dict[tuple[Scope, str], Values] = {}
        self._returned: dict[str, Values] = {}
        self._numbers: dict[ast.AST, str] = {}
        self._fields: dict[str, dict[str, Values]] = {}
        self._arguments: dict[str, Values] = {}
        self._settled: dict[ast.AST, Values] | None = None
        self._given = {name: frozenset({TENSOR}) for name in tensors} | dict.fromkeys(numbers, frozenset({HOST}))
        self._given |= {name: frozenset({TENSOR, FLOAT}) for name in floats}
        self._entry_point = entry_point
        for node, _ in module.places:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                self.functions[self.number(node)] = node
        self._settle()

    def of(self, node: ast.AST | None, scope: Scope) -> Values:
        """The values of an expression evaluated in a scope."""
        if node is None:
            return NOTHING
        if self._settled is not None and node in self._settled:
            return self._settled[node]
        values = EVALUATE.get(type(node), anything)(self, node, scope)
        if len(values) > LARGEST:
            values = frozenset(sorted(values)[:LARGEST]) | {UNKNOWN}
        if self._settled is not None:
            self._settled[node] = values
        return values

    def number(self, node: ast.AST) -> str:
        """The number of a function or class, for its value."""
        number = self._numbers.setdefault(node, str(len(self._numbers)))
        self.definitions[number] = node
        return number

    def field(self, number: str, name: str) -> Values:
        """What the attribute of a definition, or of an object made by it, was given."""
        return self._fields.get(number, {}).get(name, NOTHING)

    def held_by(self, numbers: Iterable[str]) -> Values:
        """What all attributes of definitions were given."""
        return union(values for number in numbers for values in self._fields.get(number, {}).values())

    def add_field(self, number: str, name: str, values: Values) -> bool:
        """Let an attribute have further values, and say whether any is new."""
        fields = self._fields.setdefault(number, {})
        held = fields.get(name, NOTHING)
        fields[name] = held | values
        return not values <= held

    def argument(self, name: str | None) -> Values:
        """What launches give the kernels' parameter of a name; None for a name that nobody can tell."""
        if name is not None:
            return self._arguments.get(name, frozenset({HOST}))
        values = union(self._arguments.values())
        return values - {HOST} if TENSOR in values else values | {HOST}

    def add_argument(self, name: str, values: Values) -> bool:
        """Let a kernel's parameter have further values, and say whether any is new."""
        held = self._arguments.get(name, NOTHING)
        self._arguments[name] = held | values
        return not values <= held

    def named(self, scope: Scope, name: str) -> Values:
        """The values of a name bound in a scope."""
        return self._names.get((scope, name), NOTHING)

    def returned(self, function: ast.AST) -> Values:
        """The values that a function returns."""
        return self.returned_by(self.number(function))

    def returned_by(self, number: str) -> Values:
        """The values that the function of a number returns."""
        return self._returned.get(number, NOTHING)

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

    def add(self, scope: Scope, name: str, values: Values) -> bool:
        """Let a name have further values, and say whether any is new."""
        held = self._names.get((scope, name), NOTHING)
        self._names[scope, name] = held | values
        return not values <= held

    def give_back(self, function: ast.AST, values: Values) -> bool:
        """Let a function return further values, and say whether any is new."""
        number = self.number(function)
        held = self._returned.get(number, NOTHING)
        self._returned[number] = held | values
        return not values <= held

    def _settle(self) -> None:
        """Bind names until nothing changes."""
        scopes = list(dict.fromkeys([self.module.root, *self.module.scopes.values()]))
        bindings = [(s, name, b) for s in scopes for name, bound in s.bindings.items() for b in bound]
        for scope, name, binding in bindings:
            if binding.how == "path":
                self.add(scope, name, frozenset({PATH + binding.path}))
        self._find_kernels()
        hidden = {scope for scope in scopes if self.in_kernel(scope)}
        bindings = [(s, name, b) for s, name, b in bindings if s not in hidden]
        places = [(node, scope) for node, scope in self.module.places if scope not in hidden and type(node) in FLOWS]
        for _ in range(ROUNDS):
            changed = [self.add(scope, name, self._bound(name, scope, b)) for scope, name, b in bindings]
            changed += [FLOWS[type(node)](self, node, scope) for node, scope in places]
            if not any(changed):
                break
        self._find_kernels()
        self._settled = {}

    def _find_kernels(self) -> None:
        """Note which functions are kernels: those with a decorator that is Triton's and nothing else."""
        self.device = {
            node
            for node, scope in self.module.places
            if isinstance(node, ast.FunctionDef) and any(self._is_jit(part, scope) for part in node.decorator_list)
        }
        self.kernels = [node for node, _ in self.module.places if node in self.device]  # type: ignore[misc]

    def _is_jit(self, decorator: ast.AST, scope: Scope) -> bool:
        values = self.of(decorator.func if isinstance(decorator, ast.Call) else decorator, scope)
        return bool(values) and all(value.removeprefix(PATH) in TRITON_JIT for value in values)

    def _bound(self, name: str, scope: Scope, binding: Binding) -> Values:
        """The values that one binding gives a name."""
        if binding.how == "value":
            return self.of(binding.node, binding.scope)
        if binding.how == "element":
            return elements(self.of(binding.node, binding.scope))
        if binding.how == "path":
            return frozenset({PATH + binding.path})
        if binding.how == "class":
            return frozenset({CLASS + self.number(binding.node)})
        if binding.how == "def" and isinstance(binding.node, ast.FunctionDef | ast.AsyncFunctionDef):
            return self._definition(binding.node, binding.scope)
        return self._parameter(name, scope, binding)

    def _parameter(self, name: str, scope: Scope, binding: Binding) -> Values:
        """What a parameter may be: told for the entry point, elsewhere gathered from the calls."""
        function = scope.node
        if isinstance(function, ast.FunctionDef) and scope.owner == function.name == self._entry_point:
            return self._given.get(name, frozenset({UNKNOWN}))
        if (
            isinstance(function, ast.FunctionDef)
            and binding.node in (*function.args.posonlyargs, *function.args.args)[:1]
        ):
            own = receiver(self, function)
            if own:
                return own
        annotation = binding.node.annotation if isinstance(binding.node, ast.arg) else None
        said = paths(self.of(annotation, scope.parent or scope))
        return frozenset({TENSOR}) if "torch.Tensor" in said else NOTHING

    def _definition(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> Values:
        """What a function's name stands for, by its decorators."""
        if node in self.device:
            return frozenset({KERNEL + node.name})
        for part in node.decorator_list:
            said = paths(self.of(part.func if isinstance(part, ast.Call) else part, scope))
            if any(path in TILELANG_JIT for path in said):
                return frozenset({FACTORY + self.number(node)})
            if any(path.startswith("tilelang.") and path.rpartition(".")[2] in PRIM_FUNCS for path in said):
                return frozenset({HOST})
        return frozenset({DEF + self.number(node)})
