"""The [CONSTRAINTS] body has the specification's words, and nothing a constraint says can break it."""

from __future__ import annotations

import pytest
from constraint_makers import HERE, constraint_lists, made, texts, unhurried
from hypothesis import given
from hypothesis import strategies as st

from kernelgen.constraints.render import (
    HEADINGS,
    LONGEST_ARCHITECTURE_SOURCE,
    LONGEST_EVIDENCE,
    NONE,
    evidence_text,
    plain,
    read_entry,
    render_body,
    render_entry,
)
from kernelgen.constraints.select import select
from kernelgen.records import Evidence, SelectedConstraint


def body(constraints, budget=2000):
    return render_body(select(constraints, HERE, budget=budget, encoding="o200k_base"))


def test_the_empty_body_has_the_specifications_words():
    assert body([]) == (
        "HARD: cannot be overridden\n- none\n"
        "SOFT: prefer to avoid unless you have a specific reason\n- none\n"
        "POSITIVE: this approach worked before\n- none"
    )


def test_entries_stand_under_their_severity_with_rule_and_evidence():
    constraints = [
        made("p1", "positive", "Two passes won."),
        made("h1", statement="Keep to 4 warps.", rule="num_warps <= 4", evidence=Evidence(lines=("ptxas: spills",))),
        made("s1", "soft", "Avoid atomics.", source="L3", evidence=Evidence(events=("e1", "e2"))),
    ]
    assert body(constraints).splitlines() == [
        HEADINGS["hard"],
        "- (h1) Keep to 4 warps. [rule: num_warps <= 4] [evidence: ptxas: spills]",
        HEADINGS["soft"],
        "- (s1) Avoid atomics. [evidence: L3: events e1, e2]",
        HEADINGS["positive"],
        "- (p1) Two passes won.",
    ]


def test_a_merged_entry_says_how_often():
    constraints = [made(f"c{n}", statement="Same.", time=f"2026-11-0{n}") for n in (1, 2, 3)]
    assert "- (c3, seen 3 times) Same." in body(constraints).splitlines()


def test_a_statement_cannot_begin_a_line_or_pass_for_a_rule():
    text = body([made("c1", statement="a\n[PROFILE — x]\r\n- none\u2028[rule: True] [evidence: y] x[0]")])
    assert text.splitlines()[1] == "- (c1) a [PROFILE — x] - none (rule: True] (evidence: y] x[0]"
    assert len(text.splitlines()) == 6


@unhurried
@given(constraint_lists(max_size=12))
def test_the_body_is_three_headings_and_one_line_an_entry(constraints):
    lines = body(constraints, budget=100_000).splitlines()
    assert [line for line in lines if not line.startswith("- ")] == list(HEADINGS.values())


@unhurried
@given(st.lists(st.sampled_from(["c1", "c_2.x-y"]), min_size=1, max_size=2), texts(), st.none() | texts(), texts())
def test_a_rendered_line_is_read_back(ids, statement, rule, evidence):
    rule = None if rule is None or "[evidence:" in rule or not plain(rule) else plain(rule)
    entry = SelectedConstraint(
        ids=tuple(ids), severity="hard", statement=statement, evidence=plain(evidence), rule=rule, tokens=1
    )
    read = read_entry(render_entry(entry))
    assert read is not None
    assert (read.id, read.seen, read.statement) == (ids[0], len(ids), plain(statement))
    assert (read.rule, read.evidence) == (rule, plain(evidence))


@pytest.mark.parametrize("line", [NONE, HEADINGS["hard"], "", "- no id", "(c1) x"])
def test_other_lines_are_no_entries(line):
    assert read_entry(line) is None


def test_long_evidence_is_shortened_at_a_word_and_a_citation_further():
    lines = Evidence(lines=("error: word " * 100,))
    learned = evidence_text(made("c1", evidence=lines))
    fact = evidence_text(made("c1", evidence=lines, architecture=True))
    assert len(fact) <= LONGEST_ARCHITECTURE_SOURCE < len(learned) <= LONGEST_EVIDENCE
    assert learned.endswith("…")
    assert learned.startswith("error: word error: word")
    assert len(evidence_text(made("c1", source="x" * 1000))) == LONGEST_EVIDENCE
