"""What a solution to a KernelBench-style problem leaves to torch, and what kernels it has: read, never run.

Judged is what its model can reach: a file may carry the problem's own Model along. What names cannot tell, such as how
large a tensor is that torch sums, the count of numbers in a call decides (`called_model`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from kernelgen import python_source
from kernelgen.ladder.policy.decoy import _has_tilelang as has_tilelang
from kernelgen.ladder.policy.loaders import POSITIONS, SOURCES
from kernelgen.ladder.policy.scopes import Module
from kernelgen.ladder.policy.values import Meanings
from kernelgen.ladder.policy.view import View
from kernelgen.ladder.subject import Subject
from kernelgen.ladder.torch_uses import EVERYDAY, LOADERS, Use, uses
from kernelgen.ladder.torch_work import family_of

COMPILERS = ("torch.compile", "torch.jit", "torch._dynamo", "torch._inductor", "torch.fx")
FOREIGN_DSLS = frozenset({"cutlass", "numba", "cupy", "pycuda", "warp", "taichi", "jax", "cuda", "hidet", "helion"})
"""Languages and loaders of kernels that are not read here."""
SEEDS = frozenset({"manual_seed", "seed", "manual_seed_all", "set_rng_state", "Generator"})
CALLED = ("forward", "__call__")
COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
CPP_CALLS = re.compile(r"\b(?:at|torch|F)::(?:\w+::)*(\w+)\s*\(|\.\s*(\w+)\s*\(")
VENDOR = re.compile(r"\b(cublas|cudnn|cusparse|cutlass|cublasLt)\w*", re.IGNORECASE)
VENDOR_FAMILY = {"cudnn": "convolution"}


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


def read(subject: Subject, unlisted: frozenset[str] = frozenset()) -> Solution | None:
    """What a solution is made of; None where it does not parse. `unlisted` are further families of the problem."""
    try:
        view = _view(subject)
    except (SyntaxError, ValueError, RecursionError):
        return None
    skipped = set(_overridden(view))
    texts = tuple(_cuda_texts(view))
    found = [*uses(view, skipped, unlisted), *_uses_in_texts(texts)]
    kernels = tuple(
        node.name for node in view.meanings.device if isinstance(node, ast.FunctionDef) and _is_reached(view, node)
    )
    native = tuple(name for _, text, _ in texts for name in re.findall(r"__global__[^;{]*?(\w+)\s*\(", _bare(text)))
    dsl = "triton" if kernels else "tilelang" if has_tilelang(view) else "cuda" if native else None
    roots = _roots(view)
    return Solution(
        uses=tuple(sorted(found, key=lambda use: use.line)),
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
    module = Module(python_source.parse(subject.source))
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
