"""What a reply's source must have before it can become a candidate: the entry point, and room for kernelgen's lines.

Only what would break the candidate file itself is asked. A source that does not parse is let through: saying so, with
the compiler's words, is level L0's business.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator

from kernelgen import markers
from kernelgen.records import KernelSource

CONFIGS_TABLE = "AUTOTUNE_CONFIGS"
"""The table that kernelgen defines above the model's part."""


def objection(kernel: KernelSource, tuned: frozenset[str]) -> str | None:
    """Why the source cannot become a candidate, as the model is told, or None; `tuned` are the names of its configs."""
    if markers.holds_marker(kernel.code):
        return "the source holds a marker line of kernelgen; leave such lines out."
    if kernel.language == "cuda":
        return _cuda_objection(kernel)
    tree = _parsed(kernel.code)
    return None if tree is None else _python_objection(tree, kernel.entry_point, tuned)


def _cuda_objection(kernel: KernelSource) -> str | None:
    name = re.escape(kernel.entry_point)
    if re.search(r'\bextern\s+"C"', kernel.code) and re.search(rf"\bint\s+{name}\s*\(", kernel.code):
        return None
    return f'the source does not define the launcher `extern "C" int {kernel.entry_point}(...)`.'


def _python_objection(tree: ast.Module, entry_point: str, tuned: frozenset[str]) -> str | None:
    if any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body):
        return (
            "the source has `from __future__ import ...`, which cannot stand below kernelgen's own lines; leave it out."
        )
    if not any(isinstance(node, ast.FunctionDef) and node.name == entry_point for node in tree.body):
        return f"the source does not define the entry point `def {entry_point}(...)` at top level."
    missing = sorted(set(_configs_used(tree)) - tuned)
    if missing:
        return f'the source uses {CONFIGS_TABLE}["{missing[0]}"], and [AUTOTUNE] has no configurations of that name.'
    return None


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


def _parsed(code: str) -> ast.Module | None:
    """The syntax tree, or None where Python's parser gives up, also over depth or size."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a source's odd escapes are no warning of ours
        try:
            return ast.parse(code)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
