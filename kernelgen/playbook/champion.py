"""What can be tuned in a Triton source: its kernels, their configurations and their launches, read with `ast`.

Known forms: a table `AUTOTUNE_CONFIGS` of `triton.Config` lists, `@triton.autotune` with a literal or named list, and
no autotuner at all. Nothing is executed. What cannot be read for certain is reported as not tunable, never guessed.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import lru_cache

from pydantic import ValidationError

from kernelgen import markers, python_source
from kernelgen.errors import NoPlay
from kernelgen.playbook.effects import kernels_with_side_effects
from kernelgen.records import AutotuneConfig

TABLE = "AUTOTUNE_CONFIGS"
OPTIONS = ("num_warps", "num_stages")
PARSED_KEPT = 32
"""Sources whose parse is kept: the jobs of a sweep ask for the same champion again."""


@dataclass(frozen=True)
class Kernel:
    """One `@triton.jit` function that the source launches."""

    name: str
    """Its name."""
    node: ast.FunctionDef
    """Its definition."""
    autotuner: ast.Call | None
    """Its `@triton.autotune(...)` decorator, or None."""
    configs: list[AutotuneConfig] | None
    """Its configurations; None where they cannot be read, empty where it refers to a table that is not defined."""
    table_entry: str | None
    """The entry of AUTOTUNE_CONFIGS that the decorator names, or None."""
    launches: tuple[ast.Call, ...]
    """Calls of the form `kernel[grid](...)`."""
    repeatable: bool
    """Whether running it again changes nothing: no atomics, nothing read and written, or the decorator resets it."""
    grid_depends_on: frozenset[str]
    """Constexpr parameters that the program's index is multiplied with."""


@dataclass(frozen=True)
class Champion:
    """A parsed source."""

    source: str
    """The text."""
    tree: ast.Module
    """Its syntax tree."""
    table: ast.stmt | None
    """The statement that defines AUTOTUNE_CONFIGS, or None."""
    kernels: tuple[Kernel, ...]
    """Launched kernels, in the order of their definition."""
    meta_names: frozenset[str]
    """Names looked up by text anywhere, as a grid does in `meta["BLOCK"]`."""


@lru_cache(maxsize=PARSED_KEPT)
def parse(source: str) -> Champion:
    """Raises NoPlay where the source is no Python, or launches no Triton kernel."""
    whole = _tree(source)
    # a promoted candidate's file: what stands outside the marks, its table aside, is kernelgen's
    source = _models_part(source)
    tree = _tree(source)
    table = next((node for node in tree.body if TABLE in _assigned(node)), None)
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    jitted = [node for node in functions if any(_is_named(decorator, "jit") for decorator in node.decorator_list)]
    launches = {node.name: _launches(tree, node.name) for node in jitted}
    changing = kernels_with_side_effects(jitted, launches)
    kernels = tuple(
        _kernel(whole, node, launches[node.name], node.name in changing) for node in jitted if launches[node.name]
    )
    if not kernels:
        raise NoPlay("The champion launches no @triton.jit kernel: there is nothing to autotune.")
    looked_up = (node.slice for node in ast.walk(tree) if isinstance(node, ast.Subscript))
    names = frozenset(key.value for key in looked_up if isinstance(key, ast.Constant) and isinstance(key.value, str))
    return Champion(source, tree, table, kernels, names)


def _tree(source: str) -> ast.Module:
    try:
        return python_source.parse(source)
    except SyntaxError as error:
        raise NoPlay(f"The champion's source is not Python: line {error.lineno}: {error.msg}.") from None


def _models_part(source: str) -> str:
    """What stands between the marks of a candidate file; any other source as it is."""
    _, begins, rest = source.partition(markers.begin("python"))
    part, ends, _ = rest.rpartition(markers.end("python"))
    return part if begins and ends else source


def table_of(source: str) -> dict[str, list[AutotuneConfig]]:
    """The configurations of every autotuned kernel of a source, by kernel name, as a reply writes them.

    Reads the decorators alone, which is much less work than `parse`.
    """
    tree = _tree(source)
    tuned = {node.name: _autotuner(node) for node in tree.body if isinstance(node, ast.FunctionDef)}
    found = {name: _configs(tree, autotuner) for name, autotuner in tuned.items() if autotuner is not None}
    return {name: configs for name, configs in found.items() if configs}


def _autotuner(node: ast.FunctionDef) -> ast.Call | None:
    return next((d for d in node.decorator_list if isinstance(d, ast.Call) and _is_named(d, "autotune")), None)


def _kernel(tree: ast.Module, node: ast.FunctionDef, launches: tuple[ast.Call, ...], changing: bool) -> Kernel:
    autotuner = _autotuner(node)
    resets = autotuner is not None and any(_resets(keyword) for keyword in autotuner.keywords)
    return Kernel(
        name=node.name,
        node=node,
        autotuner=autotuner,
        configs=_launched_with(launches) if autotuner is None else _configs(tree, autotuner),
        table_entry=None if autotuner is None else _table_entry(autotuner),
        launches=launches,
        repeatable=resets or not changing,
        grid_depends_on=frozenset(_multiplied_with_program_id(node)),
    )


def _given_configs(autotuner: ast.Call) -> ast.expr | None:
    given = next((keyword.value for keyword in autotuner.keywords if keyword.arg == "configs"), None)
    return autotuner.args[0] if given is None and autotuner.args else given


def _table_entry(autotuner: ast.Call) -> str | None:
    given = _given_configs(autotuner)
    if isinstance(given, ast.Subscript) and _is_named(given.value, TABLE) and isinstance(given.slice, ast.Constant):
        return str(given.slice.value)
    return None


def _resets(keyword: ast.keyword) -> bool:
    """Whether the keyword names tensors that the autotuner puts back before it runs a kernel again."""
    names = keyword.value.elts if isinstance(keyword.value, ast.List | ast.Tuple) else []
    return keyword.arg in ("reset_to_zero", "restore_value") and bool(names)


def _is_named(node: ast.expr, name: str) -> bool:
    """Whether an expression is `name`, `module.name`, or a call of one of them."""
    if isinstance(node, ast.Call):
        return _is_named(node.func, name)
    return (isinstance(node, ast.Attribute) and node.attr == name) or (isinstance(node, ast.Name) and node.id == name)


def _assigned(node: ast.stmt) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _launches(tree: ast.Module, name: str) -> tuple[ast.Call, ...]:
    return tuple(
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript) and _is_named(node.func.value, name)
    )


def _launched_with(launches: tuple[ast.Call, ...]) -> list[AutotuneConfig] | None:
    """The one configuration of a kernel without autotuner: its options at the launch, where all launches agree."""
    found: list[AutotuneConfig] = []
    for call in launches:
        options: dict[str, int] = {}
        for keyword in call.keywords:
            if keyword.arg is None:
                return None
            if keyword.arg in OPTIONS:
                if not isinstance(keyword.value, ast.Constant) or not isinstance(keyword.value.value, int):
                    return None
                options[keyword.arg] = keyword.value.value
        found.append(AutotuneConfig(kwargs={}, **options))
    return found[:1] if all(options == found[0] for options in found) else None


def _configs(tree: ast.Module, autotuner: ast.Call) -> list[AutotuneConfig] | None:
    """The list that `configs=` stands for; empty for an entry of a table that is defined elsewhere."""
    given = _given_configs(autotuner)
    key: str | None = None
    if isinstance(given, ast.Subscript) and isinstance(given.slice, ast.Constant):
        key, given = str(given.slice.value), given.value
    if isinstance(given, ast.Name):
        if given.id == TABLE and not any(TABLE in _assigned(node) for node in tree.body):
            return []
        given = _module_value(tree, given.id)
    if key is not None and isinstance(given, ast.Dict):
        entries = zip(given.keys, given.values, strict=True)
        given = next((value for name, value in entries if isinstance(name, ast.Constant) and name.value == key), None)
    if not isinstance(given, ast.List | ast.Tuple):
        return None
    configs = [_config(element) for element in given.elts]
    return [config for config in configs if config is not None] if all(configs) else None


def _module_value(tree: ast.Module, name: str) -> ast.expr | None:
    values = [
        node.value for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign) and name in _assigned(node)
    ]
    return values[0] if len(values) == 1 else None


def _config(node: ast.expr) -> AutotuneConfig | None:
    """A `triton.Config({...}, num_warps=…, num_stages=…)` of literals; None for anything else."""
    if not isinstance(node, ast.Call) or not _is_named(node, "Config") or len(node.args) > 1:
        return None
    given = {keyword.arg: keyword.value for keyword in node.keywords}
    try:
        kwargs = ast.literal_eval(node.args[0] if node.args else given.pop("kwargs", ast.Dict([], [])))
        options = {name: ast.literal_eval(value) for name, value in given.items() if name is not None}
    except ValueError:
        return None
    if set(options) - set(OPTIONS) or None in given:
        return None
    try:
        return AutotuneConfig(kwargs=kwargs, **options)
    except ValidationError:
        return None


def _multiplied_with_program_id(node: ast.FunctionDef) -> set[str]:
    """Parameters that are factors of a product with `tl.program_id(...)`, or with a variable made of it."""
    indices: set[str] = set()
    found: set[str] = set()
    parameters = {argument.arg for argument in node.args.args}
    for statement in ast.walk(node):
        if isinstance(statement, ast.Assign) and _mentions_program_id(statement.value, indices):
            indices |= {target.id for target in statement.targets if isinstance(target, ast.Name)}
    for product in ast.walk(node):
        if isinstance(product, ast.BinOp) and isinstance(product.op, ast.Mult):
            for factor, other in ((product.left, product.right), (product.right, product.left)):
                if isinstance(other, ast.Name) and other.id in parameters and _mentions_program_id(factor, indices):
                    found.add(other.id)
    return found


def _mentions_program_id(node: ast.expr, indices: set[str]) -> bool:
    return any(
        (isinstance(part, ast.Call) and _is_named(part, "program_id"))
        or (isinstance(part, ast.Name) and part.id in indices)
        for part in ast.walk(node)
    )
