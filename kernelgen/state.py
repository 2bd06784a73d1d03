"""The state vector: a fold over the events of one target on one hardware.

It stands at the lowest state that has not used up its failures. A failure is a generation without a candidate (the
playbook had none, or no reply could be used) or a verdict with a failed level; a model that did not answer, and a run
that was killed, say nothing about the approach and count as nothing. What a promotion does is the policy's choice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from kernelgen.config import Policy
from kernelgen.events import CandidateGenerated, Event, GenerationFailed, VerdictReached
from kernelgen.records import Attempt, Position

KINDS = ("candidate_generated", "generation_failed", "verdict_reached")
LAST_STATE = 5
_SAYS_NOTHING = ("model_error", "interrupted")


def position(
    events: Iterable[Event],
    *,
    target: str,
    hardware: str,
    policy: Policy,
    chosen: int | None,
    frozen: str | None,
) -> Position:
    """Where the vector stands after `events` (oldest first); `chosen` is the user's number, or None to follow it."""
    attempts: dict[str, Attempt] = {}
    failures: Counter[int] = Counter()
    for event in events:
        attempt = _attempt(event, attempts)
        if attempt is None:
            continue
        attempts[attempt.iteration_id] = attempt
        if attempt.outcome in ("failed", "no_gain"):
            failures[attempt.state] += 1
        elif attempt.outcome == "promoted":
            failures = _after_promotion(failures, attempt.state, policy)
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


def _after_promotion(failures: Counter[int], state: int, policy: Policy) -> Counter[int]:
    if policy.after_promotion == "restart":
        return Counter()
    return Counter({n: count for n, count in failures.items() if n != state})


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
    if isinstance(event, GenerationFailed) and event.cause not in _SAYS_NOTHING:
        return Attempt(iteration_id=event.iteration_id, state=event.state, outcome="failed", reason=event.reason)
    if isinstance(event, VerdictReached):
        return _judged(event, known.get(event.iteration_id))
    return None


def _judged(event: VerdictReached, before: Attempt | None) -> Attempt | None:
    failed = event.verdict.failed()
    configs = before.configs if before else ""
    if failed is not None:
        return Attempt(
            iteration_id=event.iteration_id,
            state=event.state,
            outcome="no_gain" if failed.level in ("L3", "L4") else "failed",
            reason=failed.reason,
            level=failed.level,
            configs=configs,
        )
    promoted = event.highest == "L4"
    reason = before.reason if before else ""
    return Attempt(
        iteration_id=event.iteration_id,
        state=event.state,
        outcome="promoted" if promoted else "candidate",
        reason=reason,
        level=event.highest,
        configs=configs,
    )
