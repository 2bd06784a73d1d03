"""The rule language says True, False or cannot tell, and refuses what it does not have."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest
from constraint_makers import unhurried
from hypothesis import given
from hypothesis import strategies as st

from kernelgen.constraints.rules import DEEPEST_RULE, LONGEST_RULE, parse
from kernelgen.constraints.terms import LONGEST_PATTERN, OVERLAP, WINDOW
from kernelgen.errors import ConstraintError

FACTS = {
    "shared_bytes": 232448,
    "registers": 168,
    "num_warps": 4,
    "num_stages": 3,
    "dsl": "triton",
    "uses_tma": True,
    "blocks": {"BLOCK_M": 64, "BLOCK_N": 96, "EVEN_K": True, "ACT": "silu"},
}


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("shared_bytes <= 232448", True),
        ("shared_bytes < 232448", False),
        ("1 <= num_warps <= 32", True),
        ("8 <= num_warps <= 32", False),
        ("num_warps in (1, 2, 4, 8)", True),
        ("num_warps not in [1, 2]", True),
        ("num_warps != 4", False),
        ("dsl == 'triton'", True),
        ("dsl == 4", False),
        ("is_power_of_two(num_warps)", True),
        ('is_power_of_two(block("BLOCK_N"))', False),
        ("is_power_of_two(0)", False),
        ("is_power_of_two(-num_warps)", False),
        ("is_power_of_two(0.5)", False),
        ("is_power_of_two(1e999)", False),
        ('block("BLOCK_M") * block("BLOCK_N") // 2 % 1000 + 1 - 1 == 72', True),
        ("num_warps / 8 == 0.5", True),
        ('block("ACT") == "silu"', True),
        ('block("EVEN_K") == True', True),
        ("uses_tma", True),
        ("not uses_tma", False),
        ("not (num_warps == 4 and num_stages > 3)", True),
        ("True", True),
    ],
)
def test_what_the_facts_decide(rule, expected):
    assert parse(rule).check(FACTS) is expected


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("spill_bytes == 0", None),
        ('block("BLOCK_K") >= 16', None),
        ("not spill_bytes == 0", None),
        ("spill_bytes == 0 and num_warps == 8", False),
        ("num_warps == 8 and spill_bytes == 0", False),
        ("spill_bytes == 0 and num_warps == 4", None),
        ("spill_bytes == 0 or num_warps == 4", True),
        ("spill_bytes == 0 or num_warps == 8", None),
        ("num_warps in (spill_bytes, 4)", True),
        ("num_warps in (spill_bytes, 8)", None),
        ("0 < spill_bytes < num_warps", None),
        ("5 < num_warps < spill_bytes", False),
        ("spill_bytes + 1 > 0", None),
        ("is_power_of_two(spill_bytes)", None),
        ('source_matches("x")', None),
    ],
)
def test_a_missing_fact_follows_kleene(rule, expected):
    assert parse(rule).check(FACTS) is expected
    assert parse(rule).check({**FACTS, "spill_bytes": None}) is expected


@pytest.mark.parametrize(
    "rule", ["num_warps // 0 == 1", "dsl > 3", "dsl * 3 == 1", "uses_tma + 1 == 2", "dsl", "num_warps", "blocks"]
)
def test_a_fact_that_does_not_fit_cannot_be_told(rule):
    assert parse(rule).check(FACTS) is None


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("", "column"),
        ("num_warps <=", "column"),
        ("num_warps = 4", "column"),
        ("num_warps + 1", "column 1: a condition is needed here"),
        ('block("BLOCK_M")', "condition is needed"),
        ("num_warps == 4 and 3", "column 20: a condition is needed here"),
        ("sourc_matches('x')", "column 1: .*did you mean 'source_matches'"),
        ("open('/etc/passwd')", "no function 'open'"),
        ("num_warps.bit_length() == 3", "no function 'num_warps.bit_length'"),
        ("dsl.name == 'x'", "not part of the rule language"),
        ("num_warps ** 9 > 1", "not part"),
        ("[n for n in (1,)] == 1", "not part"),
        ("(lambda: 1) == 1", "condition|not part"),
        ("num_warps is None", "not part|write =="),
        ("num_warps is 4", "write =="),
        ("num_warps in 'abc'", "choices in brackets"),
        ("num_warps in (1, 2) in (True,)", "cannot be part of a chain"),
        ("block(num_warps) == 1", "text in quotes"),
        ("block('A', 'B') == 1", "one argument"),
        ("block('a b') == 1", "not the name"),
        ("source_matches('(')", "not a regular expression"),
        ("source_matches('\\bwgmma')", "write it raw"),
        ("source_matches(r'(a+)+b')", "repeated group"),
        ("source_matches(r'(a|a)*b')", "repeated group"),
        ("source_matches(r'((ab?)c)*b')", "repeated group"),
        ("source_matches(r'(?:x(y|z)){2,}')", "repeated group"),
        (f"source_matches('{'a' * (LONGEST_PATTERN + 1)}')", "at most"),
        ("a == 1 or " * LONGEST_RULE + "a == 1", "at most"),
        ("not " * (DEEPEST_RULE + 1) + "a", "nested"),
        ("\0", "cannot be read|column"),
        ("dsl == f'{1}'", "not part"),
        ("dsl == b'x'", "not part"),
        ("größe == 1 and num_warps.x == 1", "column 16"),
    ],
)
def test_what_the_language_does_not_have_is_refused(rule, said):
    with pytest.raises(ConstraintError, match=said):
        parse(rule)


@unhurried
@given(st.text(alphabet="abn_ ()[]{}<>=!+-*/%.,'\"\\0123456789\n\x00\ud800é:@|&^~", max_size=80))
def test_any_text_is_a_rule_or_a_sentence(text):
    with suppress(ConstraintError):
        assert parse(text).check({}) in (True, False, None)


def test_names_are_the_facts_a_rule_asks_for():
    rule = parse('num_warps <= 8 and block("BLOCK_M") > 16 and not source_matches("x")')
    assert rule.names() == {"num_warps", 'block("BLOCK_M")', "source"}


def test_a_raw_backslash_need_not_be_doubled():
    facts = {"source": "y = tl.dot(a, b)", "language": "python"}
    assert parse(r"source_matches('tl\.dot\(')").check(facts) is True


PYTHON = '''
"""tl.dot(a, b) in a docstring"""
# tl.dot(a, b) in a comment
name = "tl.dot(" + 'tl.dot('
acc = tl.maximum(
    a,  # tl.dot(
    b,
); c = 1
'''
CUDA = r"""
#include <cuda.h>
// wgmma in a comment
/* wgmma
   in another */
const char* s = "wgmma \" wgmma"; char c = '"'; int n = 1'000'000;
auto raw = R"x(wgmma)" wgmma)x";
for (int i = 0; i < n; i++) { mma_sync(a,
    b); }
"""


@pytest.mark.parametrize(
    ("language", "source", "pattern", "expected"),
    [
        ("python", PYTHON, r"tl\.dot", False),
        ("python", PYTHON, r"^acc = tl\.maximum\( a, b, \)$", True),
        ("python", PYTHON, r"^c = 1$", True),
        ("python", "x = (1\n+ 2)\ny = 3", r"1 \+ 2", True),
        ("python", "'''open", "open", False),
        ("python", "a = 'it\\'s' + tl.dot(x)", r"tl\.dot", True),
        ("cuda", CUDA, "wgmma", False),
        ("cuda", CUDA, r"mma_sync\(a, b\)", True),
        ("cuda", CUDA, "^#include <cuda.h>$", True),
        ("cuda", CUDA, "1'000'000", True),
        ("cuda", "a = '\\''; wgmma();", "wgmma", True),
    ],
)
def test_source_is_matched_by_statement_without_comments_and_strings(language, source, pattern, expected):
    facts = {"source": source, "language": language}
    assert parse(f'source_matches(r"{pattern}")').check(facts) is expected


def test_the_dsl_says_the_language_where_nothing_else_does():
    rule = parse("source_matches('mma')")
    assert rule.check({"source": "// mma", "dsl": "cuda"}) is False
    assert rule.check({"source": "x // mma", "dsl": "triton"}) is True
    assert rule.check({"source": "mma"}) is None


def test_a_match_anywhere_in_a_very_long_statement_is_found():
    for at in (0, WINDOW - 5, WINDOW, 3 * OVERLAP - 2, 5 * WINDOW):
        source = f"[{'a,' * (at // 2)} tl.dot, {'b,' * WINDOW}]"
        assert parse(r"source_matches('tl\.dot')").check({"source": source, "language": "python"}) is True


def test_a_hostile_source_takes_bounded_time():
    source = "x = " + "a" * 20_000 + "\n" + "(" * 5_000 + "'" * 5_001
    began = time.process_time()
    assert parse("source_matches(r'a+b')").check({"source": source, "language": "python"}) is False
    assert time.process_time() - began < 5
