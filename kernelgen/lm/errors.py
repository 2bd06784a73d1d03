"""From what dspy raises to kernelgen's errors: one sentence each, with the mend and without secrets.

An error that kernelgen raised inside an engine comes back as itself. The provider's own words are quoted, shortened and
redacted; the original error may hold a key in its text, so raise the translated one `from None`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from kernelgen.config import LmConfig
from kernelgen.errors import HarnessError, KernelgenError, ModelError
from kernelgen.lm.ends import Unanswered, Unanswering
from kernelgen.lm.limits import CONNECT_SECONDS
from kernelgen.lm.secrets import redact, shown_variable

QUOTED_CHARACTERS = 240  # of the provider's words
READ_CHARACTERS = 4000  # of them, before anything is searched in
CONTEXT = "context_window_exceeded"
FILTERED = "filtered"
UNSUPPORTED = "unsupported_feature"

# how servers say, under no code of their own, that the prompt is too long
_TOO_LONG = re.compile(r"(?i)context (?:length|window|size)|maximum context|prompt is too long|too many tokens")
_FILTER_CODES: Final = frozenset(
    {
        *("content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation"),  # chat completions
        *("promptFeedback", "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"),  # Gemini
    }
)


@dataclass(frozen=True)
class _Kind:
    """What to say of one of dspy's error codes; `mend` may name fields of the config, and `key`, how to set the key."""

    said: str
    mend: str
    retryable: bool = False
    cause: Unanswering | None = None
    """Where the log tells it apart from the other errors."""


_KINDS: Final[Mapping[str, _Kind]] = MappingProxyType(
    {
        "rate_limit": _Kind(
            "takes no more requests for now", "wait a while and try again", retryable=True, cause="rate_limited"
        ),
        "server": _Kind("failed on the provider's side", "try again later", retryable=True),
        "timeout": _Kind(
            "did not answer in time",
            f"it has {CONNECT_SECONDS:.0f} s to accept the connection and lm.timeout_s={{timeout_s:g}} to reply: raise "
            "lm.timeout_s, or try again later",
            retryable=True,
            cause="timeout",
        ),
        "transport": _Kind(
            "cannot be reached, or broke off", "check lm.api_base, and that the server runs", retryable=True
        ),
        "auth": _Kind("does not accept the key", "{key}"),
        "billing": _Kind("is not paid for", "check the account's balance and quota with the provider"),
        CONTEXT: _Kind(
            "has no room for the prompt in its context",
            "choose a model with more, or lower lm.max_tokens",
            cause="context_overflow",
        ),
        FILTERED: _Kind(
            "was kept from answering by the provider's content filter",
            "choose another model or provider",
            cause="refused",
        ),
        UNSUPPORTED: _Kind("cannot be asked with one of the settings", "set that one of lm's to null"),
        "unsupported_model": _Kind("is not known there", "check lm.model"),
        "invalid_request": _Kind("does not take the request", "check lm.model, lm.api_base and the other lm settings"),
        "provider": _Kind("sent a reply that cannot be read", "check what answers at lm.api_base"),
    }
)
_UNKNOWN: Final = _Kind("could not be asked", "check the lm config")


def translate(error: BaseException, config: LmConfig) -> KernelgenError:
    """The kernelgen error for what asking the model raised.

    What kernelgen itself raised inside an engine (NoPlay, ModelError, …) is returned as it was; dspy's errors become a
    ModelError; anything else is a fault of kernelgen's own, a HarnessError.
    """
    import dspy
    from dspy.lm15 import LM15Error

    own = _raised_by_kernelgen(error)
    if own is not None:
        return own
    broken = isinstance(error, dspy.LMUnexpectedError)
    if broken or not isinstance(error, dspy.LMError | LM15Error):
        cause = error.__cause__ if broken and error.__cause__ is not None else error
        return HarnessError(
            f"Asking lm={config.name} broke kernelgen: {type(cause).__name__}{_quoted(str(cause), config)}; "
            "please report it."
        )
    kind = _KINDS.get(_code(error), _UNKNOWN)
    sentence = _sentence(error, kind, config)
    if kind.cause is not None:
        return Unanswered(sentence, retryable=kind.retryable, cause=kind.cause)
    return ModelError(sentence, retryable=kind.retryable)


def _raised_by_kernelgen(error: BaseException | None) -> KernelgenError | None:
    while error is not None and not isinstance(error, KernelgenError):
        error = error.__cause__
    return error


def _code(error: BaseException) -> str:
    """dspy's code of the error, made finer where it says only that the request was refused."""
    code = str(getattr(error, "code", ""))
    if code == "context_length":  # lm15's name for it
        return CONTEXT
    if code == "invalid_request":
        if getattr(error, "provider_code", None) in _FILTER_CODES:
            return FILTERED
        if _TOO_LONG.search(_message(error)):
            return CONTEXT
    return code


def _sentence(error: BaseException, kind: _Kind, config: LmConfig) -> str:
    status = getattr(error, "status", None)
    words = _message(error)
    said = words if status is None or f"HTTP {status}" in words else f"HTTP {status}: {words}"
    tried = f" in {config.retries + 1} tries" if kind.retryable and config.retries else ""
    where = f" at {config.api_base}" if config.api_base else ""
    mend = kind.mend.format(timeout_s=config.timeout_s, key=_key_mend(config))
    return f"The model {redact(config.model + where, config)} {kind.said}{tried}{_quoted(said, config)}; {mend}."


def _key_mend(config: LmConfig) -> str:
    if config.key_env is None:
        return "name the environment variable that holds it in lm.key_env"
    return f"put a valid one in the environment variable {shown_variable(config.key_env)}"


def _message(error: BaseException) -> str:
    """The provider's words, without the advice that lm15 appends to them."""
    return str(getattr(error, "message", error))[:READ_CHARACTERS].partition("\n\n")[0]


def _quoted(text: str, config: LmConfig) -> str:
    """The text in brackets, safe to show: one line, no control characters, no secrets, not too long."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text[:READ_CHARACTERS]).split())
    line = redact(line, config).rstrip(":. ")
    if len(line) > QUOTED_CHARACTERS:
        line = line[:QUOTED_CHARACTERS].rstrip() + "…"
    return f" ({line})" if line else ""
