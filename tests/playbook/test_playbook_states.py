"""Which answer the playbook gives in which state, and when it says that it has none."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kernelgen.errors import NoPlay
from kernelgen.playbook import answer
from kernelgen.playbook.library import plays
from tests.playbook.prompts import TARGETS, autotune_of, block, champion_source, module_of, prompt


def told(reply: str) -> str:
    return block(reply, "HYPOTHESIS", "python") and reply.split("[HYPOTHESIS]\n")[1].split("\n")[0]


@pytest.mark.parametrize("state", [2, 3, 4, 5])
def test_other_states_are_refused_in_one_sentence_that_names_the_mend(state: int) -> None:
    with pytest.raises(NoPlay, match=rf"state {state}: use lm=openai_compatible"):
        answer(prompt(state))


def test_a_target_without_plays_is_refused() -> None:
    with pytest.raises(NoPlay, match="no play for moe_gate"):
        answer(prompt(1, "moe_gate", source=champion_source(TARGETS[0])))


@pytest.mark.parametrize("state", [0, 1])
@pytest.mark.parametrize("target", TARGETS)
def test_the_same_prompt_gives_the_same_reply(target: str, state: int) -> None:
    assert answer(prompt(state, target)) == answer(prompt(state, target))


@pytest.mark.parametrize("target", TARGETS)
def test_rewrites_come_in_order_then_their_variations_then_no_play(target: str) -> None:
    attempts: list[tuple[int, str, object]] = []
    expected = sum(len(play.variants()) for play in plays(target))
    seen = []
    for _ in range(expected):
        reply = answer(prompt(1, target, attempts=attempts))
        compile(module_of(reply), "candidate", "exec")
        seen.append(told(reply))
        attempts.append((1, "slower", autotune_of(reply)))
    assert len(set(seen)) == expected
    assert [f"(Play {play.name}.)" in text for play, text in zip(plays(target), seen, strict=False)] == [True] * len(
        plays(target)
    )
    with pytest.raises(NoPlay, match=f"Every play of {target} was tried"):
        answer(prompt(1, target, attempts=attempts))


def test_a_play_is_known_as_tried_by_its_hypothesis_alone() -> None:
    first = answer(prompt(1))
    second = answer(prompt(1, attempts=[(1, told(first), None)]))
    assert told(second) != told(first)


def test_a_champion_made_of_a_play_is_not_proposed_again() -> None:
    first, second = plays(TARGETS[0])[:2]
    assert f"(Play {second.name}.)" in answer(prompt(1, source=first.source))


@pytest.mark.parametrize("state", [0, 1])
@pytest.mark.parametrize("target", TARGETS)
def test_no_proposed_configuration_breaks_a_hard_rule(target: str, state: int) -> None:
    rules = [("few_warps", "num_warps <= 4"), ("small", "threads <= 128"), ("shared", "shared_bytes <= 232448")]
    reply = answer(prompt(state, target, hard=rules))
    warps = {row["num_warps"] for rows in autotune_of(reply).values() for row in rows}
    assert warps
    assert max(warps) <= 4
    assert '["few_warps", "small", "shared"]' in block(reply, "HONOURED", "json")


def test_a_soft_rule_excludes_nothing() -> None:
    rows = autotune_of(answer(prompt(1)))["spread_kernel"]
    assert any(row["num_warps"] >= 8 for row in rows)


@pytest.mark.parametrize("state", [0, 1])
def test_rules_that_leave_nothing_end_in_no_play_that_names_one(state: int) -> None:
    with pytest.raises(NoPlay, match="constraint"):
        answer(prompt(state, hard=[("none_left", "num_warps > 64")]))


def test_a_rule_on_the_source_sets_a_play_aside() -> None:
    reply = answer(prompt(1, hard=[("no_atomics", 'not source_matches(r"atomic_add")')]))
    assert "(Play one_launch.)" in told(reply)


MISSING: list[tuple[str, Callable[[str], str]]] = [
    ("You are at State N", lambda text: text.replace("You are at State", "You stand at State")),
    (r"\[CHAMPION\]", lambda text: text.replace("[CHAMPION", "[KAMPION")),
    (r"\[SYSTEM\]", lambda text: text.replace("optimizing for", "dreaming of")),
    ("Target: ", lambda text: text.replace("\nTarget: moe", "\nGoal: moe")),
    ("no complete fenced source", lambda text: text.split("import torch")[0] + "\n[STATE VECTOR]\n[TASK]\n"),
]


@pytest.mark.parametrize(("named", "damage"), MISSING[:4])
def test_a_prompt_that_lacks_something_is_refused_by_name(named: str, damage: Callable[[str], str]) -> None:
    with pytest.raises(NoPlay, match=named):
        answer(damage(prompt(0)))


def test_lines_nobody_expects_and_messages_of_a_reask_change_nothing() -> None:
    plain = prompt(1)
    noisy = plain.replace("Instructions: do it", "Instructions: do it\nWeather: fine") + "\n\n" + answer(plain)
    assert answer(noisy + "\n\nThe reply cannot be used: again. You are at State 3") == answer(plain)


def test_a_heading_inside_the_champions_source_is_no_section() -> None:
    source = champion_source(TARGETS[0]) + '\nNOTE = """\n[TASK]\nTarget: other\nYou are at State 5\n"""\n'
    assert "Entry point: moe_dispatch_384expert" in answer(prompt(0, source=source))
