"""What the model wrote, read back exactly from a candidate file: hypothesis, source, configurations, entry point."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from pydantic import ValidationError

from kernelgen import markers, python_source
from kernelgen.candidates.build import TABLE
from kernelgen.candidates.header import read_header
from kernelgen.errors import BadInput
from kernelgen.records import AutotuneConfig, KernelSource, Language


@dataclass(frozen=True)
class ModelPart:
    """The model's part of a candidate."""

    hypothesis: str
    """As the reply had it."""
    kernel: KernelSource
    """The source between the markers, and its entry point."""
    autotune: dict[str, tuple[AutotuneConfig, ...]]
    """Configurations by kernel; empty for no search."""


def read_back(text: str) -> ModelPart:
    """The model's part of a candidate's text: of the `.py`, or of the `.cu`.

    Raises BadInput where the text is no candidate, or header, markers or table were changed.
    """
    about = read_header(text)
    language: Language = "cuda" if about.get("dsl") == ("cuda",) else "python"
    before, began, rest = text.partition(f"\n{markers.begin(language)}")
    code, ended, after = rest.partition(markers.end(language))
    if not began or not ended or markers.holds_marker(before + code + after):
        raise BadInput("The candidate file does not have its two marker lines once each; restore it from the log.")
    if "hypothesis" not in about or len(about.get("entry point", ())) != 1:
        raise BadInput("The candidate file's header lacks the hypothesis or the entry point; restore it from the log.")
    try:
        kernel = KernelSource(language=language, code=code, entry_point=about["entry point"][0])
    except ValidationError as error:
        raise BadInput("The candidate file's entry point is not a name; restore it from the log.") from error
    return ModelPart("\n".join(about["hypothesis"]), kernel, {} if language == "cuda" else _configs(before))


def _configs(source: str) -> dict[str, tuple[AutotuneConfig, ...]]:
    """The table of configurations in kernelgen's lines above the model's part."""
    try:
        tables = [
            node.value
            for node in python_source.parse(source).body
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == TABLE
        ]
        return {name: tuple(configs) for table in tables for name, configs in map(_kernel, *_items(table))}
    except (SyntaxError, ValueError, AttributeError, TypeError, RecursionError, MemoryError) as error:
        raise BadInput(
            f"The candidate file's {TABLE} is not as kernelgen wrote it; restore it from the log."
        ) from error


def _items(table: ast.expr | None) -> tuple[list[ast.expr | None], list[ast.expr]]:
    if not isinstance(table, ast.Dict):
        raise TypeError("no table")
    return table.keys, table.values


def _kernel(key: ast.expr | None, value: ast.expr) -> tuple[str, list[AutotuneConfig]]:
    if key is None or not isinstance(value, ast.List):
        raise TypeError("no list of configurations")
    return ast.literal_eval(key), [_config(element) for element in value.elts]


def _config(call: ast.expr) -> AutotuneConfig:
    if not isinstance(call, ast.Call) or len(call.args) != 1:
        raise TypeError("no configuration")
    options = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
    return AutotuneConfig(kwargs=ast.literal_eval(call.args[0]), **options)
