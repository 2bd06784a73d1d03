"""The real ladder refuses every cheat of the corpus at the level that must see it, and lets every honest twin pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelgen.candidates import read_header
from kernelgen.ladder.subject import Goal
from tests.attacks import goals
from tests.attacks.attack import Attack
from tests.attacks.corpus import attacks, files, kinds
from tests.attacks.d7_false_header import CHEATS, TWIN, FalseHeader
from tests.attacks.ladder_run import Ladder
from tests.attacks.verdicts import has_passed, header_checks, is_as_expected, see, target_refusals, why_not_yet

CORPUS = attacks()
TWINS = list({(attack.twin, attack.goal.name, attack.dsl): attack for attack in CORPUS}.values())
SOUND = (
    *(goals.SCALE_ADD, goals.ROW_SOFTMAX, goals.MATMUL, goals.MATMUL_FP8, goals.HISTOGRAM),
    *(goals.SEGMENT_SUM, goals.ROW_STATS, goals.DECAY_SUM),
)
NUMBERS = {"A": 15, "B": 9, "C": 14, "D": 7}


@pytest.mark.parametrize("attack", CORPUS, ids=lambda attack: attack.name)
def test_the_ladder_refuses_the_cheat(attack: Attack, ladder: Ladder) -> None:
    seen = see(ladder, attack, attack.cheat)
    later = why_not_yet(attack, seen)
    if later is not None:
        pytest.skip(later)
    assert is_as_expected(attack, seen), f"{seen.level or 'passed'}: {seen.checks}: {seen.reason}"


@pytest.mark.parametrize("attack", TWINS, ids=lambda attack: attack.name)
def test_the_ladder_lets_the_honest_twin_pass(attack: Attack, ladder: Ladder) -> None:
    seen = see(ladder, attack, attack.twin)
    assert has_passed(attack, seen), f"{seen.level}: {seen.checks}: {seen.reason}"


@pytest.mark.parametrize("cheat", CHEATS, ids=lambda cheat: cheat.name)
def test_a_reader_of_headers_believes_the_lie(cheat: FalseHeader) -> None:
    said, true = read_header(cheat.cheat), read_header(TWIN)
    assert said.keys() == true.keys()
    assert cheat.check == "header.model_part" or said[cheat.key] != true[cheat.key]


@pytest.mark.parametrize("cheat", CHEATS, ids=lambda cheat: cheat.name)
def test_a_header_that_lies_is_refused(cheat: FalseHeader) -> None:
    assert cheat.check in header_checks(cheat)


def test_a_true_header_is_not() -> None:
    assert header_checks(None) == ()


@pytest.mark.parametrize("goal", SOUND, ids=lambda goal: goal.name)
def test_the_corpus_own_targets_are_worth_passing(goal: Goal) -> None:
    assert target_refusals(goal) == ()


def test_every_kind_that_is_known_has_an_attack() -> None:
    wanted = {f"{part}{number}" for part, count in NUMBERS.items() for number in range(1, count + 1)}
    assert {attack.id for attack in CORPUS} | {"D7"} == wanted == set(kinds())


def test_a_file_is_named_after_its_kind() -> None:
    for file in files():
        assert Path(file).read_text(encoding="utf-8").startswith(f'"""{file.stem.partition("_")[0].upper()}, ')


def test_no_two_attacks_have_one_name() -> None:
    names = [attack.name for attack in CORPUS]
    assert len(set(names)) == len(names)


def test_a_cheat_is_not_its_twin() -> None:
    assert [attack.name for attack in CORPUS if attack.cheat == attack.twin] == []
