"""What the interpreter cannot see of the corpus, L2 sees on a GPU; needs neither pydantic nor a network."""

from __future__ import annotations

import pytest
import torch

from tests.attacks.attack import Attack
from tests.attacks.corpus import attacks
from tests.attacks.ladder_run import Ladder, checks_of, refused

# shared memory that was never written reads the same on every run: it takes a memory checker
NEEDS_CHECKER = "C2-read-before-written"
SEEN = [attack for attack in attacks() if attack.seen_on_gpu and attack.name != NEEDS_CHECKER]

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")]


@pytest.mark.parametrize("attack", SEEN, ids=lambda attack: attack.name)
def test_level_2_on_a_gpu_refuses_the_cheat(attack: Attack, ladder: Ladder) -> None:
    result = ladder.correctness(attack.subject(attack.cheat), device="cuda")
    assert refused(result), result.reason
    assert any(check.startswith(attack.checks) for check in checks_of(result)), checks_of(result)


@pytest.mark.parametrize("attack", SEEN, ids=lambda attack: attack.name)
def test_level_2_on_a_gpu_lets_the_honest_twin_pass(attack: Attack, ladder: Ladder) -> None:
    result = ladder.correctness(attack.subject(attack.twin), device="cuda")
    assert result.outcome == "passed", result.reason
