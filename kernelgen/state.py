"""The state vector: a fold over the events of one target on one hardware.

It stands at the lowest state that has not used up its failures. A failure is a generation without a candidate (the
playbook had none, or no reply could be used) or a verdict with a failed or suspect level, counted once a generation
however often it is judged; whatever else kept a model from answering, and a run that was killed, say nothing about the
approach and count as nothing. What a promotion does is the policy's choice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from kernelgen.config import Policy
from kernelgen.events import CandidateGenerated, Event, GenerationFailed, VerdictReached
from kernelgen.records import Attempt, Position

KINDS = ("candidate_generated", "generation_failed", "verdict_reached")
LAST_STATE = 5
UNSEEN_SHAPES = "it won at the timed shapes and did not hold at shapes it had not seen"
"""All that is told of a failed L4: its own reason names held-out shapes, and this stands in prompts."""
_OF_THE_APPROACH = ("no_play", "unusable_reply", "empty_reply")
"""Causes of a failed generation that say something about its state."""


def position(
    events: Iterable[Event],
    *,
    target: str,
    hardware: str,
    policy: Policy,
    chosen: int | None,
    frozen: str | None,
    champions: Collection[str] | None = None,
) -> Position:
    """Where the vector stands after `events` (oldest first); `chosen` is the user's number, or None to follow it.

    `champions` are the candidates whose promotion stands: one that passed L4 against a champion that was none any more
    is not promoted. None takes every pass of L4 for a promotion.
    """
    attempts: dict[str, Attempt] = {}
    failing: dict[str, int] = {}  # state by iteration, so that a verdict given twice counts once
    for event in events:
        attempt = _attempt(event, attempts)
        if attempt is None:
            continue
        if attempt.outcome == "promoted" and champions is not None and attempt.iteration_id not in champions:
            attempt = attempt.model_copy(update={"outcome": "candidate"})
        attempts[attempt.iteration_id] = attempt
        failing.pop(attempt.iteration_id, None)
        if attempt.outcome in ("failed", "no_gain"):
            failing[attempt.iteration_id] = attempt.state
        elif attempt.outcome == "promoted":
            failing = _after_promotion(failing, attempt.state, policy)
    failures = Counter(failing.values())
    vector = next((n for n in range(LAST_STATE + 1) if failures[n] < policy.failures_before_advancing), None)
    shown = list(attempts.values())[len(attempts) - min(len(attempts), policy.attempts_shown) :]
    return Position(
        target=target,
        hardware=hardware,
        state=vector if chosen is None else chosen,
        chosen_by="vector" if chosen is None else "user",
        failures={str(n): failures[n] for n in sorted(failures) if failures[n]},
        attempts=tuple(shown),
        attempts_total=len(attempts),
        frozen=frozen,
    )


def _after_promotion(failing: dict[str, int], state: int, policy: Policy) -> dict[str, int]:
    if policy.after_promotion == "restart":
        return {}
    return {iteration_id: n for iteration_id, n in failing.items() if n != state}


def _attempt(event: Event, known: dict[str, Attempt]) -> Attempt | None:
    """The attempt as it stands after this event, or None when the event says nothing about one."""
    if isinstance(event, CandidateGenerated):
        return Attempt(
            iteration_id=event.iteration_id,
            state=event.state,
            outcome="candidate",
            reason=event.hypothesis,
            configs=event.configs,
        )
    if isinstance(event, GenerationFailed) and event.cause in _OF_THE_APPROACH:
        return Attempt(iteration_id=event.iteration_id, state=event.state, outcome="failed", reason=event.reason)
    if isinstance(event, VerdictReached) and event.state is not None:
        return _judged(event, event.state, known.get(event.iteration_id))
    return None


def _judged(event: VerdictReached, state: int, before: Attempt | None) -> Attempt:
    failed = event.verdict.refused()
    configs = before.configs if before else ""
    if failed is not None:
        return Attempt(
            iteration_id=event.iteration_id,
            state=state,
            outcome="no_gain" if failed.level in ("L3", "L4") else "failed",
            reason=UNSEEN_SHAPES if failed.level == "L4" else failed.reason,
            level=failed.level,
            configs=configs,
        )
    promoted = event.highest == "L4"
    reason = before.reason if before else ""
    return Attempt(
        iteration_id=event.iteration_id,
        state=state,
        outcome="promoted" if promoted else "candidate",
        reason=reason,
        level=event.highest,
        configs=configs,
    )
