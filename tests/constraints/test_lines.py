"""A line is one record either way; a broken one ends in a sentence that names the mend."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from constraint_makers import constraint_lists, made, unhurried
from hypothesis import given
from hypothesis import strategies as st

from kernelgen.constraints.lines import line_text, read_line
from kernelgen.errors import ConstraintError
from kernelgen.records import Constraint, Retraction

GOOD = '{"id": "c1", "severity": "soft", "statement": "Avoid atomics."}'


@unhurried
@given(constraint_lists(max_size=5))
def test_a_written_line_is_read_back_the_same(constraints):
    for constraint in constraints:
        text = line_text(constraint)
        assert "\n" not in text
        assert read_line(text) == constraint


def test_a_written_line_has_the_fields_in_order_without_defaults():
    constraint = made("c1", "soft", "Größer: 共有", source="L3")
    assert line_text(constraint) == '{"id": "c1", "severity": "soft", "statement": "Größer: 共有", "source": "L3"}'


def test_a_retraction_is_told_by_its_key():
    retraction = Retraction(id="r1", retracts="c1", why="Fixed.")
    assert read_line(line_text(retraction)) == retraction


def test_a_line_without_an_id_is_named_after_its_content():
    spaced = read_line('{"statement":  "Avoid atomics.", "severity": "soft"}')
    ordered = read_line('{"severity": "soft", "statement": "Avoid atomics.", "scope": {}}')
    other = read_line('{"severity": "hard", "statement": "Avoid atomics."}')
    assert spaced == ordered
    assert spaced.id != other.id
    assert spaced.id.startswith("c_")
    assert len(spaced.id) == len("c_") + 12
    assert read_line('{"retracts": "c1", "why": "Fixed."}').id.startswith("r_")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"severity": "soft"', "not JSON.*column"),
        ("severity: soft", "not JSON"),
        ("[1, 2]", "one JSON object"),
        ("[" * 5000, "not JSON"),
        ('{"severty": "soft", "statement": "x"}', "no field 'severty'; did you mean 'severity'"),
        ('{"severity": "soft", "statement": "x", "sorce": "L3"}', "no field 'sorce'; did you mean 'source'"),
        ('{"severity": "soft", "statement": "x", "scope": {"targt": "a"}}', "'scope.targt'; did you mean 'target'"),
        ('{"severity": "soft", "statement": "x", "evidence": {"line": []}}', "did you mean 'lines'"),
        ('{"severity": "soft"}', "'statement' is missing"),
        ('{"severity": "soft", "statement": ""}', "'statement' is \"\".*at least 1"),
        ('{"severity": "hrad", "statement": "x"}', "'severity' is \"hrad\"; it must be 'hard', 'soft' or 'positive'"),
        ('{"id": "1 c", "severity": "soft", "statement": "x"}', "an id is letters"),
        ('{"severity": "soft", "statement": "x", "scope": {"state": "3"}}', "'scope.state' is \"3\".*integer"),
        ('{"severity": "soft", "statement": "x", "scope": {"state": 6}}', "'scope.state' is 6.*less than or equal"),
        ('{"severity": "soft", "statement": "x", "time": "yesterday"}', "'yesterday' is not ISO 8601"),
        ('{"severity": "soft", "statement": "x", "rule": "num_warps ="}', "rule 'num_warps =', column 11"),
        ('{"severity": "soft", "statement": "x", "rule": 5}', "'rule' is 5"),
        ('{"retracts": "c1"}', "'why' is missing"),
        ('{"retracts": "c1", "why": "x", "severity": "soft"}', "no field 'severity'"),
        ('{"severity": "soft", "statement": "\\ud800"}', "not JSON"),
        ('{"severity": "soft", "statement": NaN}', "'statement' is NaN"),
    ],
)
def test_a_broken_line_says_what_is_wrong_and_the_mend(text, said):
    with pytest.raises(ConstraintError, match=said) as raised:
        read_line(text)
    assert "\n" not in str(raised.value)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
fields = st.sampled_from([*Constraint.model_fields, *Retraction.model_fields, "severty"])
broken_lines = (
    st.text(max_size=60)
    | json_values.map(json.dumps)
    | st.dictionaries(fields, json_values, max_size=5).map(lambda extra: json.dumps({**json.loads(GOOD), **extra}))
    | st.integers(0, len(GOOD)).map(lambda cut: GOOD[:cut])
)


@unhurried
@given(broken_lines)
def test_any_line_is_a_record_or_a_sentence(text):
    with suppress(ConstraintError):
        assert isinstance(read_line(text), Constraint | Retraction)
