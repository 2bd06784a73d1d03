"""What a kernel source is made of, and how two differ: kernels, launches, configurations. Read from the text alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from kernelgen import python_source
from kernelgen.config import Dsl
from kernelgen.constraints.launches import settings
from kernelgen.ids import digest_text

LONGEST_CONFIG = 160
"""Characters of one configuration in a sentence."""
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_GLOBAL = re.compile(r"__global__\b[^;{]*?\b(\w+)\s*\(")
_LAUNCH = re.compile(r"(\w+)\s*(?:<[^<>;]*>\s*)?<<<")


@dataclass(frozen=True)
class Structure:
    """The parts of a source."""

    kernels: tuple[str, ...] = ()
    """Kernels that it launches, by name; empty where the text does not tell."""
    launches: int = 0
    """Launches in its text."""
    configs: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Configurations by kernel, each in a few words."""


def structure(source: str, dsl: Dsl) -> Structure:
    """The parts of a source; none where it cannot be read."""
    if dsl == "cuda":
        text = _COMMENT.sub(" ", source)
        return Structure(tuple(sorted(set(_GLOBAL.findall(text)))), len(_LAUNCH.findall(text)))
    try:
        tree = python_source.parse(source)
    except SyntaxError:
        return Structure()
    found = settings(tree, {}, {})
    configs: dict[str, dict[str, None]] = {}
    for one in found:
        told = one.describe().removeprefix(one.kernel.name).strip("[]")
        configs.setdefault(one.kernel.name, {})[told] = None
    launches = {(one.kernel.name, one.line) for one in found}
    return Structure(tuple(sorted(configs)), len(launches), {name: tuple(told) for name, told in configs.items()})


def difference(before: Structure, after: Structure) -> str:
    """How the second differs from the first, in a phrase."""
    if not before.kernels or not after.kernels:
        return f"kernels {', '.join(after.kernels)}" if after.kernels else "the whole source"
    parts = list(_parts(before, after))
    return "; ".join(parts) if parts else "the code within the same kernels, launches and configurations"


def _parts(before: Structure, after: Structure) -> Iterator[str]:
    new = [name for name in after.kernels if name not in before.kernels]
    dropped = [name for name in before.kernels if name not in after.kernels]
    if new and dropped:
        yield f"kernels {', '.join(new)} in place of {', '.join(dropped)}"
    elif new or dropped:
        yield f"kernels {', '.join(new or dropped)} {'added' if new else 'dropped'}"
    if before.launches != after.launches:
        yield f"{_count(after.launches, 'launch', 'launches')} in place of {before.launches}"
    for name in after.kernels:
        old, now = before.configs.get(name, ()), after.configs.get(name, ())
        if name in before.kernels and old != now:
            yield _configs(name, old, now)


def _configs(name: str, old: tuple[str, ...], now: tuple[str, ...]) -> str:
    if len(now) != 1:
        return f"{len(now)} configurations of {name} in place of {len(old)}"
    place = _short(old[0]) if len(old) == 1 else f"one of {len(old)}"
    return f"{name} with {_short(now[0])} in place of {place}"


def _count(number: int, one: str, more: str) -> str:
    return f"{number} {one if number == 1 else more}"


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_CONFIG else f"{text[: LONGEST_CONFIG - 1]}…"


def same_kernel_digest(source: str, dsl: Dsl) -> str:
    """Digest of a source that comments, docstrings and layout do not change."""
    if dsl == "cuda":
        return digest_text(" ".join(_COMMENT.sub(" ", source).split()))
    try:
        tree = python_source.parse(source)
    except SyntaxError:
        return digest_text(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node, clean=False):
            node.body = node.body[1:] or [ast.Pass()]
    return digest_text(ast.dump(tree))
