"""Strategies for broken files: real ones cut, swapped, doubled, spliced, wrongly encoded, or with odd tokens put in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

ODD_TOKENS = (
    b"\x00",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\r",
    b"\r\n",
    b"\n\n",
    b"\xc2\xb2",
    b"\xd9\xa3",
    b"\xed\xa0\x80",
    b"\xe2\x80\xa8",
    b"nan",
    b"-inf",
    b"1e999",
    b"-1",
    b"0",
    b"9" * 25,
    b"9" * 5000,
    b"1.2.3,4",
    b"null",
    b"true",
    b"[]",
    b"{}",
    b'""',
    b"[" * 3000,
    b'{"a":' * 3000,
    b"(" * 300,
    b"\\u0000",
    b"\\ud800",
    b"${oc.env:HOME}",
    b"${a}",
    b"???",
    b"!!python/name:os",
    b"&a [*a]",
    b"*/",
    b"```",
    b"'''",
    b'"',
    b"'",
    b"%",
    b"=",
    b":",
    b"\t",
    b" " * 2000,
    b"../../x",
    b"[KERNEL]",
)
"""What parsers trip over: odd numbers and digits, deep nesting, ends of strings and comments, other encodings."""
FAR = 1 << 20
Edit = tuple[str, int, int, bytes]


def _splice(data: bytes, at: int, length: int, piece: bytes) -> bytes:
    return data[:at] + piece + data[at + length :]


EDITS: Mapping[str, Callable[[bytes, int, int, bytes], bytes]] = {
    "cut the end": lambda data, at, length, token: data[:at],
    "cut the start": lambda data, at, length, token: data[at:],
    "take out": lambda data, at, length, token: _splice(data, at, length, b""),
    "put in": lambda data, at, length, token: _splice(data, at, 0, token),
    "put over": lambda data, at, length, token: _splice(data, at, length, token),
    "double": lambda data, at, length, token: _splice(data, at, 0, data[at : at + length]),
    "swap": lambda data, at, length, token: _splice(
        data, at, 2 * length, data[at + length :][:length] + data[at:][:length]
    ),
    "flip a bit": lambda data, at, length, token: (
        _splice(data, at, 1, bytes([data[at] ^ 1 << length % 8])) if data[at:] else data
    ),
    "move lines": lambda data, at, length, token: b"\n".join(_rotated(data.split(b"\n"), at, length)),
    "utf-16": lambda data, at, length, token: data.decode("utf-8", "replace").encode("utf-16"),
    "latin-1": lambda data, at, length, token: data.decode("utf-8", "replace").encode("latin-1", "replace") + b"\xe9",
    "blank": lambda data, at, length, token: b" \n" * (length % 3),
}


def _rotated(lines: Sequence[bytes], at: int, length: int) -> list[bytes]:
    start = at % len(lines)
    return [*lines[:start], *reversed(lines[start : start + length]), *lines[start + length :]]


def _edited(seed: bytes, edits: Sequence[Edit]) -> bytes:
    data = seed
    for kind, where, length, token in edits:
        data = EDITS[kind](data, where % (len(data) + 1), length, token)
    return data


def mutated(seeds: Sequence[bytes]) -> SearchStrategy[bytes]:
    """One of the seeds after one to six edits, or sometimes plain random bytes."""
    token = st.one_of(st.sampled_from(ODD_TOKENS), st.binary(min_size=1, max_size=6))
    edit = st.tuples(st.sampled_from(sorted(EDITS)), st.integers(0, FAR), st.integers(1, 80), token)
    edited = st.builds(_edited, st.sampled_from(list(seeds)), st.lists(edit, min_size=1, max_size=6))
    return st.one_of(edited, edited, edited, st.binary(max_size=200))


def mutated_text(seeds: Sequence[str]) -> SearchStrategy[str]:
    """The same as text, with lone surrogates where the bytes are none."""
    return mutated([seed.encode() for seed in seeds]).map(lambda data: data.decode("utf-8", "surrogateescape"))
