"""The settings in which a Triton source launches its kernels, as far as its text tells them; nothing is executed.

One setting is one kernel with compile-time values, warps and stages: a row of its table of configurations, or a launch
with its literal arguments. A value that is computed at run time is absent. What the host code passes for each parameter
is there too, with its dtype where the text tells it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kernelgen.constraints.constants import UNKNOWN, Config, Constant, Evaluator
from kernelgen.constraints.tensors import tensor_dtype
from kernelgen.records import AutotuneConfig

DEFAULT_WARPS, DEFAULT_STAGES = 4, 3
"""Triton's own for CUDA, where a launch states none."""
OPTIONS = ("num_warps", "num_stages")


@dataclass(frozen=True)
class Setting:
    """One kernel as it would be compiled."""

    kernel: ast.FunctionDef
    """Its definition."""
    constants: dict[str, Constant]
    """Compile-time values by parameter; those not known are absent."""
    num_warps: int | None
    """Warps of a block; None where the text does not tell."""
    num_stages: int | None
    """Pipeline stages; None likewise."""
    config: AutotuneConfig | None = None
    """The row of the given table it comes from."""
    tuned: bool = False
    """Whether other settings may stand in for this one: it is one of several configurations."""
    line: int | None = None
    """Line of the launch."""
    dtypes: dict[str, str] = field(default_factory=dict)
    """torch's names of the dtypes of tensors passed, by parameter."""

    def describe(self) -> str:
        """In one line: `gemm[BLOCK_M=128, num_warps=4, num_stages=3]`."""
        options = {"num_warps": self.num_warps, "num_stages": self.num_stages}
        stated = self.constants | {name: value for name, value in options.items() if value is not None}
        return f"{self.kernel.name}[{', '.join(f'{name}={value}' for name, value in stated.items())}]"


def settings(
    tree: ast.Module, table: Mapping[str, Sequence[AutotuneConfig]], dtypes: Mapping[str, str]
) -> list[Setting]:
    """Every setting of a parsed source; `table` is AUTOTUNE_CONFIGS, `dtypes` those of the entry point's arguments."""
    return list(_Reader(tree, table, dtypes).settings())


def jit_functions(tree: ast.Module) -> dict[str, ast.FunctionDef]:
    """The `@triton.jit` functions of a source by name."""
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef))
    return {node.name: node for node in functions if any(_last_name(d) == "jit" for d in node.decorator_list)}


def constexprs(kernel: ast.FunctionDef) -> list[str]:
    """Names of its compile-time parameters."""
    parameters = [*kernel.args.posonlyargs, *kernel.args.args, *kernel.args.kwonlyargs]
    return [p.arg for p in parameters if p.annotation is not None and "constexpr" in ast.unparse(p.annotation)]


class _Reader:
    def __init__(
        self, tree: ast.Module, table: Mapping[str, Sequence[AutotuneConfig]], dtypes: Mapping[str, str]
    ) -> None:
        self._tree, self._table, self._dtypes = tree, table, dtypes
        self._evaluator = Evaluator()
        self._module = self._names(_Scope(tree), {})
        self._kernels = jit_functions(tree)

    def settings(self) -> Iterator[Setting]:
        for host in self._tree.body:
            if isinstance(host, ast.FunctionDef) and host.name in self._kernels:
                continue
            calls = list(self._launches(host))
            if calls:
                scope = _Scope(host)
                names = self._names(scope, self._module)
                for kernel, call in calls:
                    yield from self._launched(kernel, call, names, scope)

    def _launches(self, host: ast.stmt) -> Iterator[tuple[ast.FunctionDef, ast.Call]]:
        for node in ast.walk(host):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript):
                kernel = self._kernels.get(_last_name(node.func.value))
                if kernel is not None:
                    yield kernel, node

    def _launched(
        self, kernel: ast.FunctionDef, call: ast.Call, names: Mapping[str, Constant], scope: _Scope
    ) -> Iterator[Setting]:
        passed, complete = self._passed(kernel, call, names)
        values = {name: self._evaluator.value(node, names) for name, node in passed.items()}
        known = {name: value for name, value in values.items() if value is not UNKNOWN}
        wanted = constexprs(kernel)
        base = Setting(
            kernel,
            {**self._defaults(kernel, wanted), **{name: known[name] for name in wanted if name in known}},
            self._option("num_warps", passed, known, DEFAULT_WARPS if complete else None),
            self._option("num_stages", passed, known, DEFAULT_STAGES if complete else None),
            line=call.lineno,
            dtypes=self._passed_dtypes(passed, scope),
        )
        rows = self._rows(kernel)
        if rows is None:
            yield base
        for row in rows or ():
            options = {name: row.options.get(name) for name in OPTIONS}
            yield replace(
                base,
                constants={**base.constants, **row.kwargs},
                num_warps=_whole(options["num_warps"], base.num_warps),
                num_stages=_whole(options["num_stages"], base.num_stages),
                config=row.options.get("row"),
                tuned=len(rows or ()) > 1,
            )

    def _passed(
        self, kernel: ast.FunctionDef, call: ast.Call, names: Mapping[str, Constant]
    ) -> tuple[dict[str, ast.expr], bool]:
        """The arguments of a launch by parameter or option, and whether all of them could be told."""
        parameters = [p.arg for p in [*kernel.args.posonlyargs, *kernel.args.args]]
        complete = not any(isinstance(argument, ast.Starred) for argument in call.args)
        passed = dict(zip(parameters, call.args, strict=False)) if complete else {}
        for keyword in call.keywords:
            if keyword.arg is not None:
                passed[keyword.arg] = keyword.value
                continue
            spread = self._evaluator.value(keyword.value, names)
            complete = complete and isinstance(spread, dict)
            if isinstance(spread, dict):
                passed |= {str(name): ast.Constant(value) for name, value in spread.items()}
        return passed, complete

    def _option(
        self, name: str, passed: Mapping[str, ast.expr], known: Mapping[str, Constant], default: int | None
    ) -> int | None:
        return default if name not in passed else _whole(known.get(name), None)

    def _defaults(self, kernel: ast.FunctionDef, wanted: Sequence[str]) -> dict[str, Constant]:
        parameters = [*kernel.args.posonlyargs, *kernel.args.args]
        pairs = list(zip(reversed(parameters), reversed(kernel.args.defaults), strict=False))
        pairs += [(p, d) for p, d in zip(kernel.args.kwonlyargs, kernel.args.kw_defaults, strict=True) if d is not None]
        found = {p.arg: self._evaluator.value(node, self._module) for p, node in pairs if p.arg in wanted}
        return {name: value for name, value in found.items() if value is not UNKNOWN}

    def _rows(self, kernel: ast.FunctionDef) -> list[Config] | None:
        """The kernel's configurations; None where it is not tuned, empty where they cannot be told."""
        if kernel.name in self._table:
            return [
                Config(c.kwargs, {"num_warps": c.num_warps, "num_stages": c.num_stages, "row": c})
                for c in self._table[kernel.name]
            ]
        tuner = next(
            (d for d in kernel.decorator_list if isinstance(d, ast.Call) and _last_name(d) == "autotune"), None
        )
        if tuner is None:
            return None
        given = next((keyword.value for keyword in tuner.keywords if keyword.arg == "configs"), None)
        given = tuner.args[0] if given is None and tuner.args else given
        rows = UNKNOWN if given is None else self._evaluator.value(given, self._module)
        if not isinstance(rows, tuple):
            return []
        return [row for row in rows if isinstance(row, Config) and isinstance(row.kwargs, Mapping)]

    def _names(self, scope: _Scope, outer: Mapping[str, Constant]) -> dict[str, Constant]:
        """Names given one constant value in a scope; one that is given two, or is an argument, is not constant."""
        names = {**outer, **dict.fromkeys(scope.names, UNKNOWN)}
        for name, value in scope.single():
            names[name] = self._evaluator.value(value, names)
        return names

    def _passed_dtypes(self, passed: Mapping[str, ast.expr], scope: _Scope) -> dict[str, str]:
        # in a helper the name of an argument may stand for something else
        known = self._dtypes if set(self._dtypes) <= scope.arguments else {}
        found = {name: tensor_dtype(node, scope.values, known) for name, node in passed.items()}
        return {name: dtype for name, dtype in found.items() if dtype is not None}


class _Scope:
    """What the statements of a function, or of a module's top, give to names; functions within it aside."""

    def __init__(self, owner: ast.stmt | ast.Module) -> None:
        self.arguments = _parameters(owner) if isinstance(owner, ast.FunctionDef) else set[str]()
        self.values: dict[str, list[ast.expr | None]] = {}
        """What is assigned to each name, in order; None for a value that the text does not tell."""
        for node in _own_nodes(owner):
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    self._assign(target, node.value)
            elif isinstance(node, ast.For | ast.AugAssign | ast.NamedExpr | ast.comprehension):
                self._assign(node.target, None)
            elif isinstance(node, ast.withitem) and node.optional_vars is not None:
                self._assign(node.optional_vars, None)

    @property
    def names(self) -> set[str]:
        """Every name that is its own."""
        return self.arguments | set(self.values)

    def single(self) -> Iterator[tuple[str, ast.expr]]:
        """Names that are given one value, with it, in the order of the text."""
        for name, values in self.values.items():
            if len(values) == 1 and values[0] is not None and name not in self.arguments:
                yield name, values[0]

    def _assign(self, target: ast.expr, value: ast.expr | None) -> None:
        if isinstance(target, ast.Name):
            self.values.setdefault(target.id, []).append(value)
        elif isinstance(target, ast.Tuple | ast.List):
            parts = value.elts if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts) else None
            for index, part in enumerate(target.elts):
                self._assign(part, None if parts is None else parts[index])


def _own_nodes(owner: ast.stmt | ast.Module) -> Iterator[ast.AST]:
    """The nodes of a scope in the order of the text, without those of functions within it."""
    waiting = list(reversed(list(ast.iter_child_nodes(owner))))
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            waiting.extend(reversed(list(ast.iter_child_nodes(node))))


def _parameters(function: ast.FunctionDef) -> set[str]:
    return {p.arg for p in [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]}


def _whole(value: Constant, otherwise: int | None) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else otherwise


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Call):
        return _last_name(node.func)
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
