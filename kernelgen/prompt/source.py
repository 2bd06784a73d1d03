"""What a reply's source must have before it can become a candidate: the entry point, and room for kernelgen's lines.

Only what would break the candidate file itself is asked. A source that does not parse is let through: saying so, with
the compiler's words, is level L0's business.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from kernelgen import markers, python_source
from kernelgen.records import KernelSource

CONFIGS_TABLE = "AUTOTUNE_CONFIGS"
"""The table that kernelgen defines above the model's part."""


_CACHED_SOURCES = 256
"""Replay reads the same few sources again and again."""


@dataclass(frozen=True)
class _Module:
    """What is asked of a Python source."""

    functions: frozenset[str]
    """Names of the functions defined at top level."""
    configs: tuple[str, ...]
    """Names under which it looks into the table of configurations, sorted."""
    from_future: bool
    """Whether it imports from `__future__`."""


def objection(kernel: KernelSource, tuned: frozenset[str]) -> str | None:
    """Why the source cannot become a candidate, as the model is told, or None; `tuned` are the names of its configs."""
    if markers.holds_marker(kernel.code):
        return "the source holds a marker line of kernelgen; leave such lines out."
    if kernel.language == "cuda":
        return _cuda_objection(kernel)
    module = _module(kernel.code)
    return None if module is None else _python_objection(module, kernel.entry_point, tuned)


def _cuda_objection(kernel: KernelSource) -> str | None:
    name = re.escape(kernel.entry_point)
    if re.search(r'\bextern\s+"C"', kernel.code) and re.search(rf"\bint\s+{name}\s*\(", kernel.code):
        return None
    return f'the source does not define the launcher `extern "C" int {kernel.entry_point}(...)`.'


def _python_objection(module: _Module, entry_point: str, tuned: frozenset[str]) -> str | None:
    if module.from_future:
        return (
            "the source has `from __future__ import ...`, which cannot stand below kernelgen's own lines; leave it out."
        )
    if entry_point not in module.functions:
        return f"the source does not define the entry point `def {entry_point}(...)` at top level."
    missing = [name for name in module.configs if name not in tuned]
    if missing:
        return f'the source uses {CONFIGS_TABLE}["{missing[0]}"], and [AUTOTUNE] has no configurations of that name.'
    return None


@functools.lru_cache(maxsize=_CACHED_SOURCES)
def _module(code: str) -> _Module | None:
    """What the source has at top level, or None where Python's parser gives up, also over depth or size."""
    try:
        tree = python_source.parse(code)
    except SyntaxError:
        return None
    return _Module(
        functions=frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef)),
        configs=tuple(sorted(set(_configs_used(tree)))) if CONFIGS_TABLE in code else (),
        from_future=any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body),
    )


def _configs_used(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Subscript)
            and isinstance(node.value, ast.Name)
            and node.value.id == CONFIGS_TABLE
            and isinstance(node.slice, ast.Constant)
            and isinstance(node.slice.value, str)
        ):
            yield node.slice.value
