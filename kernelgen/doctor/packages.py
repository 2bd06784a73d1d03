"""Installed packages and their versions, found without importing them."""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

CORE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "dspy": "dspy",
        "hydra-core": "hydra",
        "json-repair": "json_repair",
        "pydantic": "pydantic",
        "sqlite-utils": "sqlite_utils",
        "tiktoken": "tiktoken",
    }
)
"""What generating needs, by the name it is installed by: the name it is imported by."""

OPTIONAL: Final[Mapping[str, str]] = MappingProxyType(
    {
        "torch": "torch",
        "triton": "triton",
        "tilelang": "tilelang",
        "numpy": "numpy",
        "apache-tvm-ffi": "tvm_ffi",
        "z3-solver": "z3",
        "ncu-report": "ncu_report",
        "hydra-joblib-launcher": "hydra_plugins",
        "xllamacpp": "xllamacpp",
    }
)
"""What some commands need, likewise."""

UNKNOWN: Final = "version unknown"
NOT_INSTALLED: Final = "not installed"
BUILDS: Final = {"cuda": "CUDA", "hip": "ROCm", "xpu": "XPU"}
MOST_UNMET: Final = 3


@dataclass(frozen=True)
class Package:
    """A package as it is installed here."""

    name: str
    """The name it is installed by."""
    version: str | None
    """Its version; None where it is not installed."""
    wanted: str | None = None
    """The versions kernelgen wants, where its own metadata say so."""
    problem: str | None = None
    """Why it cannot be used."""


def version_of(name: str, module: str) -> str | None:
    """The version of an installed package; None where it cannot be found."""
    spec = importlib.util.find_spec(module)
    if spec is None:
        return None
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        # a source tree on the path has a file; a namespace that others share has none
        return None if spec.origin is None else UNKNOWN


def core() -> list[Package]:
    """The packages that generating needs, with what is wrong with their versions."""
    wanted = _wanted_by("kernelgen")
    return [_package(name, version_of(name, module), wanted.get(name)) for name, module in CORE.items()]


def optional() -> dict[str, str | None]:
    """The versions of the others; None where one is not installed."""
    return {name: version_of(name, module) for name, module in OPTIONAL.items()}


def torch_build() -> tuple[str, tuple[int, int] | None]:
    """What torch is built for, in words, and its CUDA version; read from its file, which says both."""
    constants = _constants(_folder("torch") / "version.py")
    for name, words in BUILDS.items():
        version = constants.get(name)
        if version and name == "cuda":
            major, minor, *_ = (*version.split("."), "0")
            return f"CUDA {version} build", (int(major), int(minor))
        if version:
            return f"{words} {version} build", None
    return "CPU build", None


def unmet(names: Iterable[str]) -> list[str]:
    """For each installed package whose own requirements are not met here, a sentence.

    Raises:
        ImportError: `packaging`, which reads requirements, is missing.
    """
    found = []
    for name in names:
        problems = [problem for text in _requires(name) if (problem := _mismatch(text)) is not None]
        if problems:
            more = f" and {len(problems) - MOST_UNMET} more" if len(problems) > MOST_UNMET else ""
            listed = ", ".join(problems[:MOST_UNMET])
            found.append(f"{name} {importlib.metadata.version(name)} wants {listed}{more}.")
    return found


def _package(name: str, version: str | None, wanted: str | None) -> Package:
    if version is None:
        return Package(name, None, wanted, NOT_INSTALLED)
    if wanted and version != UNKNOWN and not _fits(version, wanted):
        return Package(name, version, wanted, f"kernelgen wants {wanted}")
    return Package(name, version, wanted)


def _wanted_by(name: str) -> dict[str, str]:
    """The version ranges a package requires without extras, by name; empty where nothing can be told."""
    try:
        from packaging.requirements import Requirement
    except ImportError:
        return {}
    parsed = [Requirement(text) for text in _requires(name)]
    return {need.name: str(need.specifier) for need in parsed if need.marker is None or need.marker.evaluate()}


def _requires(name: str) -> list[str]:
    try:
        return importlib.metadata.requires(name) or []
    except importlib.metadata.PackageNotFoundError:
        return []


def _fits(version: str, wanted: str) -> bool:
    from packaging.specifiers import SpecifierSet

    return SpecifierSet(wanted).contains(version, prereleases=True)


def _mismatch(requirement: str) -> str | None:
    """A requirement that is not met, with what is here instead; None where it is, or is another machine's."""
    from packaging.requirements import Requirement

    need = Requirement(requirement)
    if need.marker is not None and not need.marker.evaluate({"extra": ""}):
        return None
    wanted = f"{need.name}{need.specifier}"
    try:
        version = importlib.metadata.version(need.name)
    except importlib.metadata.PackageNotFoundError:
        return f"{wanted} (not installed)"
    return None if need.specifier.contains(version, prereleases=True) else f"{wanted} (here is {version})"


def _folder(module: str) -> Path:
    spec = importlib.util.find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"{module} is not installed")
    return Path(spec.submodule_search_locations[0])


def triton_tool(name: str) -> Path:
    """Where Triton bundles one of NVIDIA's tools. Raises ModuleNotFoundError where there is no Triton."""
    return _folder("triton") / "backends" / "nvidia" / "bin" / name


def _constants(path: Path) -> dict[str, str]:
    """The texts a Python file gives names to at its top level."""
    found: dict[str, str] = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            targets, value = [node.target], node.value
        else:
            continue
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            found |= {target.id: value.value for target in targets if isinstance(target, ast.Name)}
    return found
