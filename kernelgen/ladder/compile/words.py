"""What a compiler's words mean: the id of the check, and facts of which a rule can be made.

The compilers are Triton 3.6 to 3.9, ptxas, nvcc 13 and TileLang 0.1. What matches nothing is `compile.other`, with the
words as they are. Facts are those of `kernelgen.constraints.rules.FACTS`, `block.NAME` for the compile-time arguments
that the fault is about, and beside them `excerpt`, the source from the compiler's caret on.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kernelgen.ladder.results import Fact

LONGEST_EXCERPT = 200
OTHER = "compile.other"

Constants = Mapping[str, Fact | None]
_WORD = re.compile(r"[A-Za-z_]\w*")
_NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])")
_CARET = re.compile(r"^( *)\^~*$")


@dataclass(frozen=True)
class Meaning:
    """Words of a compiler, and the check they mean."""

    check: str
    """Its id."""
    pattern: str
    """What is found in the words; its named groups are facts."""
    about: Callable[[Constants, Mapping[str, Fact], str], Mapping[str, int]] | None = None
    """Which extents the fault is about: of the constants, the facts found and the excerpt. None for none."""


def extents(constants: Constants) -> dict[str, int]:
    """The compile-time arguments that are whole numbers, such as tile sizes."""
    return {name: value for name, value in constants.items() if type(value) is int}


def classify(said: str, constants: Constants) -> tuple[str, dict[str, Fact]]:
    """The check that a compiler's words mean, and the facts in them."""
    excerpts = caret_excerpts(said)
    shown: dict[str, Fact] = {"excerpt": excerpts[0]} if excerpts else {}
    for meaning in MEANINGS:
        found = re.search(meaning.pattern, said)
        if found is None:
            continue
        facts = {name: _fact(text) for name, text in found.groupdict().items() if text is not None}
        about = meaning.about(constants, facts, " ".join(excerpts)) if meaning.about else {}
        if meaning.about is _odd and not about:
            facts |= dict(zip(("extent",), odd_literals(" ".join(excerpts)), strict=False))
        return meaning.check, {**facts, **{f"block.{name}": value for name, value in about.items()}, **shown}
    return OTHER, shown


def caret_excerpts(said: str) -> list[str]:
    """The source from each of the compiler's carets on, to the end of that line, the outermost first."""
    lines = said.splitlines()
    carets = [(above, _CARET.match(line)) for above, line in itertools.pairwise(lines)]
    found = [above[len(caret[1]) :].strip()[:LONGEST_EXCERPT] for above, caret in carets if caret is not None]
    return [excerpt for excerpt in found if excerpt]


def _fact(text: str) -> Fact:
    """A number where it is one, decimal or as ptxas writes it, else the text."""
    try:
        return int(text, 0)
    except ValueError:
        return text


def _all(constants: Constants, facts: Mapping[str, Fact], excerpt: str) -> dict[str, int]:
    return extents(constants)


def _odd(constants: Constants, facts: Mapping[str, Fact], excerpt: str) -> dict[str, int]:
    """Those that the excerpt names and that are no power of two."""
    named = set(_WORD.findall(excerpt))
    return {name: size for name, size in extents(constants).items() if name in named and not is_power_of_two(size)}


def _named(constants: Constants, facts: Mapping[str, Fact], excerpt: str) -> dict[str, int]:
    named = set(_WORD.findall(excerpt))
    return {name: size for name, size in extents(constants).items() if name in named}


def _too_small(constants: Constants, facts: Mapping[str, Fact], excerpt: str) -> dict[str, int]:
    """Tiles below the least depth of a product."""
    least = facts.get("least_k", 0)
    found = extents(constants).items()
    return {name: size for name, size in found if isinstance(least, int) and 1 < size < least and is_power_of_two(size)}


def is_power_of_two(number: int) -> bool:
    """Whether a number is 1, 2, 4, 8…"""
    return number > 0 and number & (number - 1) == 0


def odd_literals(excerpt: str) -> list[int]:
    """Numbers written out in an excerpt that are no power of two, zero aside."""
    return [number for number in map(int, _NUMBER.findall(excerpt)) if number and not is_power_of_two(number)]


SHARED_MEMORY = r"out of resource: shared memory, Required: (?P<shared_bytes>\d+), Hardware limit: (?P<limit_bytes>\d+)"
# the first that is found decides
MEANINGS = (
    Meaning("compile.shared_memory", SHARED_MEMORY, _all),
    Meaning(
        "compile.shared_memory", r"uses too much shared data \((?P<shared_bytes>0x\w+) bytes, (?P<limit_bytes>0x\w+)"
    ),
    Meaning("compile.threads", r"out of resource: threads, Required: (?P<threads>\d+)"),
    Meaning("compile.registers", r"register allocation failed with register count of '?(?P<registers>\d+)"),
    Meaning("compile.registers", r"(?i)(?:too many|not enough|insufficient|out of) registers|setmaxnreg"),
    Meaning("compile.num_warps", r"num_warps must be a power of 2|num_warps.{0,40}power of (?:two|2)"),
    Meaning("compile.block_shape", r"arange's range must be a power of 2|Shape element \d+ must be a power of 2", _odd),
    Meaning("compile.block_shape", r"numel \((?P<elements>\d+)\) exceeds triton maximum tensor numel", _named),
    Meaning("compile.block_shape", r"arange's (?:end argument|arguments)", _named),
    Meaning("compile.dot_dtype", r"Both operands must be same dtype\. Got (?P<lhs_dtype>\w+) and (?P<rhs_dtype>\w+)"),
    Meaning("compile.dot_dtype", r"Unsupported lhs dtype (?P<lhs_dtype>\w+)"),
    Meaning("compile.dot_dtype", r"Unsupported rhs dtype (?P<rhs_dtype>\w+)"),
    Meaning(
        "compile.dot_dtype", r"only (?:int8|fp8|fp16|bf16)[\w ,]* supported|out_dtype=\w+ (?:mismatch|is unsupported)"
    ),
    Meaning("compile.dot_dtype", r"assert acc\.type|acc_handle|(?i:First input \(\w+\) and second input)"),
    Meaning("compile.dot_dtype", r"type (?P<dtype>fp8\w+) not supported in this architecture"),
    Meaning("compile.dot_shape", r"Input shapes should have M >= \d+, N >= \d+ and K >= (?P<least_k>\d+)", _too_small),
    Meaning("compile.dot_shape", r"must have equal reduction dimensions|must have the same batch size"),
    Meaning("compile.dot_shape", r"T\.gemm \w+ shape check failed|First input shape.{0,60}second input shape"),
    Meaning("compile.dot_shape", r"[MNK] must be divisible by (?P<multiple>\d+), but got (?P<extent>\d+)"),
    Meaning("compile.alignment", r"at least (?P<bytes_needed>\d+) bytes in the last dimension", _named),
    Meaning("compile.alignment", r"(?i)must be (?P<bytes_needed>\d+)-byte aligned|misaligned"),
    Meaning("compile.alignment", r"Tensor descriptor last dim must be 1"),
    Meaning("compile.loop_type", r"Loop-carried variable (?P<name>\w+) has initial type (?P<before>\S+) but"),
    Meaning("compile.loop_type", r"(?i)mismatched type for (?P<name>\w+) between (?:then|else|loop)"),
    Meaning("compile.unknown_name", r"NameError\([\"'](?P<name>\w+) is not defined"),
    Meaning("compile.unknown_name", r"module '(?P<owner>triton\.language[\w.]*)' has no attribute '(?P<name>\w+)'"),
    Meaning("compile.unknown_name", r"AttributeError\(.{0,80}has no attribute '(?P<name>\w+)'"),
    Meaning("compile.unknown_name", r"KeyError: '(?P<name>\w+)'"),
    Meaning("compile.unknown_name", r"identifier \"(?P<name>\w+)\" is undefined"),
    Meaning("compile.unknown_name", r"NameError: name '(?P<name>\w+)' is not defined"),
    Meaning("compile.syntax_in_kernel", r"unsupported AST node type: (?P<construct>\w+)"),
    Meaning("compile.syntax_in_kernel", r"UnsupportedLanguageConstruct"),
    # the launch does not fit the kernel's parameters
    Meaning("compile.host", r"dynamic_func\(\)|Keyword argument \w+ was specified but unrecogni[sz]ed"),
)
