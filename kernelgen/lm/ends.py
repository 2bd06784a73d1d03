"""How asking a model can end without a usable reply, as the log's rows name it (`GenerationFailed.cause`)."""

from __future__ import annotations

from typing import Literal

from kernelgen.errors import GenerationError, ModelError, ReplyError
from kernelgen.records import Answer

Unanswering = Literal["timeout", "rate_limited", "context_overflow", "refused"]
Unusable = Literal["unusable_reply", "refused", "empty_reply"]
REFUSED = "content_filter"  # DSPy's finish reason for a reply that the model or its provider refused to give


class Unanswered(ModelError):
    """A ModelError that the log tells apart from the others by its `cause`."""

    def __init__(self, message: str, *, retryable: bool, cause: Unanswering) -> None:
        super().__init__(message, retryable=retryable)
        self.cause: Unanswering = cause


class OverBudget(GenerationError):
    """The choice's budget was used up before this generation had its reply."""


class UnusableReply(ReplyError):
    """The last reply of a generation, which could not be used; `cause` says what it was."""

    def __init__(self, reason: str, answer: Answer) -> None:
        super().__init__(reason)
        self.cause: Unusable = _cause_of(answer)


def is_refusal(answer: Answer) -> bool:
    """Whether the model or its provider refused; asking again in the same words costs the same and gives the same."""
    return answer.finish_reason == REFUSED


def _cause_of(answer: Answer) -> Unusable:
    if is_refusal(answer):
        return "refused"
    return "unusable_reply" if answer.text.strip() else "empty_reply"
