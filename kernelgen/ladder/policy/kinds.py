"""The values that an expression of a Python candidate can have: short texts, in sets.

`UNKNOWN` stands for anything that is not told; the empty set for a name that nothing is bound to yet.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from kernelgen.ladder.policy.methods import HOST_ATTRIBUTES, TENSOR_ATTRIBUTES

Values: TypeAlias = frozenset[str]
NOTHING: Values = frozenset()
TENSOR = "tensor"
HOST = "host"
"""A number, a text, a shape, a description."""
POINTER = "pointer"
"""A number that is a tensor's address, or made of one."""
UNKNOWN = "?"
LAUNCHER = "launcher"
"""A Triton kernel with its grid."""
RAW = "raw kernel"
"""The Python function of a Triton kernel."""
COMPILED = "compiled"
"""A kernel that is called with tensors, as TileLang compiles it, or a module of such."""
CONTAINER = "container"
"""A list, a dict and their like: beside it, in the same set, the values of what is in it."""
DECORATOR = "decorator"
"""Something that gives back what it is called on."""
ARGUMENTS = "arguments"
"""A kernel's arguments by name, as a grid, a heuristic or a hook gets them."""
ARGUMENTS_METHOD = "arguments method"
FLOAT = "float"
"""Beside `TENSOR`: it holds floating-point values of an input, or may."""
ITERATOR = "iterator"
"""Beside `CONTAINER`: it remembers how far it was read, as a generator does."""
MARKS = frozenset({FLOAT, ITERATOR})
"""Values that only say more of the others in their set."""
# each followed by what it says more: a kernel's name, a definition's number, a dotted name, a method's name
KERNEL, FACTORY, PATH, DEF, CLASS, METHOD = "kernel:", "factory:", "path:", "def:", "class:", "method:"
OBJECT, BOUND = "object:", "bound:"
"""An object of a class of the candidate's own, and a method bound to one, by the numbers of their definitions."""
OF_TENSOR = METHOD + ":"
"""A method of what is a tensor, followed by its name; `METHOD` alone is of what may be one."""
GROWING = frozenset({"append", "add", "insert", "setdefault", "update", "extend", "appendleft", "push"})
PARTS = frozenset({"unbind", "split", "chunk", "tensor_split", "unsafe_chunk", "unsafe_split", "split_with_sizes"})
"""Methods and functions that give several views of a tensor."""
"""Methods that put their arguments into a container."""


def paths(values: Values) -> list[str]:
    """The dotted names among values."""
    return [value[len(PATH) :] for value in values if value.startswith(PATH)]


def union(several: Iterable[Values]) -> Values:
    """All values of several sets."""
    return NOTHING.union(*several)


def elements(values: Values) -> Values:
    """What is in a container, or comes of indexing."""
    inside = values - {CONTAINER, ITERATOR}
    kept = frozenset(v for v in inside if not v.startswith((KERNEL, METHOD, OBJECT)) or CONTAINER in values)
    if ARGUMENTS in kept:
        kept = kept - {ARGUMENTS} | {HOST}
    return kept or (frozenset({UNKNOWN}) if values else NOTHING)


def member(values: Values, name: str) -> Values:
    """The values of `x.name`, by those of x."""
    found = union(values if value == CONTAINER else _member(value, name) for value in (values - MARKS) or {UNKNOWN})
    return found | {FLOAT} if FLOAT in values and TENSOR in found else found


def _member(value: str, name: str) -> Values:
    if value.startswith(PATH):
        return frozenset({f"{value}.{name}"})
    if value.startswith(KERNEL) and name in ("fn", "base_fn"):
        return frozenset({RAW})
    if value.startswith(KERNEL) and name in ("run", "warmup"):
        return frozenset({LAUNCHER})
    if value == COMPILED:
        return frozenset({COMPILED})
    if value in (HOST, POINTER) or (name in HOST_ATTRIBUTES and value != RAW):
        return frozenset({HOST})
    if name == "data_ptr":
        return frozenset({POINTER})
    if value == TENSOR:
        return frozenset({TENSOR} if name in TENSOR_ATTRIBUTES else {METHOD + name, OF_TENSOR + name})
    if value == RAW and name == "fn":
        return frozenset({RAW})
    return frozenset({METHOD + name if value == UNKNOWN else UNKNOWN})
