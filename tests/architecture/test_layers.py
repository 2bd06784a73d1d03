"""A module imports only from its own layer's allowed part: nouns < rules < edges < verbs < door."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "kernelgen"

NOUNS = {"errors", "ids", "config", "records", "events", "markers", "python_source"}
RULES = {
    "tokens", "state", "freeze", "champions",
    "constraints.select", "constraints.rules", "constraints.render", "constraints.merge", "constraints.source",
    "constraints.terms", "constraints.constants", "constraints.launches", "constraints.tiles", "constraints.operations",
    "constraints.trace", "constraints.staging", "constraints.facts", "constraints.causes", "constraints.manners",
    "constraints.distil", "constraints.tensors", "constraints.seen", "constraints.calls",
    "constraints.structure", "constraints.measured", "constraints.gains",
}  # fmt: skip
EDGES = {"catalog", "constraints", "profile", "targets", "prompt", "lm", "playbook", "candidates", "ladder", "eventlog"}
VERBS = {"generation", "judging", "doctor", "campaign"}
DOOR = {"door", "cli"}
BETWEEN = {("ladder", "targets"), ("judging", "generation"), ("campaign", "generation"), ("campaign", "judging")}
"""The arrows within a layer: the ladder runs targets, on machines that have nothing else of kernelgen's; judging reads
what generation logged; a campaign puts both together.
"""
LAYERS = [NOUNS, RULES, EDGES, VERBS, DOOR]


def modules() -> list[str]:
    found = []
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if name and not name.startswith(("conf", "targets.champions", "playbook.plays")):
            found.append(name)
    return sorted(found)


def group(module: str) -> tuple[int, str]:
    """Layer number and the group within it; the longest listed prefix decides."""
    parts = module.split(".")
    for length in range(len(parts), 0, -1):
        prefix = ".".join(parts[:length])
        for number, layer in enumerate(LAYERS):
            if prefix in layer:
                return number, prefix
    raise AssertionError(f"kernelgen.{module} is in no layer: give it one in this test and in docs/architecture.md")


def imported(module: str) -> set[str]:
    path = PACKAGE / Path(*module.split("."))
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            known = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= {n for n in known if is_module(n)} or {node.module}
    return {name.removeprefix("kernelgen.") for name in names if name.startswith("kernelgen.")}


def is_module(name: str) -> bool:
    path = PACKAGE.parent / Path(*name.split("."))
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


@pytest.mark.parametrize("module", modules())
def test_a_module_imports_only_from_layers_below_and_its_own_group(module: str) -> None:
    layer, own = group(module)
    for other in imported(module):
        their_layer, theirs = group(other)
        fits = their_layer < layer or theirs == own or (their_layer == layer and layer in (0, 1, 4))
        fits = fits or (own, theirs) in BETWEEN
        assert fits, f"kernelgen.{module} ({own}) imports kernelgen.{other} ({theirs})"


def test_only_the_door_imports_hydra() -> None:
    importers = [
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if (isinstance(node, ast.Import) and any(alias.name.split(".")[0] == "hydra" for alias in node.names))
        or (isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "hydra")
    ]
    assert importers, "the door composes with Hydra"
    assert all(name.startswith("door/") for name in importers), importers


def test_importing_kernelgen_and_its_nouns_loads_nothing_heavy() -> None:
    code = (
        "import sys, kernelgen, kernelgen.cli, kernelgen.events, kernelgen.state\n"
        "heavy = {'torch', 'triton', 'dspy', 'litellm', 'hydra', 'omegaconf', 'tiktoken'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
