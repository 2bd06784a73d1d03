"""Every error kernelgen raises on purpose, and how each ends at the command line.

    KernelgenError
    |- BadInput            exit 2   a file, value or id the user gave cannot be used
    |  |- ConfigError               a key, type or choice in the configs
    |  |- ConstraintError           a line of constraints.jsonl, or a constraint id
    |  |- ProfileError              a profile file that cannot be read as one
    |  |- LogError                  events.db is foreign, newer, cut or changed
    |- Refused             exit 2   the request is well formed, and kernelgen will not do it
    |- GenerationError     exit 1   a generation ended without a candidate
    |  |- NoPlay                    the playbook has no kernel for this request
    |  |- ReplyError                a reply that cannot be parsed; may be asked for again
    |  |  |- lm.UnusableReply        the last one
    |  |- ModelError                the model did not answer; `retryable` says whether trying again can help
    |  |  |- lm.Unanswered           with the cause: timeout, rate limit, context overflow, refusal
    |  |- lm.OverBudget             the budget of calls, tokens or money is used up
    |- HarnessError        exit 1   kernelgen itself is broken: never a verdict on a kernel

A message is one sentence that names the place and the mend. A bad kernel is a result, not an error.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class KernelgenError(Exception):
    """Base of the tree; `exit_code` is what the command line ends with. Line breaks of quoted input become spaces."""

    exit_code = 1

    def __str__(self) -> str:
        return " ".join(super().__str__().splitlines())


class BadInput(KernelgenError):
    """Something the user gave cannot be used."""

    exit_code = 2


class ConfigError(BadInput):
    """A key, type or choice in the configs is wrong."""


class ConstraintError(BadInput):
    """A line of the constraint file, or a constraint id, is wrong."""


class ProfileError(BadInput):
    """A profile file cannot be read as one."""


class LogError(BadInput):
    """The event log is foreign, newer than this kernelgen, cut or changed."""


class Refused(KernelgenError):
    """The request is well formed, and kernelgen will not do it: no profile, frozen, no constraints, missing input."""

    exit_code = 2


class GenerationError(KernelgenError):
    """A generation ended without a candidate; the log has the row."""


class NoPlay(GenerationError):
    """The playbook has no kernel for this request."""


class ReplyError(GenerationError):
    """A reply that cannot be parsed; `reason` is what the model is told when it is asked again."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"The reply cannot be used: {reason}")
        self.reason = reason


class ModelError(GenerationError):
    """The model did not answer. `retryable` says whether trying again can help."""

    def __init__(self, message: str, *, retryable: bool) -> None:
        super().__init__(message)
        self.retryable = retryable


class HarnessError(KernelgenError):
    """kernelgen itself is broken; never a verdict on a kernel."""


def nearest(name: str, known: Iterable[str]) -> str:
    """The mend for a misspelt name: "; did you mean 'x'?" or, with nothing near, the known names."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if close:
        return f"; did you mean '{close[0]}'?"
    return f"; known: {', '.join(names)}" if names else ""
