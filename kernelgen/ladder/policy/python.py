"""The policy on a Python candidate, Triton or TileLang, on its syntax tree alone."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator

from kernelgen import python_source
from kernelgen.ladder.policy import control, decoy, device, entry, keeping, loaders, mentions, operators, reading
from kernelgen.ladder.policy.findings import Finding
from kernelgen.ladder.policy.scopes import Module
from kernelgen.ladder.policy.values import Meanings
from kernelgen.ladder.policy.view import View
from kernelgen.ladder.subject import Subject

SYNTAX = "policy.syntax"


def check(subject: Subject, allowed: frozenset[str], denied: frozenset[str]) -> tuple[list[Finding], View | None]:
    """Everything found, and the view for further looks; None for it where the source does not parse."""
    try:
        view = _parse(subject, allowed, denied)
        return list(_checks(view, subject)), view
    except SyntaxError as error:
        column = max(0, (error.offset or 1) - 1)
        return [Finding(SYNTAX, f"not Python: {error.msg}", error.lineno or 1, column)], None
    except ValueError as error:
        return [Finding(SYNTAX, f"not Python: {error}")], None
    except (RecursionError, MemoryError, OverflowError):
        return [Finding(SYNTAX, "not readable: nested too deeply")], None


def _parse(subject: Subject, allowed: frozenset[str], denied: frozenset[str]) -> View:
    tree = python_source.parse(subject.source)
    with warnings.catch_warnings():
        # a doubtful escape is the compiler's to mention
        warnings.simplefilter("ignore")
        # what only the compiler sees: a return outside a function, a late `from __future__`
        compile(tree, "<candidate>", "exec", dont_inherit=True)
    module = Module(tree)
    goal = subject.goal
    names = [spec[0] for spec in goal.inputs]
    floats = frozenset(name for name, dtype, _ in goal.inputs if "float" in dtype)
    meanings = Meanings(module, subject.entry_point, names, goal.scalars, floats)
    return View(module, meanings, subject.entry_point, allowed, denied, floats)


def _checks(view: View, subject: Subject) -> Iterator[Finding]:
    if subject.preamble:
        yield from _future(view)
    yield from entry.check(view, subject.goal)
    yield from mentions.check(view)
    yield from mentions.check_texts(view)
    yield from operators.check(view)
    yield from reading.check(view)
    yield from device.check(view)
    yield from control.check(view)
    yield from keeping.check(view)
    yield from decoy.check(view)
    yield from loaders.check(view)


def _future(view: View) -> Iterator[Finding]:
    for node in view.module.tree.body:
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            yield Finding(SYNTAX, "not Python: from __future__ stands below kernelgen's own lines", node.lineno)
