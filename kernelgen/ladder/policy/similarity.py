"""How much of a candidate stands in a known source: the share of its tokens that do, whatever names and numbers it has.

A token does where a run of `RUN` tokens around it does, or its statement, in any order within and among statements.
Names that a source makes up count as one, members and words of the DSL as themselves, numbers as one. Comments, texts,
layout, brackets and the table of configurations are aside.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from kernelgen.ladder.policy.names import words

RUN = 24
"""Tokens in a row that are no coincidence: longer than a statement, so that two kernels of one style differ."""
STATEMENT = 5
"""Tokens from which a statement says something."""
_WHOLE_RUN = b"\1" * RUN
FEWEST = 60
"""Tokens below which a source is too short to say anything."""
PYTHON = re.compile(
    r"""
    (?P<aside> \#[^\n]* | [^\S\n]+ | \\\n | \n )
  | (?P<text> [rbfuRBFU]{0,2} (?: \"{3} (?:[^\\]|\\.)*? (?:\"{3}|\Z) | '{3} (?:[^\\]|\\.)*? (?:'{3}|\Z)
                                | "(?:[^"\\\n]|\\.)*"? | '(?:[^'\\\n]|\\.)*'? ) )
  | (?P<number> \.?[0-9][0-9A-Za-z_.]* )
  | (?P<member> \.\s*[^\W\d]\w* )
  | (?P<name> [^\W\d]\w* )
  | (?P<mark> . )
    """,
    re.VERBOSE | re.DOTALL,
)
CUDA = re.compile(
    r"""
    (?P<aside> //[^\n]* | /\*.*?(?:\*/|\Z) | \#\s*include[^\n]* | \\\n | \s+ )
  | (?P<text> "(?:[^"\\\n]|\\.)*"? | '(?:[^'\\\n]|\\.)*'? )
  | (?P<number> \.?[0-9][0-9A-Za-z_.']* )
  | (?P<member> (?:\.|->|::)\s*[^\W\d]\w* )
  | (?P<name> [^\W\d]\w* )
  | (?P<mark> . )
    """,
    re.VERBOSE | re.DOTALL,
)
CONFIGURATION = frozenset({".Config", "Config"})
NAMELESS = frozenset({"name", "number", "text"})
UNSAID = words(", ; ( ) { }")
KEYWORDS = words(
    "def return for while if else elif in not and or is lambda with class import from as assert range const auto "
    "void int float double bool char unsigned struct template typename static inline extern constexpr switch case "
    "break continue sizeof __global__ __device__ __shared__ __host__ __restrict__ __syncthreads asm volatile "
    "threadIdx blockIdx blockDim gridDim"
)


@dataclass(frozen=True)
class Likeness:
    """The known source that a candidate is most like."""

    name: str
    """The known source's name."""
    share: float
    """Share of the candidate's tokens that stand in the known source, names and numbers aside."""
    literal: float
    """The same with names and numbers as they are."""
    covered: float
    """Share of the known source's tokens that stand in the candidate, names and numbers aside."""


@dataclass(frozen=True)
class _Form:
    """A source's tokens in one way of writing them."""

    length: int
    """Number of tokens."""
    runs: tuple[int, ...]
    """Digest of the run that begins at each token."""
    statements: tuple[tuple[int, int, int], ...]
    """First token of each statement, the one after its last, and a digest of its tokens in no order."""
    known: frozenset[int]
    """All digests."""


def closest(source: str, language: str, known: Mapping[str, str]) -> Likeness | None:
    """The known source most like a candidate; None where there is none, or too little of the candidate to say."""
    shape, exact = forms(source, language)
    if shape.length < FEWEST or not known:
        return None
    shares = {name: _share(shape, forms(text, language)[0]) for name, text in known.items()}
    best = max(shares, key=lambda name: shares[name])
    other_shape, other_exact = forms(known[best], language)
    return Likeness(best, shares[best], _share(exact, other_exact), _share(other_shape, shape))


def _share(one: _Form, other: _Form) -> float:
    """The share of one source's tokens that stand in the other."""
    found = bytearray(one.length)
    for start, digest in enumerate(one.runs):
        if digest in other.known:
            found[start : start + RUN] = _WHOLE_RUN
    for start, end, digest in one.statements:
        if digest in other.known:
            found[start:end] = b"\1" * (end - start)
    return sum(found) / one.length if one.length else 0.0


@lru_cache(maxsize=64)
def forms(source: str, language: str) -> tuple[_Form, _Form]:
    """A source with names and numbers aside, and as it is."""
    shape: list[str] = []
    exact: list[str] = []
    places: list[tuple[int, int]] = []
    for statement in _statements(source, language):
        start = len(shape)
        exact += [text for _, text in statement]
        shape += [kind if kind in NAMELESS and text not in KEYWORDS else text for kind, text in statement]
        if len(statement) >= STATEMENT:
            places.append((start, len(shape)))
    return _form(shape, places), _form(exact, places)


def _form(words: list[str], places: list[tuple[int, int]]) -> _Form:
    codes = [hash(word) for word in words]
    runs = tuple(hash(tuple(codes[start : start + RUN])) for start in range(max(0, len(codes) - RUN + 1)))
    statements = tuple((start, end, hash(tuple(sorted(codes[start:end])))) for start, end in places)
    return _Form(len(words), runs, statements, frozenset(runs) | {digest for _, _, digest in statements})


def _statements(source: str, language: str) -> Iterator[list[tuple[str, str]]]:
    """Kind and text of the tokens that count, by statement; those that list configurations are aside."""
    depth = 0
    statement: list[tuple[str, str]] = []
    for found in (CUDA if language == "cuda" else PYTHON).finditer(source):
        kind, text = found.lastgroup or "mark", found[0]
        depth += (text in "([{") - (text in ")]}") if kind == "mark" else 0
        if _ends(language, kind, text, depth):
            if not any(word in CONFIGURATION for _, word in statement):
                yield statement
            statement = []
        elif kind != "aside" and text not in UNSAID:
            statement.append((kind, text))
    yield statement


def _ends(language: str, kind: str, text: str, depth: int) -> bool:
    """Whether a token ends a statement."""
    if language == "cuda":
        return kind == "mark" and text in (";", "{", "}")
    return depth == 0 and ((kind == "aside" and text == "\n") or (kind == "mark" and text in (":", ";")))
