"""L2 alone, with no policy asked, refuses what L0 refuses wherever a run can show it: L0 is not the only wall."""

from __future__ import annotations

import pytest

from tests.attacks.attack import Attack
from tests.attacks.corpus import attacks
from tests.attacks.ladder_run import Ladder, checks_of, refused
from tests.attacks.solver import Solver

PAST = [attack for attack in attacks() if attack.past_policy is not None and not attack.gpu]
HARMLESS = [attack for attack in attacks() if attack.wins_nothing]


@pytest.mark.parametrize("attack", PAST, ids=lambda attack: attack.name)
def test_level_2_alone_refuses_the_cheat(attack: Attack, ladder: Ladder, solver: Solver) -> None:
    before = solver.asked
    result = ladder.correctness(attack.subject(attack.asking(solver.port)))
    assert refused(result), result.reason
    assert attack.past_policy is not None
    assert any(check.startswith(attack.past_policy) for check in checks_of(result)), checks_of(result)
    assert solver.asked == before


@pytest.mark.parametrize("attack", HARMLESS, ids=lambda attack: attack.name)
def test_what_wins_nothing_earns_what_its_honest_part_earns(attack: Attack, ladder: Ladder) -> None:
    cheat, twin = (ladder.correctness(attack.subject(source)) for source in (attack.cheat, attack.twin))
    assert cheat.outcome == twin.outcome == "passed"
    assert cheat.details.keys() == twin.details.keys()
    assert "0.001" not in str(cheat.details)


def test_a_candidate_that_reaches_out_is_named(ladder: Ladder, solver: Solver) -> None:
    attack = next(attack for attack in PAST if attack.name == "D6-network")
    result = ladder.correctness(attack.subject(attack.asking(solver.port)))
    assert "process.reached_out" in checks_of(result)
