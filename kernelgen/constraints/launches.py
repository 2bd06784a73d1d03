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
from kernelgen.records import AutotuneConfig

DEFAULT_WARPS, DEFAULT_STAGES = 4, 3
"""Triton's own for CUDA, where a launch states none."""
OPTIONS = ("num_warps", "num_stages")
_SAME_DTYPE = frozenset(
    {"view", "reshape", "contiguous", "transpose", "permute", "t", "unsqueeze", "squeeze", "flatten", "clone", "expand"}
)
_MAKERS = frozenset({"empty", "zeros", "ones", "full", "empty_strided", "arange"})
_LIKE = frozenset({"empty_like", "zeros_like", "ones_like", "full_like"})
_METHOD_DTYPE = {"float": "float32", "half": "float16", "bfloat16": "bfloat16", "double": "float64", "int": "int32"}


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
        self._module = self._names(tree.body, {})
        self._kernels = jit_functions(tree)

    def settings(self) -> Iterator[Setting]:
        hosts = [
            node for node in self._tree.body if not (isinstance(node, ast.FunctionDef) and node.name in self._kernels)
        ]
        for host in hosts:
            body = host.body if isinstance(host, ast.FunctionDef | ast.ClassDef) else [host]
            known = None
            for node in ast.walk(host):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript):
                    kernel = self._kernels.get(_last_name(node.func.value))
                    if kernel is not None:
                        known = known or self._names(body, self._module)
                        yield from self._launched(kernel, node, known, host)

    def _launched(
        self, kernel: ast.FunctionDef, call: ast.Call, names: Mapping[str, Constant], host: ast.stmt
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
            dtypes=self._passed_dtypes(passed, host),
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
        tuner = next(
            (d for d in kernel.decorator_list if isinstance(d, ast.Call) and _last_name(d) == "autotune"), None
        )
        if tuner is None:
            return None
        if kernel.name in self._table:
            return [
                Config(c.kwargs, {"num_warps": c.num_warps, "num_stages": c.num_stages, "row": c})
                for c in self._table[kernel.name]
            ]
        given = next((keyword.value for keyword in tuner.keywords if keyword.arg == "configs"), None)
        given = tuner.args[0] if given is None and tuner.args else given
        rows = UNKNOWN if given is None else self._evaluator.value(given, self._module)
        if not isinstance(rows, tuple):
            return []
        return [row for row in rows if isinstance(row, Config) and isinstance(row.kwargs, Mapping)]

    def _names(self, body: Sequence[ast.stmt], outer: Mapping[str, Constant]) -> dict[str, Constant]:
        """Names given one constant value in a body; one that is given two is not constant."""
        names = dict(outer)
        times: dict[str, int] = {}
        for statement in body:
            for node in ast.walk(statement):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    times[node.id] = times.get(node.id, 0) + 1
        names |= dict.fromkeys(times, UNKNOWN)
        for statement in body:
            for node in ast.walk(statement):
                match node:
                    case (
                        ast.Assign(targets=[target], value=value)
                        | ast.AnnAssign(target=target, value=ast.expr() as value)
                    ):
                        for name, part in _pairs(target, value):
                            if times.get(name) == 1:
                                names[name] = self._evaluator.value(part, names)
        return names

    def _passed_dtypes(self, passed: Mapping[str, ast.expr], host: ast.stmt) -> dict[str, str]:
        # in a helper the name of an argument may stand for something else
        known = self._dtypes if isinstance(host, ast.FunctionDef) and set(self._dtypes) <= _parameters(host) else {}
        found = {name: _dtype(node, host, known, set()) for name, node in passed.items()}
        return {name: dtype for name, dtype in found.items() if dtype is not None}


def _parameters(function: ast.FunctionDef) -> set[str]:
    return {p.arg for p in [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]}


def _whole(value: Constant, otherwise: int | None) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else otherwise


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Call):
        return _last_name(node.func)
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Names and what is assigned to each, also in `a, b = 1, 2`."""
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        for part, given in zip(target.elts, value.elts, strict=True):
            yield from _pairs(part, given)


def _dtype(node: ast.expr, host: ast.stmt, known: Mapping[str, str], asked: set[str]) -> str | None:
    """torch's name of the dtype of a tensor expression of host code, or None."""
    match node:
        case ast.Name(id=name):
            given = [] if name in asked else list(_assigned(name, host))
            if not given:
                return known.get(name)
            found = {_dtype(value, host, known, asked | {name}) if value is not None else None for value in given}
            return found.pop() if len(found) == 1 else None
        case ast.Subscript(value=value):
            return _dtype(value, host, known, asked)
        case ast.Attribute(value=value, attr="T" | "mT" | "data"):
            return _dtype(value, host, known, asked)
        case ast.Call(func=ast.Attribute(value=value, attr=method)):
            return _of_call(node, value, method, host, known, asked)
    return None


def _of_call(
    call: ast.Call, value: ast.expr, method: str, host: ast.stmt, known: Mapping[str, str], asked: set[str]
) -> str | None:
    named = next((k.value for k in call.keywords if k.arg == "dtype"), None)
    literal = next((n for n in (named, *call.args) if n is not None and _torch_dtype(n)), None)
    if literal is not None:
        return _torch_dtype(literal)
    if method in _MAKERS:
        return "float32" if named is None and method != "arange" and method != "full" else None
    if method in _LIKE and call.args and named is None:
        return _dtype(call.args[0], host, known, asked)
    if named is not None and isinstance(named, ast.Attribute) and named.attr == "dtype":
        return _dtype(named.value, host, known, asked)
    if method in _METHOD_DTYPE:
        return _METHOD_DTYPE[method]
    return _dtype(value, host, known, asked) if method in _SAME_DTYPE else None


def _torch_dtype(node: ast.expr) -> str | None:
    is_torch = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "torch"
    return node.attr if is_torch and isinstance(node, ast.Attribute) else None


def _assigned(name: str, host: ast.stmt) -> Iterator[ast.expr | None]:
    """What is assigned to a name in a function; None for a value that is not told."""
    for node in ast.walk(host):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                pairs = list(_pairs(target, node.value))
                if name in dict(pairs):
                    yield dict(pairs)[name]
                elif any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(target)):
                    yield None
