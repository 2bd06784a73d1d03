"""The engine that speaks to an OpenAI-compatible endpoint, through DSPy's own chat completions client.

One call of `complete` is one attempt; `dspy.LM` owns the retries. Added to DSPy's client are the bounds it does not
have: on the time of a whole reply, on its size, and on the wait a provider may ask for. It also sends the config's
sampling parameters where a request has none of its own. Not bounded: response headers trickled byte by byte, which end
at the client's 64 KiB.
"""

from __future__ import annotations

import builtins
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Protocol
from urllib.parse import urlsplit

from dspy.lm15 import (
    Config,
    LM15Error,
    OpenAIChatCompat,
    OpenAIChatLM,
    ProviderError,
    Request,
    Response,
    TimeoutError,
    TransportError,
)

from kernelgen.config import LmConfig
from kernelgen.errors import ModelError
from kernelgen.lm.answer import parameters
from kernelgen.lm.engines import SharedEngine
from kernelgen.lm.limits import CONNECT_SECONDS, LARGEST_REPLY_BYTES, LONGEST_WAIT_SECONDS

OPENAI_HOST = "api.openai.com"
PREFIX = "openai/"  # DSPy's name for this wire
_UNREADABLE = (TypeError, ValueError, KeyError, AttributeError, IndexError, OverflowError, RecursionError)


class Transport(Protocol):
    """What DSPy's client sends requests through."""

    def stream(self, request: Any) -> Any:
        """Send the request; the response is a context manager over its body."""


class WireEngine(SharedEngine):
    """One endpoint, one model, one key. The key is in the client only, whose representation leaves it out."""

    def __init__(self, config: LmConfig, key: str) -> None:
        self.name = PREFIX + config.model
        self._config = config
        self._client = OpenAIChatLM(api_key=key, base_url=config.api_base, compat=_compat(config))
        self._client.transport = BoundedTransport(self._client.transport, config.timeout_s)

    def complete(self, request: Request) -> Response:
        """One attempt. Raises dspy.lm15 errors, or ModelError for what dspy must not try again."""
        asked = replace(request, model=self._config.model, config=self._sampled(request.config))
        try:
            response = self._client.complete(asked)
        except LM15Error as error:
            self._refuse_long_wait(error)
            if isinstance(error, TransportError) and _timed_out(error):
                raise TimeoutError("no byte arrived") from error
            raise
        except _UNREADABLE as error:  # the client reads valid JSON of a wrong shape without checking it
            raise ProviderError(f"malformed reply: {error}") from error
        if not (response.provider_data or {}).get("choices"):
            raise ModelError(
                f"What answers at {self._config.api_base} sent JSON that is no chat completion; check that lm.api_base "
                "ends where the provider's path for chat/completions begins, often in /v1.",
                retryable=False,
            )
        return response

    def _sampled(self, asked: Config) -> Config:
        unset = {name: value for name, value in parameters(self._config).items() if getattr(asked, name) is None}
        return replace(asked, **unset)

    def _refuse_long_wait(self, error: LM15Error) -> None:
        """dspy waits as long as a provider says, be it a day."""
        if error.retry_after is not None and error.retry_after > LONGEST_WAIT_SECONDS:
            raise ModelError(
                f"The model {self._config.model} asks to wait {error.retry_after:.0f} s before the next request, and "
                f"kernelgen waits {LONGEST_WAIT_SECONDS:.0f} s at most; try again then.",
                retryable=True,
            ) from error


class BoundedTransport:
    """A transport whose replies end after `timeout_s` seconds in all, or at LARGEST_REPLY_BYTES."""

    def __init__(self, inner: Transport, timeout_s: float) -> None:
        self._inner = inner
        self._timeout_s = timeout_s

    def stream(self, request: Any) -> BoundedReply:
        """Send the request; each read of the reply is bounded too, so a silent server ends as soon as a slow one."""
        deadline = time.monotonic() + self._timeout_s
        connect = min(self._timeout_s, CONNECT_SECONDS)
        bounded = replace(request, connect_timeout=connect, read_timeout=self._timeout_s, write_timeout=self._timeout_s)
        return BoundedReply(self._inner.stream(bounded), deadline)


class BoundedReply:
    """A transport's response, read under a deadline and a limit of size."""

    def __init__(self, inner: Any, deadline: float) -> None:
        self._inner = inner
        self._deadline = deadline
        self.status: int = inner.status
        self.reason: str = inner.reason
        self.headers: list[tuple[str, str]] = inner.headers
        self.http_version: str = inner.http_version

    def __enter__(self) -> BoundedReply:
        self._inner.__enter__()
        return self

    def __exit__(self, *raised: object) -> None:
        self._inner.__exit__(*raised)

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        for chunk in self._inner:
            size += len(chunk)
            if size > LARGEST_REPLY_BYTES:
                raise ModelError(
                    f"The provider's reply is larger than {LARGEST_REPLY_BYTES // 2**20} MiB; set lm.max_tokens, and "
                    "check what answers at lm.api_base.",
                    retryable=False,
                )
            if time.monotonic() > self._deadline:
                raise TimeoutError("the reply did not end")
            yield chunk

    def read(self) -> bytes:
        """The whole body."""
        return b"".join(self)


def _compat(config: LmConfig) -> OpenAIChatCompat | None:
    """OpenAI's newer models want `max_completion_tokens`; many other servers only know `max_tokens`."""
    if urlsplit(config.api_base or "").hostname == OPENAI_HOST:
        return None
    return OpenAIChatCompat(max_tokens_field="max_tokens")


def _timed_out(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, builtins.TimeoutError):
            return True
        error = error.__cause__
    return False
