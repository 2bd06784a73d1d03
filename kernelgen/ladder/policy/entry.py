"""Whether a Python candidate defines the entry point that the target calls, by keyword."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from kernelgen.ladder.policy.findings import Finding
from kernelgen.ladder.policy.view import View, at
from kernelgen.ladder.subject import Goal

ENTRY = "policy.entry_point"


def check(view: View, goal: Goal) -> Iterator[Finding]:
    """Defined once, at top level, with the target's parameters."""
    name = view.entry_point
    wanted = [*(spec[0] for spec in goal.inputs), *goal.scalars]
    node = view.entry()
    if node is None:
        called = f"def {name}({', '.join(wanted)})"
        place = view.module.root.bindings.get(name)
        yield at(place[0].node if place else view.module.tree, ENTRY, f"there is no {called} at top level")
        return
    bound = view.module.root.bindings.get(name, [])
    if len(bound) > 1:
        yield at(bound[-1].node, ENTRY, f"{name} is bound more than once")
    arguments = node.args
    accepted = {argument.arg for argument in (*arguments.args, *arguments.kwonlyargs)}
    missing = [] if arguments.kwarg else [parameter for parameter in wanted if parameter not in accepted]
    if missing:
        yield at(node, ENTRY, f"{name} takes no parameter {', '.join(missing)}, which it is called with by keyword")
    needed = _needed(arguments) - set(wanted)
    if needed:
        yield at(node, ENTRY, f"{name} needs {', '.join(sorted(needed))}, which the target does not pass")


def _needed(arguments: ast.arguments) -> set[str]:
    """Parameters without a default."""
    positional = [*arguments.posonlyargs, *arguments.args]
    needed = {argument.arg for argument in positional[: len(positional) - len(arguments.defaults)]}
    keywords = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return needed | {argument.arg for argument, default in keywords if default is None}
