"""The policy on a CUDA C++ candidate, on its preprocessed tokens alone."""

from __future__ import annotations

from collections.abc import Iterator

from kernelgen.ladder.policy import cuda_entry, cuda_keeping
from kernelgen.ladder.policy.cpp_functions import Function, Piece, segment
from kernelgen.ladder.policy.cpp_tokens import Token
from kernelgen.ladder.policy.cuda_names import (
    CLOCK_IN_ASM,
    CUB_DEVICE,
    DRIVER_ENTRIES,
    HANDED_ON,
    HOST_ASM,
    TENSOR_MAP,
    is_attribute,
    look_up,
    look_up_call,
    look_up_header,
    look_up_in_std,
)
from kernelgen.ladder.policy.findings import Finding
from kernelgen.ladder.policy.methods import WORK
from kernelgen.ladder.policy.preprocess import TooMuch, Unit, preprocess
from kernelgen.ladder.policy.python_names import TORCH_WORK, Rule
from kernelgen.ladder.subject import Subject

SYNTAX = "policy.syntax"
LONGEST_ASM = 2000
"""Tokens of an `asm` statement that are looked at: a wgmma has some three hundred."""
LONGEST_NAME = 8
"""Namespaces before a name that are looked at."""
ASM = frozenset({"asm", "__asm", "__asm__"})
BRACKETS = {")": "(", "]": "[", "}": "{"}
NOT_TYPES = frozenset({"return", "else", "case", "goto", "throw", "new", "delete", "sizeof"})
TORCH_SPACES = frozenset({"at", "torch", "c10"})


def check(subject: Subject, allowed: frozenset[str], denied: frozenset[str]) -> list[Finding]:
    """Everything found in a `.cu`, its launcher included."""
    return [*check_text(subject.source, allowed, denied, launcher=subject)]


def check_text(
    source: str,
    allowed: frozenset[str],
    denied: frozenset[str],
    *,
    with_torch: bool = False,
    launcher: Subject | None = None,
) -> Iterator[Finding]:
    """Everything found in a text of CUDA C++.

    `with_torch`: torch's headers are at hand. `launcher`: the candidate whose launcher it has to have.
    """
    try:
        unit = preprocess(source)
    except TooMuch:
        yield Finding(SYNTAX, "its macros grow without end")
        return
    pieces, functions, unfit = segment(unit.code)
    yield from _syntax(unit, unfit)
    for header, token in unit.includes:
        rule = look_up_header(header, with_torch=with_torch)
        if rule is not None and not _is_allowed(header.strip('<>"').replace("/", "."), allowed):
            yield _found(rule, token)
    yield from _names(pieces, unit, functions, allowed, denied)
    yield from _namespaces(pieces, with_torch)
    yield from _assembly(pieces)
    yield from cuda_keeping.check(pieces, functions)
    if launcher is not None:
        yield from cuda_entry.check(launcher, functions)


def _is_allowed(name: str, allowed: frozenset[str]) -> bool:
    return any(name == known or name.startswith(f"{known}.") for known in allowed)


def _found(rule: Rule, token: Token) -> Finding:
    return Finding(rule.check, rule.reason, token.line, token.column, rule.in_doubt)


def _syntax(unit: Unit, unfit: Token | None) -> Iterator[Finding]:
    """Literals closed, brackets paired, no characters that C++ has no use for."""
    conditional = any(token.kind == "branch" for token in unit.code)
    if not unit.code:
        yield Finding(SYNTAX, "not CUDA C++: there is nothing but blanks and comments")
    open_brackets: list[Token] = []
    for token in unit.code:
        if token.kind == "bad":
            yield Finding(
                SYNTAX, f"not CUDA C++: {token.text[:8]!r} is not closed or has no meaning", token.line, token.column
            )
            return
        if token.kind != "mark" or token.text not in "()[]{}" or conditional:
            continue
        if token.text in BRACKETS:
            if not open_brackets or open_brackets.pop().text != BRACKETS[token.text]:
                yield Finding(SYNTAX, f"not CUDA C++: {token.text} closes nothing", token.line, token.column)
                return
        else:
            open_brackets.append(token)
    if open_brackets:
        token = open_brackets[-1]
        yield Finding(SYNTAX, f"not CUDA C++: {token.text} is never closed", token.line, token.column)
    elif unfit is not None and unit.code:
        yield Finding(SYNTAX, f"not CUDA C++: {unfit.text} does not pair", unfit.line, unfit.column, conditional)


def _names(
    pieces: list[Piece], unit: Unit, functions: list[Function], allowed: frozenset[str], denied: frozenset[str]
) -> Iterator[Finding]:
    """Identifiers, wherever they stand and as calls."""
    own = {function.name for function in functions}
    local = _bound(pieces, functions)
    for index, (token, where, function) in enumerate(pieces):
        if token.kind != "name" or token.text in allowed:
            continue
        before = pieces[index - 1].token.text if index else ""
        after = pieces[index + 1].token.text if index + 1 < len(pieces) else ""
        whole = _qualified(pieces, index)
        if after != "::" and any(whole == name or whole.startswith(f"{name}.") for name in denied):
            yield Finding("policy.denied", f"{whole} is denied by conf/policy", token.line, token.column)
        if before in (".", "->"):
            continue
        rule = look_up(token.text)
        if rule is not None and not (is_attribute(token.text) and not _in_attribute(pieces, index)):
            yield _found(rule, token)
        elif token.text in DRIVER_ENTRIES:
            yield from _driver_entry(pieces, index)
        elif before == "::" or (token.text not in own and (id(function), token.text) not in local):
            yield from _host_call(token, where, before, after, pieces, index)
    for token in unit.hidden:
        rule = look_up(token.text) if token.kind == "name" else None
        rule = rule or (look_up_call(token.text) if token.text in HANDED_ON else None)
        if rule is not None and not is_attribute(token.text):
            yield _found(rule, token)


def _qualified(pieces: list[Piece], index: int) -> str:
    """A name with the namespaces written before it, dotted."""
    parts = [pieces[index].token.text]
    while (
        len(parts) < LONGEST_NAME
        and index > 1
        and pieces[index - 1].token.text == "::"
        and pieces[index - 2].token.kind == "name"
    ):
        index -= 2
        parts.insert(0, pieces[index].token.text)
    return ".".join(parts)


def _bound(pieces: list[Piece], functions: list[Function]) -> set[tuple[int, str]]:
    """Variables by function: parameters, and names after a type and before their value, end or size."""
    names = {
        (id(function), token.text) for function in functions for given in function.parameters for token in given[-1:]
    }
    for left, middle, right in zip(pieces, pieces[1:], pieces[2:], strict=False):
        if middle.token.kind != "name" or right.token.text not in ("=", ";", ",", ")", "[", "{", ":"):
            continue
        after_type = left.token.kind == "name" and left.token.text not in NOT_TYPES
        if after_type or (left.token.text in ("*", "&", ">") and right.token.text == "="):
            names.add((id(middle.function), middle.token.text))
    return names


def _in_attribute(pieces: list[Piece], index: int) -> bool:
    return any(piece.token.text in ("__attribute__", "__attribute") for piece in pieces[max(0, index - 8) : index])


def _host_call(token: Token, where: str, before: str, after: str, pieces: list[Piece], index: int) -> Iterator[Finding]:
    """Calls of the C library, from host functions; of its clock also from kernels."""
    rule = look_up_call(token.text)
    in_std = look_up_in_std(token.text)
    if in_std is not None and before == "::" and index > 1 and pieces[index - 2].token.text == "std":
        yield _found(in_std, token)
        return
    given = pieces[min(index + 2, len(pieces) - 1)].token.text
    if token.text == "exit" and after == "(" and given in ("0", "EXIT_SUCCESS"):
        yield Finding("policy.process", "exit ends the process as if all were well", token.line, token.column)
    if rule is None or (where == "device" and token.text != "clock"):
        return
    handed_on = before in ("=", "&", "(", ",", "return", "::", "{") or after in (";", ",", ")")
    if after == "(" or (token.text in HANDED_ON and handed_on):
        yield _found(rule, token)


def _driver_entry(pieces: list[Piece], index: int) -> Iterator[Finding]:
    """The one function a launcher has to ask the driver for by name: what makes a TMA descriptor."""
    token = pieces[index].token
    arguments = [piece.token for piece in pieces[index + 1 : index + 12]]
    texts = [argument.content() for argument in arguments if argument.kind == "text"]
    if arguments and arguments[0].text == "(" and not (texts and TENSOR_MAP.fullmatch(texts[0])):
        reason = f"{token.text} finds a function by a text that is not cuTensorMapEncode…"
        yield Finding("policy.ctypes", reason, token.line, token.column)


def _namespaces(pieces: list[Piece], with_torch: bool) -> Iterator[Finding]:
    """`cub::Device…`, and torch's C++."""
    for index, (token, where, _) in enumerate(pieces):
        after = [piece.token.text for piece in pieces[index + 1 : index + 3]]
        if token.kind != "name" or len(after) < 2:
            continue
        if token.text == "cub" and after[0] == "::" and CUB_DEVICE.fullmatch(after[1]):
            reason = f"cub::{after[1]} has a library do the target's work"
            yield Finding("policy.library_work", reason, token.line, token.column)
        elif token.text == "cutlass" and after[0] == "::" and "device" in _chain(pieces, index):
            reason = "cutlass's device-wide operators do the target's work"
            yield Finding("policy.library_work", reason, token.line, token.column)
        elif token.text in TORCH_SPACES and after[0] == "::" and pieces[index - 1].token.text != "::":
            last = _chain(pieces, index)[-1]
            if not with_torch or last.rstrip("_") in TORCH_WORK or "nn" in after:
                reason = f"{token.text}::{last} has torch do work that the target's kernel has to do"
                yield Finding("policy.library_work", reason, token.line, token.column)
        elif with_torch and where == "host" and token.text in WORK and pieces[index - 1].token.text in (".", "->"):
            reason = f".{token.text} has torch do work that the target's kernel has to do"
            yield Finding("policy.library_work", reason, token.line, token.column)


def _written(pieces: list[Piece], start: int) -> str:
    """The texts of an `asm` statement as one."""
    texts = []
    for piece in pieces[start : start + LONGEST_ASM]:
        if piece.token.text == ";" and piece.token.kind == "mark":
            break
        if piece.token.kind == "text":
            texts.append(piece.token.content())
    return "".join(texts)


def _chain(pieces: list[Piece], index: int) -> list[str]:
    """The names of `a::b::c`."""
    names = [pieces[index].token.text]
    while len(names) < LONGEST_NAME and index + 2 < len(pieces) and pieces[index + 1].token.text == "::":
        index += 2
        names.append(pieces[index].token.text)
    return names


def _assembly(pieces: list[Piece]) -> Iterator[Finding]:
    """Assembly belongs into kernels, and reads no clock there; exceptions and their handlers belong nowhere."""
    for index, (token, where, _) in enumerate(pieces):
        if token.kind != "name":
            continue
        if token.text in ASM and where in ("host", "top"):
            reason = "machine code, or another function's name, is written into the host's part"
            yield Finding("policy.dynamic_code", reason, token.line, token.column)
        elif token.text in ASM:
            written = _written(pieces, index + 1)
            if HOST_ASM.search(written) or where == "both":
                reason = "machine code is written where the host can run it"
                yield Finding("policy.dynamic_code", reason, token.line, token.column, not HOST_ASM.search(written))
            if CLOCK_IN_ASM.search(written):
                yield Finding("policy.clock", "a kernel reads a clock", token.line, token.column)
        elif token.text == "catch" and where == "host":
            yield Finding(
                "policy.fallback", "a catch may stand in for a kernel that fails", token.line, token.column, True
            )
