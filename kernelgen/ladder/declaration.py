"""The constants a candidate file declares for its checks, read without running the file.

Each is assigned once, at the top level, as a literal; a second assignment is refused, so that the model's part cannot
set another one.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelgen import python_source
from kernelgen.errors import BadInput

DSLS = ("triton", "tilelang", "cuda")
TEST_SUFFIX = "_test"

Shapes = dict[str, dict[str, int]]


@dataclass(frozen=True)
class Declaration:
    """What a candidate file says about itself."""

    file: Path
    """The Python file that holds `test_correctness(device)`."""
    target_module: str
    """The target's Python: a dotted name, or `file.py` in `target_folder`."""
    target_folder: Path | None
    """Where that file is."""
    entry_point: str
    """Name of the host function, or of the launcher in CUDA C++."""
    arch: int
    """Compute capability, 90 for Hopper."""
    tune: Shapes
    """Timed shapes, dimensions by name."""
    smoke: Shapes
    """Tiny shapes, likewise."""
    kinds: tuple[str, ...]
    """Kinds of inputs; the first is the plain one."""
    dsl: str
    """One of `DSLS`."""

    @property
    def source(self) -> Path:
        """The file with the kernels: for CUDA C++ the `.cu` beside the test."""
        if self.dsl != "cuda":
            return self.file
        return self.file.with_name(f"{self.file.stem.removesuffix(TEST_SUFFIX)}.cu")


def read(path: Path) -> Declaration:
    """The declaration of a candidate's file; for a `.cu`, of the test beside it.

    Raises:
        BadInput: the file cannot be read, is not Python, or a constant is missing, doubled or of another type.
    """
    file = path.resolve()
    if file.suffix == ".cu":
        file = file.with_name(f"{file.stem}{TEST_SUFFIX}.py")
    literals = _literals(file)
    values = {}
    for name, (expected, holds) in CONSTANTS.items():
        if name not in literals:
            raise BadInput(f"{file} declares no {name}: it needs {expected}, as kernelgen writes it.")
        if not holds(literals[name]):
            raise BadInput(f"{file}: {name} is {literals[name]!r}; it needs {expected}.")
        values[name.removeprefix(PREFIX).lower()] = literals[name]
    folder = values.pop("target_folder")
    return Declaration(file=file, target_folder=None if folder is None else file.parent / folder, **values)


def _literals(file: Path) -> dict[str, Any]:
    """The declared constants by name, those that are literals."""
    try:
        tree = python_source.parse(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(f"{file} cannot be read: {error.strerror}.") from error
    except (SyntaxError, ValueError) as error:
        raise BadInput(f"{file} is not Python: {error}.") from error
    found: dict[str, Any] = {}
    for statement in tree.body:
        if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
            continue
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        for name in (target.id for target in targets if isinstance(target, ast.Name) and target.id in CONSTANTS):
            if name in found:
                raise BadInput(f"{file}, line {statement.lineno}: {name} is assigned a second time; keep the first.")
            try:
                found[name] = ast.literal_eval(statement.value)
            except ValueError as error:
                raise BadInput(f"{file}, line {statement.lineno}: {name} must be a literal.") from error
    return found


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and value.isidentifier()


def _are_shapes(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(dims, dict) and all(isinstance(extent, int) for extent in dims.values()) for dims in value.values()
    )


def _are_kinds(value: Any) -> bool:
    return isinstance(value, tuple) and bool(value) and all(isinstance(kind, str) for kind in value)


# by constant: what it needs, in words and as a test
PREFIX = "KERNELGEN_"
"""So that no constant of the model's part has the same name."""

CONSTANTS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "KERNELGEN_TARGET_MODULE": ("the target's module, a text", lambda value: isinstance(value, str) and bool(value)),
    "KERNELGEN_TARGET_FOLDER": (
        "the module's folder, a text or None",
        lambda value: value is None or isinstance(value, str),
    ),
    "KERNELGEN_ENTRY_POINT": ("the name of a function", _is_name),
    "KERNELGEN_ARCH": ("a compute capability, such as 90", lambda value: type(value) is int),
    "KERNELGEN_TUNE": ("shapes, a dict of name to dimensions", _are_shapes),
    "KERNELGEN_SMOKE": ("shapes, a dict of name to dimensions", _are_shapes),
    "KERNELGEN_KINDS": ("a tuple of input kinds", _are_kinds),
    "KERNELGEN_DSL": (f"one of {', '.join(DSLS)}", lambda value: value in DSLS),
}
