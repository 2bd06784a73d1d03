"""Reads the tables of `python_names`: whether a Python candidate may use a dotted name."""

from __future__ import annotations

import re

from kernelgen.ladder.policy.methods import look_up_method
from kernelgen.ladder.policy.python_names import (
    ALLOWED_INSIDE,
    ALLOWED_ROOTS,
    DTYPES,
    LIBRARY,
    OWN_NAMES,
    PRIVATE_OK,
    REFUSED,
    ROOTS,
    TORCH_ALLOCATES,
    TORCH_HOST,
    TORCH_MODULES,
    TORCH_VIEWS,
    TORCH_WORK,
    WORK_IN_NAME,
    Rule,
)


def look_up(path: str, allowed: frozenset[str] = frozenset()) -> Rule | None:
    """The rule against a dotted name; None where it may be used. `allowed` are further names, or beginnings of them."""
    parts = canonical(path).split(".")
    whole = ".".join(parts)
    names = [".".join(parts[:length]) for length in range(len(parts), 0, -1)]
    if any(name in allowed or name in ALLOWED_INSIDE for name in names):
        return None
    shown = whole.removeprefix("builtins.")
    if parts[0] == "torch":
        found = _torch(parts, names, shown)
        if found is not _ELSE:
            return found
    for name in names:
        if name in REFUSED:
            check, reason, in_doubt = REFUSED[name]
            return Rule(check, reason.format(shown), in_doubt)
    if parts[0] in ROOTS and parts[0] != "builtins":
        check, reason = ROOTS[parts[0]]
        return Rule(check, reason.format(shown))
    if parts[0] not in ALLOWED_ROOTS:
        return Rule("policy.library_work", f"{shown} is of a library that is not known as a host's need", True)
    hidden = [part for part in parts[1:] if part.startswith("_") and part not in PRIVATE_OK]
    if hidden and parts[0] not in ("builtins", "torch"):
        return Rule("policy.introspection", f"{shown} is a library's inside", hidden[0].startswith("__") is False)
    return None


_ELSE = Rule("", "")
_TORCH_OK = (
    TORCH_HOST | DTYPES | TORCH_ALLOCATES | TORCH_VIEWS | frozenset(m.removeprefix("torch.") for m in TORCH_MODULES)
)


def _torch(parts: list[str], names: list[str], shown: str) -> Rule | None:
    """The rule against a name of torch; `_ELSE` where the table of refusals has it."""
    if any(name in REFUSED for name in names):
        return _ELSE
    inside = [name.removeprefix("torch.") for name in names if name != "torch"]
    if not inside or (inside[0] in _TORCH_OK) or parts[1] in ("device", "Size", "dtype", "finfo", "iinfo"):
        return None
    if parts[1] == "Tensor":
        return look_up_method(parts[2], is_tensor=True)
    if parts[1] in DTYPES or inside[-1] in TORCH_HOST:
        return None
    return _torch_work(parts, shown)


def _torch_work(parts: list[str], shown: str) -> Rule | None:
    """The rule against a name of torch that is neither allowed nor in the table."""
    name = parts[1]
    if parts[:2] == ["torch", "cuda"]:
        if any("seed" in part or "rng" in part for part in parts):
            return Rule("policy.random", f"{shown} is torch's random generator")
        streams = re.search(r"[Ss]tream|[Ee]vent|[Gg]raph|sync|captur", parts[-1])
        check = "policy.streams" if streams else "policy.introspection"
        return Rule(check, f"{shown} is no need of a kernel's host function", not streams)
    if name.startswith("rand") or "seed" in name or "rng" in name or name in ("bernoulli", "multinomial", "normal"):
        return Rule("policy.random", f"{shown} is torch's random generator")
    if name.startswith(("set_", "use_")):
        return Rule("policy.flags", f"{shown} is a global switch")
    bare = name.rstrip("_")
    if bare in TORCH_WORK or WORK_IN_NAME.search(name):
        return Rule("policy.library_work", LIBRARY.format(shown))
    return Rule("policy.library_work", f"{shown} is not known as a need of a kernel's host function", True)


def canonical(path: str) -> str:
    """The path without detours through modules that other modules have imported: `dataclasses.sys` is `sys`."""
    parts = path.split(".")
    for index in range(len(parts) - 1, 0, -1):
        root = parts[index].lstrip("_")
        if parts[0] == "torch" and index == 1:
            continue
        if parts[index] == "torch" or (root in ROOTS and root not in OWN_NAMES.get(parts[0], frozenset())):
            return ".".join([root, *parts[index + 1 :]])
        if root in ("builtins", "operator", "functools") and parts[0] != "torch":
            return ".".join([root, *parts[index + 1 :]])
    return path


def is_module(path: str) -> bool:
    """Whether the path is a module: to hand one on would hide what is used of it."""
    whole = canonical(path)
    return whole in TORCH_MODULES or whole in ("builtins", "operator", "functools", "contextlib", "tvm")
