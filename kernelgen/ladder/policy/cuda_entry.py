"""Whether a CUDA C++ candidate has the launcher that the target calls, and whether it launches a kernel."""

from __future__ import annotations

from collections.abc import Iterator

from kernelgen.ladder.policy.cpp_functions import Function
from kernelgen.ladder.policy.cpp_tokens import Token
from kernelgen.ladder.policy.findings import Finding
from kernelgen.ladder.policy.names import words
from kernelgen.ladder.subject import Goal, Subject

ENTRY = "policy.entry_point"
RETURNS = frozenset({"int", "int32_t", "cudaError_t", "cudaError"})
WHOLE = words("int int32_t int64_t long size_t uint64_t unsigned uint32_t ptrdiff_t intptr_t short char bool")
REAL = frozenset({"double"})
TOO_SMALL = frozenset({"float", "half", "__half", "bfloat16", "__nv_bfloat16"})
ASIDE = frozenset({"const", "std", "::", "__restrict__", "__restrict", "restrict", "volatile", "struct"})
LAUNCHES = words(
    "<<< cudaLaunchKernel cudaLaunchKernelEx cudaLaunchKernelExC cudaLaunchCooperativeKernel cuLaunchKernel "
    "cuLaunchKernelEx"
)


def check(subject: Subject, functions: list[Function]) -> Iterator[Finding]:
    """The launcher and what it launches."""
    name = subject.entry_point
    found = [function for function in functions if function.name == name and function.where != "device"]
    if not found:
        yield Finding(ENTRY, f'there is no launcher extern "C" int {name}(…, void* stream) with a body')
        return
    launcher = found[-1]
    place = next(token for token in launcher.declaration if token.text == name)
    words = [token.text for token in launcher.declaration]
    if not launcher.is_c or "static" in words:
        yield Finding(ENTRY, f'{name} is not extern "C"', place.line, place.column)
    if not RETURNS & set(words[: words.index(name)]):
        yield Finding(ENTRY, f"{name} does not return int", place.line, place.column)
    yield from _parameters(subject.goal, launcher, place)
    yield from _launches(launcher, functions, place)


def _parameters(goal: Goal, launcher: Function, place: Token) -> Iterator[Finding]:
    """As many pointers and numbers as inputs, scalars, dimensions and outputs make, and the stream."""
    dims = next(iter({**goal.smoke, **goal.tune}.values()), {}) if not goal.tune else next(iter(goal.tune.values()))
    wanted = [(spec[0], "pointer") for spec in goal.inputs]
    wanted += [(name, "real" if kind == "float" else "whole") for name, kind in goal.scalars.items()]
    wanted += [(name, "whole") for name in dims]
    wanted += [(spec[0], "pointer") for spec in goal.outputs]
    wanted.append(("stream", "pointer"))
    given = launcher.parameters
    if len(given) != len(wanted):
        names = ", ".join(name for name, _ in wanted)
        reason = f"{launcher.name} takes {len(given)} parameters, and is called with {len(wanted)}: {names}"
        yield Finding(ENTRY, reason, place.line, place.column)
        return
    for (name, kind), tokens in zip(wanted, given, strict=True):
        is_kind = _kinds(tokens)
        if is_kind and kind not in is_kind:
            words = {"pointer": "a pointer", "real": "a double", "whole": "an int64_t"}[kind]
            yield Finding(ENTRY, f"{launcher.name} is called with {words} for {name}", tokens[0].line, tokens[0].column)


def _kinds(tokens: list[Token]) -> frozenset[str]:
    """What a parameter can take; empty where its type is not known."""
    words = [token.text for token in tokens if token.text not in ASIDE]
    if "*" in words or "[" in words or "cudaStream_t" in words or "CUstream" in words or "nullptr_t" in words:
        return frozenset({"pointer"})
    if REAL & set(words):
        return frozenset({"real"})
    if TOO_SMALL & set(words):
        return frozenset({"small"})
    return frozenset({"whole"}) if WHOLE & set(words) else frozenset()


def _launches(launcher: Function, functions: list[Function], place: Token) -> Iterator[Finding]:
    """A kernel there is, and the launcher reaches a launch."""
    if not any(function.is_kernel for function in functions):
        yield Finding("policy.decoy", "the candidate has no kernel", place.line, place.column)
        return
    by_name: dict[str, list[Function]] = {}
    for function in functions:
        by_name.setdefault(function.name, []).append(function)
    waiting, seen = [launcher], set()
    while waiting:
        function = waiting.pop()
        seen.add(id(function))
        for token in function.body:
            if token.text in LAUNCHES:
                return
            waiting += [other for other in by_name.get(token.text, ()) if id(other) not in seen]
    yield Finding("policy.decoy", "no kernel is launched", place.line, place.column)
