"""Every cheat of the corpus really wins against a judge as this field writes them: refusing it means something."""

from __future__ import annotations

import pytest
import torch

from tests.attacks.attack import Attack
from tests.attacks.corpus import attacks
from tests.attacks.naive_runs import Believed, NaiveJudge
from tests.attacks.solver import Solver

# what shares this machine may slow one side of a comparison
TIMING_TRIES = 4
FASTER = 0.75

HAS_GPU = torch.cuda.is_available()
CASES = [pytest.param(attack, id=attack.name, marks=[pytest.mark.gpu] if attack.gpu else []) for attack in attacks()]


@pytest.mark.parametrize("attack", CASES)
def test_the_naive_judge_accepts_the_cheat(attack: Attack, naive_judge: NaiveJudge, solver: Solver) -> None:
    if attack.gpu and not HAS_GPU:
        pytest.skip("needs a GPU")
    source = attack.asking(solver.port)
    believed = _tried(naive_judge, attack, source)
    if attack.naive.tries > 1 and not believed.accepted:
        pytest.skip(f"a matter of luck, and none of {attack.naive.tries} tries had it")
    assert believed.accepted, believed.output
    if attack.faster:
        assert _is_measured_faster(naive_judge, attack, source)


def _tried(judge: NaiveJudge, attack: Attack, source: str) -> Believed:
    """The first acceptance within the tries that the cheat may need, or the last refusal."""
    believed = judge.ask(attack, source)
    for _ in range(attack.naive.tries - 1):
        if believed.accepted:
            break
        believed = judge.ask(attack, source)
    return believed


def _is_measured_faster(judge: NaiveJudge, attack: Attack, source: str) -> bool:
    """Whether the judge is told a shorter time for the cheat than for its twin."""
    for _ in range(TIMING_TRIES):
        cheat, twin = judge.ask(attack, source), judge.ask(attack, attack.twin)
        assert twin.accepted, twin.output
        assert cheat.milliseconds is not None
        if twin.milliseconds is not None and cheat.milliseconds < FASTER * twin.milliseconds:
            return True
    return False
