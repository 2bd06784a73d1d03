"""What a choice of `lm=` has taken, folded from the log, and whether its budget allows one more call.

A budget is the choice's, in one log: replies of other choices do not count, and a new log begins at nothing. Replies
whose tokens or price the provider did not say add nothing to those sums; they are counted apart and named. A limit is
looked at before each call: calls that are under way then still end, so that tokens and money can pass their limit by
what those take.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from kernelgen.config import LmConfig
from kernelgen.events import Event, GenerationRequested, ReplyReceived

KINDS = ("generation_requested", "reply_received")
"""The events a budget is folded from."""


@dataclass(frozen=True)
class Spent:
    """What one choice's replies took, and which generations are its own."""

    lm: str
    """The choice's name."""
    calls: int = 0
    """Replies received."""
    tokens: int = 0
    """Input and output tokens, as far as they were counted."""
    usd: float = 0.0
    """Cost, as far as prices were known."""
    uncounted: int = 0
    """Replies whose tokens were not counted."""
    unpriced: int = 0
    """Replies whose cost is unknown."""
    generations: frozenset[str] = frozenset()
    """Iterations that were asked of this choice."""

    def after(self, events: Iterable[Event]) -> Spent:
        """What was spent after these events too, in the log's order; others than KINDS change nothing."""
        own, replies = set(self.generations), []
        for event in events:
            if isinstance(event, GenerationRequested) and event.lm == self.lm:
                own.add(event.iteration_id)
            elif isinstance(event, ReplyReceived) and event.iteration_id in own:
                replies.append(event.usage)
        return replace(
            self,
            calls=self.calls + len(replies),
            tokens=self.tokens + sum((usage.input_tokens or 0) + (usage.output_tokens or 0) for usage in replies),
            usd=self.usd + sum(usage.cost_usd or 0.0 for usage in replies),
            uncounted=self.uncounted + sum(None in (usage.input_tokens, usage.output_tokens) for usage in replies),
            unpriced=self.unpriced + sum(usage.cost_usd is None for usage in replies),
            generations=frozenset(own),
        )

    def __str__(self) -> str:
        """In a phrase; what is unknown is said to be unknown."""
        tokens = f"{self.tokens} tokens" + (f" ({self.uncounted} replies uncounted)" if self.uncounted else "")
        money = f"{self.usd:.4g} USD" + (f" ({self.unpriced} replies of unknown price)" if self.unpriced else "")
        return f"{self.calls} replies, {tokens}, {money}"


def is_limited(config: LmConfig) -> bool:
    """Whether the choice has a budget at all."""
    return any(limit is not None for limit in (config.max_calls, config.max_total_tokens, config.max_usd))


def over_budget(config: LmConfig, spent: Spent, under_way: int = 0) -> str | None:
    """The sentence that refuses one more call, or None where the budget allows it.

    `under_way` is how many calls were begun and have no reply in the log yet.
    """
    limits = (
        ("max_calls", config.max_calls, spent.calls + under_way),
        ("max_total_tokens", config.max_total_tokens, spent.tokens),
        ("max_usd", config.max_usd, spent.usd),
    )
    for name, limit, used in limits:
        if limit is not None and used >= limit:
            return (
                f"The budget lm.{name}={limit} of lm={config.name} is used up in this log: {spent}; raise it, or "
                "begin another log with events=FILE."
            )
    return None
