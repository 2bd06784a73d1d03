"""Selection: in scope, by severity and recency, merged, within the budget, nothing lost."""

from __future__ import annotations

import pytest
from constraint_makers import HERE, constraint_lists, made, unhurried
from hypothesis import given
from hypothesis import strategies as st

from kernelgen import tokens
from kernelgen.constraints import select as select_module
from kernelgen.constraints.render import render_body
from kernelgen.constraints.select import LOOK_AHEAD, ConstraintIndex, holds, moment, select
from kernelgen.errors import ConfigError, ConstraintError
from kernelgen.records import Scope, Selection

O200K = "o200k_base"
LEAST = 36
"""Tokens of the three headings with nothing under them."""
budgets = st.integers(LEAST, 400) | st.just(2000)


def chosen_ids(constraints, budget=2000, scope=HERE):
    return [entry.ids for entry in select(constraints, scope, budget=budget, encoding=O200K).chosen]


@unhurried
@given(constraint_lists(), budgets, st.sampled_from(["o200k_base", "cl100k_base"]))
def test_the_whole_body_never_exceeds_the_budget(constraints, budget, encoding):
    selection = select(constraints, HERE, budget=budget, encoding=encoding)
    assert selection.tokens == tokens.count(render_body(selection), encoding) <= budget


@unhurried
@given(constraint_lists(), budgets)
def test_nothing_that_holds_here_is_lost(constraints, budget):
    selection = select(constraints, HERE, budget=budget, encoding=O200K)
    told = [*(name for entry in selection.chosen for name in entry.ids), *selection.left_out]
    assert sorted(told) == sorted(c.id for c in constraints if holds(c.scope, HERE))
    assert selection.considered == len(told)


@unhurried
@given(constraint_lists(max_size=20), budgets, st.randoms(use_true_random=False))
def test_the_order_given_plays_no_part(constraints, budget, random):
    shuffled = list(constraints)
    random.shuffle(shuffled)
    first, second = (select(some, HERE, budget=budget, encoding=O200K) for some in (constraints, shuffled))
    assert first == second


@unhurried
@given(constraint_lists(), budgets)
def test_a_selection_is_a_valid_record_in_the_prompts_order(constraints, budget):
    selection = select(constraints, HERE, budget=budget, encoding=O200K)
    assert Selection.model_validate_json(selection.model_dump_json()) == selection
    by_id = {c.id: c for c in constraints}
    order = ["hard", "soft", "positive"]
    keys = [(order.index(e.severity), -moment(by_id[e.ids[0]].time), e.ids[0]) for e in selection.chosen]
    assert keys == sorted(keys)


@unhurried
@given(constraint_lists(max_size=15), st.integers(LEAST, 200))
def test_what_is_left_out_does_not_fit_beside_what_came_before_it(constraints, budget):
    alone = [c.model_copy(update={"architecture": False, "rule": None}) for c in constraints]
    selection = select(alone, HERE, budget=budget, encoding=O200K)
    wide = select(alone, HERE, budget=100_000, encoding=O200K)
    before = []
    for entry in wide.chosen:
        if entry in selection.chosen:
            before.append(entry)
            continue
        body = render_body(selection.model_copy(update={"chosen": (*before, entry)}))
        # a line is counted with its line end, which the body's last line has not
        assert tokens.count(body + "\n", O200K) > budget


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        ({}, True),
        ({"target": "moe", "hardware": "h200", "dsl": "triton", "state": 1}, True),
        ({"target": "mla"}, False),
        ({"hardware": "h100"}, False),
        ({"dsl": "cuda"}, False),
        ({"state": 0}, False),
        ({"compiler": "triton", "compiler_version": "3.7.1"}, True),
        ({"compiler": "triton", "compiler_version": "3.6.0"}, False),
        ({"compiler": "triton"}, True),
        ({"compiler": "nvcc"}, False),
    ],
)
def test_scope_with_a_known_compiler(scope, expected):
    here = HERE.model_copy(update={"compiler": "triton", "compiler_version": "3.7.1"})
    assert holds(Scope(**scope), here) is expected


def test_what_a_compiler_said_holds_where_the_compiler_is_not_known():
    assert holds(Scope(compiler="triton", compiler_version="3.6.0"), HERE)


def test_a_scoped_constraint_does_not_hold_where_the_request_does_not_say():
    assert not holds(Scope(target="moe"), Scope(hardware="h200"))


def test_severity_then_recency_then_id():
    constraints = [
        made("p", "positive", time="2026-12-31"),
        made("s", "soft", time="2026-12-30"),
        made("h_none"),
        made("h_b", time="2026-11-30T10:00:00Z"),
        made("h_a", time="2026-11-30T12:00:00+02:00"),
        made("h_new", time="2026-11-30T10:00:00.000001Z"),
    ]
    assert chosen_ids(constraints) == [("h_new",), ("h_a",), ("h_b",), ("h_none",), ("s",), ("p",)]


def test_an_unreadable_time_sorts_as_oldest():
    assert moment("last week") == moment("") < moment("0001-01-02")


def test_architecture_facts_give_way_after_learned_hard_ones_but_keep_their_place():
    fact = made("fact", architecture=True, time="2026-01-01", statement="word " * 40)
    learned = [made(f"l{n}", time=f"2026-11-{n:02}", statement=f"learned {n} " + "word " * 40) for n in range(1, 9)]
    ids = chosen_ids([*learned, fact], budget=200)
    assert ids == [("l8",), ("l7",), ("fact",)]


def test_lower_severities_take_only_room_that_is_left():
    hard = [made(f"h{n}", statement=f"hard {n} " + "word " * 60, time=f"2026-11-{n:02}") for n in range(1, 9)]
    selection = select([*hard, made("s", "soft", "Short.")], HERE, budget=200, encoding=O200K)
    assert [entry.ids[0] for entry in selection.chosen] == ["h8", "h7", "s"]
    assert selection.left_out == ("h6", "h5", "h4", "h3", "h2", "h1")


def test_after_many_that_do_not_fit_the_rest_of_a_class_is_left_out():
    long = [made(f"l{n:03}", statement=f"l{n} " + "word " * 500, time="2026-11-30") for n in range(LOOK_AHEAD)]
    constraints = [*long, made("late", statement="Short.", time="2026-11-01"), made("s", "soft", "Soft.")]
    selection = select(constraints, HERE, budget=300, encoding=O200K)
    assert [entry.ids for entry in selection.chosen] == [("s",)]
    assert "late" in selection.left_out
    assert chosen_ids(constraints[1:], budget=300) == [("late",), ("s",)]


def test_a_body_that_counts_more_than_its_lines_loses_the_last_taken(monkeypatch):
    honest = tokens.count
    monkeypatch.setattr(
        select_module.tokens, "count", lambda text, encoding: honest(text, encoding) + 3 * (text.count("- (") - 1)
    )
    constraints = [made(f"c{n}", statement=f"Number {n} x") for n in range(20)]
    selection = select(constraints, HERE, budget=150, encoding=O200K)
    assert 0 < selection.tokens <= 150
    assert len(selection.chosen) + len(selection.left_out) == 20


def test_a_budget_below_the_headings_is_refused():
    with pytest.raises(ConfigError, match=f"constraint_tokens={LEAST - 1} .* give {LEAST}"):
        select([], HERE, budget=LEAST - 1, encoding=O200K)
    assert select([], HERE, budget=LEAST, encoding=O200K).tokens == LEAST


def test_one_id_twice_is_refused():
    with pytest.raises(ConstraintError, match="the id 'c1'"):
        ConstraintIndex([made("c1", time="2026-01-01"), made("c2"), made("c1", time="2026-02-01")])


@pytest.mark.parametrize(
    ("first", "second", "merged"),
    [
        ({"statement": "Keep tiles small."}, {"statement": " keep  TILES small"}, True),
        ({"statement": "BLOCK 64 failed"}, {"statement": "BLOCK 128 failed"}, False),
        ({"statement": "BLOCK 64 failed", "rule": "a < 1"}, {"statement": "BLOCK 128 failed", "rule": "a<1"}, True),
        ({"statement": "BLOCK 64 failed", "rule": "a < 1"}, {"statement": "BLOCK 64 failed", "rule": "a < 2"}, False),
        ({"statement": "Warps fail", "rule": "a < 1"}, {"statement": "Blocks fail", "rule": "a < 1"}, False),
        ({"statement": "Keep small", "rule": "a < 1"}, {"statement": "keep small."}, True),
        ({"statement": "Same", "severity": "soft"}, {"statement": "Same", "severity": "hard"}, False),
        ({"statement": "Same", "scope": Scope(target="moe")}, {"statement": "Same"}, True),
        ({"statement": "Same", "scope": Scope(target="mla")}, {"statement": "Same"}, False),
    ],
)
def test_those_that_say_the_same_are_merged(first, second, merged):
    ids = chosen_ids([made("c1", time="2026-01-01", **first), made("c2", time="2026-01-02", **second)])
    assert (("c2", "c1") in ids) is merged


def test_a_merged_entry_speaks_as_the_most_recent_and_keeps_rule_and_rank():
    old = made("old", statement="Keep small", rule="a < 1", source="L1", architecture=True, time="2026-01-01")
    new = made("new", statement="keep small.", time="2026-01-02")
    (entry,) = select([old, new], HERE, budget=2000, encoding=O200K).chosen
    assert (entry.ids, entry.statement, entry.rule, entry.evidence) == (("new", "old"), "keep small.", "a < 1", "L1")


def test_one_without_a_rule_joins_only_the_most_recent_of_several_with_its_statement():
    constraints = [
        made("bare", statement="Same"),
        made("r1", statement="Same", rule="a < 1", time="2026-01-01"),
        made("r2", statement="Same", rule="a < 2", time="2026-01-02"),
    ]
    assert chosen_ids(constraints) == [("r2", "bare"), ("r1",)]
    elsewhere = [c.model_copy(update={"scope": Scope(target="mla")}) if c.id == "r2" else c for c in constraints]
    assert chosen_ids(elsewhere) == [("r1", "bare")]
