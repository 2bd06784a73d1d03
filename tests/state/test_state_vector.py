"""The state vector is a fold over events: what advances it, what does not, and what a promotion does."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from kernelgen.config import Policy
from kernelgen.events import CandidateGenerated, Event, GenerationFailed, RegionFrozen, RegionUnfrozen, VerdictReached
from kernelgen.freeze import frozen_why
from kernelgen.records import LevelResult, Position, Verdict
from kernelgen.state import position

PLACE = {"target": "mla_decode_fp8", "hardware": "h200"}


def policy(**changes: Any) -> Policy:
    values: dict[str, Any] = {
        "name": "test", "failures_before_advancing": 2, "after_promotion": "stay", "constraint_tokens": 2000,
        "encoding": "o200k_base", "reply_attempts": 3, "attempts_shown": 20, "minimum_effect": 0.01,
    }  # fmt: skip
    return Policy.model_validate({**values, **changes})


def candidate(iteration_id: str, state: int, configs: str = "") -> CandidateGenerated:
    return CandidateGenerated(
        **PLACE, iteration_id=iteration_id, state=state, attempt=1, hypothesis="wider loads", configs=configs,
        honoured=(), overridden=(), left_out=0, out="/x", files={},
    )  # fmt: skip


def failure(iteration_id: str, state: int, cause: str = "no_play") -> GenerationFailed:
    data = {**PLACE, "iteration_id": iteration_id, "state": state, "cause": cause, "reason": "nothing to play"}
    return GenerationFailed.model_validate(data)


def verdict(iteration_id: str, state: int, *levels: tuple[str, str], highest: str | None = None) -> VerdictReached:
    results = tuple(
        LevelResult.model_validate({"level": level, "outcome": outcome, "reason": f"{level} said so"})
        for level, outcome in levels
    )
    judged = Verdict(iteration_id=iteration_id, levels=results)
    return VerdictReached.model_validate(
        {**PLACE, "iteration_id": iteration_id, "state": state, "verdict": judged, "highest": highest}
    )


def where(*events: Event, chosen: int | None = None, **changes: Any) -> Position:
    return position(events, **PLACE, policy=policy(**changes), chosen=chosen, frozen=None)


def test_the_vector_begins_at_state_0_with_nothing_tried() -> None:
    found = where()
    assert (found.state, found.chosen_by, found.attempts, found.failures) == (0, "vector", (), {})


def test_the_vector_advances_after_as_many_failures_as_the_policy_says() -> None:
    assert where(failure("a", 0)).state == 0
    assert where(failure("a", 0), failure("b", 0)).state == 1
    assert where(failure("a", 0), failure("b", 0), failures_before_advancing=3).state == 0


def test_a_failed_level_is_a_failure_and_its_reason_is_kept() -> None:
    found = where(candidate("a", 0), verdict("a", 0, ("L0", "passed"), ("L1", "failed")))
    assert found.failures == {"0": 1}
    assert (found.attempts[0].outcome, found.attempts[0].level, found.attempts[0].reason) == (
        "failed",
        "L1",
        "L1 said so",
    )


def test_an_unreached_level_is_not_a_failure() -> None:
    found = where(candidate("a", 0), verdict("a", 0, ("L0", "passed"), ("L2", "inconclusive"), highest="L0"))
    assert (found.failures, found.attempts[0].outcome) == ({}, "candidate")


@pytest.mark.parametrize("cause", get_args(GenerationFailed.model_fields["cause"].annotation))
def test_only_what_says_something_about_the_approach_counts_as_a_failure(cause: str) -> None:
    counts = cause in ("no_play", "unusable_reply", "empty_reply")
    found = where(failure("a", 0, cause), failure("b", 0, cause))
    assert (found.state, found.attempts_total) == ((1, 2) if counts else (0, 0))


def test_a_candidate_judged_twice_fails_once_and_one_that_passes_later_does_not_fail() -> None:
    failing, passing = verdict("a", 0, ("L1", "failed")), verdict("a", 0, ("L1", "passed"), highest="L1")
    assert where(candidate("a", 0), failing, failing).failures == {"0": 1}
    assert where(candidate("a", 0), failing, passing).failures == {}


def test_a_regression_counts_as_a_failure_told_as_no_gain() -> None:
    found = where(candidate("a", 1), verdict("a", 1, ("L2", "passed"), ("L3", "failed")))
    assert (found.failures, found.attempts[0].outcome) == ({"1": 1}, "no_gain")


def test_after_a_promotion_the_vector_stays_or_restarts_as_the_policy_says() -> None:
    events = [failure("a", 0), failure("b", 0), failure("c", 1), candidate("d", 1)]
    events.append(verdict("d", 1, ("L3", "passed"), ("L4", "passed"), highest="L4"))
    assert (where(*events).state, where(*events).failures) == (1, {"0": 2})
    restarted = where(*events, after_promotion="restart")
    assert (restarted.state, restarted.failures) == (0, {})


def test_all_six_states_can_be_used_up() -> None:
    events = [failure(f"g{state}{n}", state) for state in range(6) for n in range(2)]
    assert where(*events).state is None


def test_a_number_from_the_user_overrides_the_vector_and_is_said() -> None:
    found = where(failure("a", 0), chosen=4)
    assert (found.state, found.chosen_by) == (4, "user")


def test_a_failure_in_a_later_state_does_not_move_the_vector_from_an_earlier_one() -> None:
    assert where(failure("a", 3), failure("b", 3)).state == 0


def test_only_the_latest_attempts_are_told_and_all_are_counted() -> None:
    found = where(*(candidate(f"g{n}", 0) for n in range(5)), attempts_shown=2)
    assert [attempt.iteration_id for attempt in found.attempts] == ["g3", "g4"]
    assert found.attempts_total == 5
    assert where(candidate("a", 0), attempts_shown=0).attempts == ()


def test_configs_that_were_tried_are_kept_after_the_verdict() -> None:
    found = where(candidate("a", 0, configs='{"k":[]}'), verdict("a", 0, ("L1", "failed")))
    assert found.attempts[0].configs == '{"k":[]}'


def test_a_region_is_frozen_until_it_is_unfrozen() -> None:
    frozen, unfrozen = RegionFrozen(**PLACE, why="at the floor"), RegionUnfrozen(**PLACE, why="new driver")
    assert frozen_why([]) is None
    assert frozen_why([frozen]) == "at the floor"
    assert frozen_why([frozen, unfrozen]) is None
    assert frozen_why([frozen, unfrozen, frozen]) == "at the floor"
