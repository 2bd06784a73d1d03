"""Finds a target's Python: its module of five functions, and the source of its naive champion.

The yaml names the module as a dotted name or as `file.py`, which is looked for beside the yaml. The champion is read,
never imported: it needs a GPU or an interpreter. Imports only the standard library; what a user's module needs is its
own affair, and its absence is one sentence.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from types import ModuleType
from typing import Any

from kernelgen.errors import ConfigError

# each function and the arguments that kernelgen calls it with; docs/formats.md says what they mean
FUNCTIONS = {
    "make_inputs": ("dims", "kind", "seed", "device"),
    "reference": (),
    "compare": ("inputs", "expected", "got", "tolerance"),
    "flops": ("dims",),
    "bytes_moved": ("dims",),
}
# what the body of a user's module can raise through its own fault
MODULE_FAULTS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    NameError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
)
DOTTED = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


@dataclass(frozen=True)
class TargetCode:
    """The five functions of a target's module."""

    module: str
    """Where they come from: the dotted name, or the file's path."""
    make_inputs: Callable[[dict[str, int], str, int, str], dict[str, Any]]
    """Inputs and scalars by argument name, from dimensions, kind, seed and device."""
    reference: Callable[..., tuple[Any, ...]]
    """Expected outputs, from the inputs by keyword."""
    compare: Callable[[dict[str, Any], Any, Any, dict[str, tuple[float, float]]], list[str]]
    """What is wrong with the outputs got, a sentence each; tolerance is (rtol, atol) by output."""
    flops: Callable[[dict[str, int]], float]
    """Floating-point operations at the dimensions."""
    bytes_moved: Callable[[dict[str, int]], float]
    """Bytes at the dimensions: each input read and each output written once."""
    bytes_of: Callable[[dict[str, Any]], float] | None = None
    """Bytes for these very inputs, where they decide what must be read, as routed ids do; None where dimensions do."""


def load_code(module: str, folder: Path | None = None) -> TargetCode:
    """The functions of `module`: a dotted name, or `file.py` relative to `folder` (or absolute).

    Raises ConfigError where the module is missing, does not import, or lacks one of the functions.
    """
    loaded = _from_file(module, folder) if module.endswith(".py") else _from_name(module)
    functions = {}
    for name, arguments in FUNCTIONS.items():
        function = getattr(loaded, name, None)
        if not callable(function):
            raise ConfigError(f"target module '{module}' has no function {name}(); docs/formats.md lists all five")
        if not _accepts(function, arguments):
            wanted = ", ".join(arguments)
            raise ConfigError(f"target module '{module}': {name} must be callable as {name}({wanted})")
        functions[name] = function
    bytes_of = getattr(loaded, "bytes_of", None)
    if bytes_of is not None and not (callable(bytes_of) and _accepts(bytes_of, ("inputs",))):
        raise ConfigError(f"target module '{module}': bytes_of must be callable as bytes_of(inputs)")
    return TargetCode(module=loaded.__file__ or module, bytes_of=bytes_of, **functions)


def champion_source(champion: str, folder: Path) -> str:
    """The source of the naive champion: a path relative to `folder`, or `package:file`. It is not imported.

    Raises ConfigError where it cannot be read.
    """
    package, colon, name = champion.partition(":")
    if colon and DOTTED.fullmatch(package):
        try:
            resource = files(package).joinpath(name)
            return resource.read_text(encoding="utf-8")
        except ModuleNotFoundError as error:
            raise ConfigError(f"champion '{champion}': there is no package '{error.name}'") from error
        except (OSError, UnicodeDecodeError, TypeError) as error:
            raise ConfigError(f"champion '{champion}': package '{package}' has no readable file '{name}'") from error
    path = folder / champion
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"champion '{champion}': {path} cannot be read; give a path relative to the yaml") from error


def _accepts(function: Callable[..., Any], arguments: tuple[str, ...]) -> bool:
    """Whether the function can be called with that many positional arguments; `reference` takes what it likes."""
    if not arguments:
        return True
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError:
        return False
    return True


def _from_name(module: str) -> ModuleType:
    if not DOTTED.fullmatch(module):
        raise ConfigError(f"target module '{module}' is neither a dotted name nor a file ending in .py")
    try:
        return importlib.import_module(module)
    except MODULE_FAULTS as error:
        raise ConfigError(_sentence(module, error)) from error


def _from_file(module: str, folder: Path | None) -> ModuleType:
    path = (folder or Path.cwd()) / module
    if not path.is_file():
        raise ConfigError(f"target module '{module}': there is no file {path}; put it beside the target's yaml")
    # a name of its own for each file: two users' `target.py` must not be taken for one another
    name = f"kernelgen_target_{sha256(str(path.resolve()).encode()).hexdigest()[:16]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"target module '{module}': {path} is not Python source")
    loaded = importlib.util.module_from_spec(spec)
    # dataclasses and pickles in it look their module up by name
    sys.modules[name] = loaded
    try:
        spec.loader.exec_module(loaded)
    except MODULE_FAULTS as error:
        del sys.modules[name]
        raise ConfigError(_sentence(module, error)) from error
    return loaded


def _sentence(module: str, error: BaseException) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name is not None:
        if module == error.name or module.startswith(f"{error.name}."):
            return f"target module '{module}': there is no module '{error.name}'"
        return (
            f"target module '{module}' needs '{error.name}', which is not installed: pip install 'kernelgen[kernels]'"
        )
    reason = " ".join(str(error).split())
    return f"target module '{module}' does not import: {type(error).__name__}: {reason}"
