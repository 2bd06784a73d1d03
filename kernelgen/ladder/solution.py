"""What a solution to a KernelBench-style problem leaves to torch, and what kernels it has: read, never run.

Judged is what its model can reach: a file may carry the problem's own Model along. A module of torch that is made for its
weights alone does no work; one that is called does. What names cannot tell, such as how large a tensor is that torch
sums, the call's own count of numbers decides (`called_model`).
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

from kernelgen.ladder.policy.decoy import _has_tilelang as has_tilelang
from kernelgen.ladder.policy.loaders import POSITIONS, SOURCES
from kernelgen.ladder.policy.scopes import Module, Scope
from kernelgen.ladder.policy.values import PATH, TENSOR, UNKNOWN, Meanings
from kernelgen.ladder.policy.view import View
from kernelgen.ladder.subject import Subject
from kernelgen.ladder.torch_work import family_of, family_of_module

LOADERS = frozenset({"torch.utils.cpp_extension.load_inline", "torch.utils.cpp_extension.load"})
COMPILERS = ("torch.compile", "torch.jit", "torch._dynamo", "torch._inductor", "torch.fx")
LIBRARIES = frozenset({"numpy", "scipy", "cupy", "jax", "xformers", "flash_attn", "flashinfer", "cublas", "apex"})
FOREIGN_DSLS = frozenset({"cutlass", "numba", "cupy", "pycuda", "warp", "taichi", "jax", "cuda", "hidet", "helion"})
"""Languages and loaders of kernels that are not read here."""
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
    {"add", "all", "any", "sum", "max", "min", "mode", "index", "sort", "take", "unique", "round", "where", "cat", "stack",
     "pad", "fold", "mean", "norm", "dist", "trace", "sub", "roll", "flip", "gather", "unfold"}
)  # fmt: skip
SEEDS = frozenset({"manual_seed", "seed", "manual_seed_all", "set_rng_state", "Generator"})
CALLED = ("forward", "__call__")
COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
CPP_CALLS = re.compile(r"\b(?:at|torch|F)::(?:\w+::)*(\w+)\s*\(|\.\s*(\w+)\s*\(")
VENDOR = re.compile(r"\b(cublas|cudnn|cusparse|cutlass|cublasLt)\w*", re.IGNORECASE)
VENDOR_FAMILY = {"cudnn": "convolution"}


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


@dataclass(frozen=True)
class Solution:
    """What was read of a solution."""

    uses: tuple[Use, ...]
    """Where torch does work, in the order of the source."""
    kernels: tuple[str, ...]
    """Names of the kernels its model can reach."""
    dsl: str | None
    """What its kernels are written in: triton, tilelang or cuda; None where there is none."""
    cuda_texts: tuple[tuple[str, str, int], ...] = ()
    """CUDA and C++ sources in loaders: parameter, text, and line of the call."""
    compiler: Use | None = None
    """Where torch's compiler is asked to write the kernel."""
    foreign: str | None = None
    """A language of kernels that is not read here."""
    is_loader_hidden: bool = False
    """Whether a loader is given a source that is not written out."""
    lots: Use | None = None
    """Where a generator is seeded, or forward draws lots."""
    imports: frozenset[str] = frozenset()
    """Names of the modules imported, up to the first dot."""


def read(subject: Subject) -> Solution | None:
    """What a solution is made of; None where it does not parse."""
    try:
        view = _view(subject)
    except (SyntaxError, ValueError, RecursionError):
        return None
    skipped = set(_overridden(view))
    texts = tuple(_cuda_texts(view))
    uses = [*_uses(view, skipped), *_uses_in_texts(texts)]
    kernels = tuple(
        node.name for node in view.meanings.device if isinstance(node, ast.FunctionDef) and _is_reached(view, node)
    )
    native = tuple(name for _, text, _ in texts for name in re.findall(r"__global__[^;{]*?(\w+)\s*\(", _bare(text)))
    dsl = "triton" if kernels else "tilelang" if has_tilelang(view) else "cuda" if native else None
    roots = _roots(view)
    return Solution(
        uses=tuple(sorted(uses, key=lambda use: use.line)),
        kernels=kernels + native,
        dsl=dsl,
        cuda_texts=texts,
        compiler=next(_compilers(view, skipped), None),
        foreign=next(iter(sorted(roots & FOREIGN_DSLS)), None),
        is_loader_hidden=_count_loaders(view) > len({line for _, _, line in texts}),
        lots=next(_lots(view, skipped), None),
        imports=frozenset(roots),
    )


def _view(subject: Subject) -> View:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = Module(ast.parse(subject.source))
    names = [name for name, _, _ in subject.goal.inputs]
    meanings = Meanings(module, subject.entry_point, names, subject.goal.scalars)
    return View(module, meanings, subject.entry_point, frozenset(), frozenset(), frozenset())


def _is_reached(view: View, kernel: ast.FunctionDef) -> bool:
    return kernel.name in view.reached or kernel not in view.module.tree.body


def _roots(view: View) -> set[str]:
    """Libraries that are imported."""
    roots = set()
    for node in ast.walk(view.module.tree):
        if isinstance(node, ast.Import):
            roots |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            roots.add(node.module.partition(".")[0])
    return roots


def _overridden(view: View) -> Iterator[ast.AST]:
    """Nodes of methods that a class above defines anew and does not ask for with `super()`."""
    classes = {node.name: node for node in view.module.tree.body if isinstance(node, ast.ClassDef)}
    for derived in classes.values():
        if derived.name not in view.reached:
            continue
        asked = {
            node.attr
            for node in ast.walk(derived)
            if isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Call)
            and _is_name(node.value.func, "super")
        }
        own = {node.name for node in derived.body if isinstance(node, ast.FunctionDef)} - asked
        used = {node.id for node, _ in view.places if isinstance(node, ast.Name) and node not in derived.bases}
        for base in derived.bases:
            if isinstance(base, ast.Name) and base.id in classes and base.id not in used:
                for method in classes[base.id].body:
                    if isinstance(method, ast.FunctionDef) and method.name in own:
                        yield from ast.walk(method)


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _uses(view: View, skipped: set[ast.AST]) -> Iterator[Use]:
    """Every place where Python code asks torch, or a library, for work."""
    made = dict(_modules_made(view))
    for node, scope in view.host:
        if node in skipped:
            continue
        if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.MatMult):
            yield Use("matrix product", "@", node.lineno)
        elif isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Load):
            yield from _named(view, node, scope)
            if isinstance(node, ast.Attribute) and node.attr in made and _is_used(view, node):
                family, name = made[node.attr]
                yield Use(family, f"{name}, called as .{node.attr}", node.lineno)
        elif isinstance(node, ast.Call):
            yield from _made_and_called(view, node, scope)


def _named(view: View, node: ast.Attribute | ast.Name, scope: Scope) -> Iterator[Use]:
    """A function by its path, or a method of what is no module."""
    parent = view.parent(node)
    if isinstance(parent, ast.Attribute) and parent.value is node:
        return
    paths = view.paths(node, scope)
    call = parent if isinstance(parent, ast.Call) and parent.func is node else None
    for path in paths:
        root, *rest = path.split(".")
        names = [part for part in rest if family_of(part)]
        if (root == "torch" or root in LIBRARIES) and names:
            operand = call.args[0] if call and call.args else None
            yield Use(family_of(names[-1]) or "", path, node.lineno, _is_own_buffer(view, operand, scope))
    if paths or not isinstance(node, ast.Attribute) or call is None:
        return
    family, base = family_of(node.attr), view.of(node.value, scope)
    is_tensor = TENSOR in base
    is_open = (not base or UNKNOWN in base) and node.attr.rstrip("_") not in EVERYDAY
    if family is not None and (is_tensor or is_open) and not any(value.startswith(PATH) for value in base):
        yield Use(family, f".{node.attr}", node.lineno, _is_own_buffer(view, node.value, scope))


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
                yield target.attr, min(modules, key=lambda module: list_index(module[0]))


def list_index(family: str) -> int:
    """Where a family stands, the heavy ones first."""
    from kernelgen.ladder.torch_work import FAMILIES

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


def _compilers(view: View, skipped: set[ast.AST]) -> Iterator[Use]:
    for node, scope in view.host:
        if isinstance(node, ast.Attribute | ast.Name) and node not in skipped:
            for path in view.paths(node, scope):
                if path.startswith(COMPILERS):
                    yield Use("", path, node.lineno)


def _lots(view: View, skipped: set[ast.AST]) -> Iterator[Use]:
    """Where a generator is seeded at all, or drawn from where the answer is computed."""
    for node, scope in view.host:
        if isinstance(node, ast.Attribute | ast.Name) and node not in skipped:
            for path in view.paths(node, scope):
                last = path.rpartition(".")[2]
                is_drawn = path.startswith("torch.rand") and getattr(scope.function(), "name", "") in CALLED
                if path.startswith("torch.") and (last in SEEDS or is_drawn):
                    yield Use("", path, node.lineno)


def _count_loaders(view: View) -> int:
    return sum(
        isinstance(node, ast.Call) and bool(LOADERS & set(view.paths(node.func, scope))) for node, scope in view.host
    )


def _cuda_texts(view: View) -> Iterator[tuple[str, str, int]]:
    """The sources handed to torch's loader, as far as they are written out."""
    for node, scope in view.host:
        if not isinstance(node, ast.Call) or not LOADERS & set(view.paths(node.func, scope)):
            continue
        given = {POSITIONS[i]: argument for i, argument in enumerate(node.args) if i in POSITIONS}
        given |= {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg in SOURCES}
        for name, value in given.items():
            text = view.text(value, scope)
            if text is not None:
                yield name, text, node.lineno


def _uses_in_texts(texts: tuple[tuple[str, str, int], ...]) -> Iterator[Use]:
    """Where C++ code asks torch or a vendor's library for work."""
    for _, text, line in texts:
        bare = _bare(text)
        for free, method in CPP_CALLS.findall(bare):
            family = family_of(free) if free else family_of(method) if method not in EVERYDAY else None
            if family is not None:
                yield Use(family, f"at::{free}" if free else f".{method}", line)
        for vendor in VENDOR.findall(bare):
            yield Use(VENDOR_FAMILY.get(vendor.lower(), "matrix product"), vendor, line)


def _bare(text: str) -> str:
    return COMMENTS.sub(" ", text)
