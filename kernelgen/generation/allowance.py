"""What a run may still ask of its model: the choice's budget, read from the log before every call.

One Allowance is shared by all candidates of a run, in as many threads, so that calls under way count too. Other
processes that use the same log are seen once their replies are in it.
"""

from __future__ import annotations

import threading

from kernelgen.config import LmConfig
from kernelgen.eventlog.store import EventLog
from kernelgen.events import Event, ReplyReceived
from kernelgen.lm import OverBudget, Spent, is_limited, over_budget
from kernelgen.lm.budget import KINDS


class Allowance:
    """The budget of one choice of `lm=` in one log."""

    def __init__(self, config: LmConfig) -> None:
        self._config = config
        self._lock = threading.Lock()
        self._spent = Spent(config.name)
        self._read_to = 0
        self._under_way: set[tuple[str, int]] = set()

    def refusal(self, log: EventLog) -> str | None:
        """The sentence that refuses any further call, or None."""
        if not is_limited(self._config):
            return None
        with self._lock:
            self._read(log)
            return over_budget(self._config, self._spent, len(self._under_way))

    def begin(self, log: EventLog, iteration_id: str, attempt: int) -> None:
        """One call is begun; it counts until its reply is in the log. Raises OverBudget."""
        if not is_limited(self._config):
            return
        with self._lock:
            self._read(log)
            refusal = over_budget(self._config, self._spent, len(self._under_way))
            if refusal:
                raise OverBudget(refusal)
            self._under_way.add((iteration_id, attempt))

    def unanswered(self, iteration_id: str, attempt: int) -> None:
        """The call that was begun brought no reply."""
        with self._lock:
            self._under_way.discard((iteration_id, attempt))

    def _read(self, log: EventLog) -> None:
        """Fold what the log has got since; inside the lock."""
        events: list[Event] = []
        for row in log.rows(kinds=KINDS, after=self._read_to):
            events.append(row.event)
            self._read_to = row.seq
        self._spent = self._spent.after(events)
        self._under_way -= {(e.iteration_id, e.attempt) for e in events if isinstance(e, ReplyReceived)}
