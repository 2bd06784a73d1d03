"""The functions of the rule language, and the values it computes with.

To add one, write a reader and enter it in `FUNCTIONS`. A pattern is Python's `re`, searched within one statement of the
source (`kernelgen.constraints.source`), comments and strings aside; it has at most `LONGEST_PATTERN` characters, and no
repeat within a repeated group, since that can take time exponential in the source. Patterns come from people and from
kernelgen, never from the candidate; a match longer than `OVERLAP` characters in a very long statement may be missed.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias, TypeGuard

from kernelgen.constraints.source import statements
from kernelgen.records import Language

Number: TypeAlias = int | float
Value: TypeAlias = bool | int | float | str | None
Facts: TypeAlias = Mapping[str, object]
Evaluate: TypeAlias = Callable[[Facts], Value]

LONGEST_PATTERN = 200
"""Characters of a regular expression."""
WINDOW = 2000
"""Characters of a statement that one search looks at."""
OVERLAP = 1000
"""Characters by which two windows overlap."""


@dataclass(frozen=True, slots=True)
class Function:
    """One function of the language, of one argument: a text known beforehand, or any value."""

    usage: str
    """An example."""
    is_condition: bool
    """Whether it is true or false, rather than a number or text."""
    of_text: Callable[[str], tuple[Evaluate, str]] | None = None
    """Reads the literal: the function of the facts, and the name of what it asks for; ValueError says what is wrong."""
    of_value: Callable[[Evaluate], Evaluate] = lambda argument: argument
    """Where `of_text` is None: from the argument's value to the function's."""


def is_number(value: object) -> TypeGuard[Number]:
    """A number; True and False are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_value(value: object) -> TypeGuard[bool | int | float | str]:
    """Something the language can compute with."""
    return isinstance(value, bool | int | float | str)


def _block(name: str) -> tuple[Evaluate, str]:
    if not name.isidentifier():
        raise ValueError(f"'{name}' is not the name of a constexpr")

    def evaluate(facts: Facts) -> Value:
        blocks = facts.get("blocks")
        value = blocks.get(name) if isinstance(blocks, Mapping) else None
        return value if is_value(value) else None

    return evaluate, f'block("{name}")'


def _source_matches(text: str) -> tuple[Evaluate, str]:
    pattern = _pattern(text)

    def evaluate(facts: Facts) -> Value:
        source, language = facts.get("source"), _language(facts)
        if not isinstance(source, str) or language is None:
            return None
        return any(
            pattern.search(statement, start, start + WINDOW)
            for statement in statements(source, language)
            for start in range(0, len(statement), WINDOW - OVERLAP)
        )

    return evaluate, "source"


def _language(facts: Facts) -> Language | None:
    """How the source is written; the DSL says it where `language` does not."""
    match facts.get("language"), facts.get("dsl"):
        case ("cuda", _) | (None, "cuda"):
            return "cuda"
        case ("python", _) | (None, "triton" | "tilelang"):
            return "python"
    return None


def _pattern(text: str) -> re.Pattern[str]:
    if len(text) > LONGEST_PATTERN:
        raise ValueError(f"a pattern has at most {LONGEST_PATTERN} characters, this one {len(text)}")
    if not text.isprintable():
        raise ValueError('the pattern holds a control character; write it raw, as in r"\\bwgmma\\b"')
    if _repeats_a_repeat(text):
        raise ValueError("a repeated group of a pattern may hold no repeat and no alternatives; write it out")
    try:
        with warnings.catch_warnings():
            # a pattern Python only warns about, such as [[a], still means what it says
            warnings.simplefilter("ignore")
            return re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"the pattern is not a regular expression ({error})") from None


def _repeats_a_repeat(pattern: str) -> bool:
    """Whether a group that holds a repeat or alternatives is itself repeated."""
    bare = re.sub(r"\\.", "x", pattern, flags=re.DOTALL)
    bare = re.sub(r"\[\^?\]?[^\]]*\]", "x", bare)
    inner = re.compile(r"\((\?(:|=|!|<=|<!|P<\w*>)|\?[aiLmsux-]+:?)?(?P<body>[^()]*)\)(?P<repeat>[*+{]?)")
    while found := inner.search(bare):
        varies = re.search(r"[*+{|?]", found["body"]) is not None
        if varies and found["repeat"]:
            return True
        # an inner group stands for itself in the outer one: `v?` keeps that it varies
        bare = bare[: found.start()] + ("v?" if varies else "v") + bare[found.end("body") + 1 :]
    return False


def _power_of_two(argument: Evaluate) -> Evaluate:
    def evaluate(facts: Facts) -> Value:
        value = argument(facts)
        if not is_number(value):
            return None
        if isinstance(value, float):
            if not value.is_integer():
                return False
            value = int(value)
        return value > 0 and value & (value - 1) == 0

    return evaluate


FUNCTIONS: Mapping[str, Function] = MappingProxyType(
    {
        "block": Function('block("BLOCK_M")', is_condition=False, of_text=_block),
        "source_matches": Function('source_matches(r"tl\\.dot")', is_condition=True, of_text=_source_matches),
        "is_power_of_two": Function("is_power_of_two(num_warps)", is_condition=True, of_value=_power_of_two),
    }
)
"""By name."""
