"""A champion's source with its configurations taken out: what kernelgen writes above it, it must not define itself.

Edits are made in the text, at the places `ast` gives, so that everything else stays as its author wrote it. The result
refers to `AUTOTUNE_CONFIGS["kernel"]` for every kernel of the table, and no launch passes what its configuration sets.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from kernelgen import python_source
from kernelgen.errors import HarnessError
from kernelgen.playbook.champion import OPTIONS, TABLE, Champion, Kernel


@dataclass(frozen=True)
class _Edit:
    start: int
    end: int
    text: str


class _Text:
    """A source with `ast`'s places (line, UTF-8 byte column) as byte offsets."""

    def __init__(self, source: str) -> None:
        self.data = source.encode("utf-8")
        self.starts = [0]
        for line in self.data.split(b"\n"):
            self.starts.append(self.starts[-1] + len(line) + 1)

    def start(self, node: ast.expr | ast.stmt | ast.keyword) -> int:
        return self.starts[node.lineno - 1] + node.col_offset

    def end(self, node: ast.expr | ast.stmt | ast.keyword) -> int:
        if node.end_lineno is None or node.end_col_offset is None:
            raise HarnessError("A syntax tree without places was to be edited.")
        return self.starts[node.end_lineno - 1] + node.end_col_offset

    def apply(self, edits: Iterable[_Edit]) -> str:
        data = self.data
        for edit in sorted(edits, key=lambda edit: edit.start, reverse=True):
            data = data[: edit.start] + edit.text.encode("utf-8") + data[edit.end :]
        return data.decode("utf-8")


def without_table(champion: Champion, kernels: Collection[str]) -> str:
    """The source for a reply whose [AUTOTUNE] section has the named kernels."""
    text = _Text(champion.source)
    edits = [_statement(text, node) for node in champion.tree.body if node is champion.table or _is_future(node)]
    for kernel in champion.kernels:
        if kernel.name in kernels:
            edits.append(_decorator(text, kernel))
            edits += [edit for call in kernel.launches for edit in _launch(text, call, _set_by(kernel))]
    missing = _import(champion, kernels)
    source = missing + text.apply(edits).lstrip("\n")
    try:
        python_source.parse(source)
    except SyntaxError as error:
        raise HarnessError(f"The playbook's edit of the champion is not Python: {error}.") from error
    return source


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def _statement(text: _Text, node: ast.stmt) -> _Edit:
    """A top-level statement removed with its line ends."""
    end = text.end(node)
    while text.data[end : end + 1] == b"\n":
        end += 1
    return _Edit(text.start(node), end, "")


def _decorator(text: _Text, kernel: Kernel) -> _Edit:
    reference = f'{TABLE}["{kernel.name}"]'
    if kernel.autotuner is None:
        line = text.starts[kernel.node.decorator_list[0].lineno - 1]
        return _Edit(line, line, f"@triton.autotune(configs={reference}, key={_key(kernel)})\n".replace("'", '"'))
    given = next((keyword.value for keyword in kernel.autotuner.keywords if keyword.arg == "configs"), None)
    given = given or kernel.autotuner.args[0]
    return _Edit(text.start(given), text.end(given), reference)


def _set_by(kernel: Kernel) -> set[str]:
    return {*OPTIONS, *(name for config in kernel.configs or () for name in config.kwargs)}


def _launch(text: _Text, call: ast.Call, set_by_config: set[str]) -> list[_Edit]:
    """The launch without the keywords that the configuration sets."""
    arguments: list[ast.expr | ast.keyword] = sorted([*call.args, *call.keywords], key=text.start)
    edits = []
    for index, argument in enumerate(arguments):
        if not isinstance(argument, ast.keyword) or argument.arg not in set_by_config:
            continue
        if index + 1 < len(arguments):
            edits.append(_Edit(text.start(argument), text.start(arguments[index + 1]), ""))
        else:
            edits.append(_Edit(text.start(argument), text.end(argument), ""))
    return edits


def _key(kernel: Kernel) -> list[str]:
    """Run-time arguments that bound a loop or a mask: sizes, whose change may make another configuration the best."""
    runtime = {argument.arg for argument in kernel.node.args.args if argument.annotation is None}
    bounds: set[str] = set()
    for node in ast.walk(kernel.node):
        if isinstance(node, ast.Compare):
            parts: list[ast.expr] = [node.left, *node.comparators]
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("range", "tl.range"):
            parts = node.args
        else:
            continue
        bounds |= {part.id for part in parts if isinstance(part, ast.Name)}
    return [argument.arg for argument in kernel.node.args.args if argument.arg in runtime & bounds]


def _import(champion: Champion, kernels: Collection[str]) -> str:
    """`import triton` where a new decorator needs it and the source does not have it."""
    imported = {
        alias.asname or alias.name
        for node in champion.tree.body
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    needed = any(kernel.name in kernels and kernel.autotuner is None for kernel in champion.kernels)
    return "import triton\n" if needed and "triton" not in imported else ""
