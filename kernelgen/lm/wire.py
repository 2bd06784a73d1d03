"""The engine that speaks to a provider or a server, through DSPy's own client for its wire.

One call of `complete` is one attempt; `dspy.LM` owns the retries. Added to DSPy's clients are the bounds they do not
have: on the time of a whole reply, on its size, and on the wait a provider may ask for. What the model said arrives as
one text in which known keys are hidden, before anything logs, parses or shows it. The engine also sends the config's
sampling parameters where a request has none of its own. Not bounded: response headers trickled byte by byte, which end
at the client's 64 KiB.
"""

from __future__ import annotations

import builtins
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Protocol

from dspy.lm15 import (
    Config,
    LM15Error,
    Message,
    ProviderError,
    Reasoning,
    Request,
    Response,
    TextPart,
    TimeoutError,
    TransportError,
)

from kernelgen.config import LmConfig
from kernelgen.errors import ModelError
from kernelgen.lm.answer import parameters, said
from kernelgen.lm.clients import answered, client, dspy_name
from kernelgen.lm.ends import Unanswered
from kernelgen.lm.engines import SharedEngine
from kernelgen.lm.limits import CONNECT_SECONDS, LARGEST_REPLY_BYTES, LONGEST_WAIT_SECONDS
from kernelgen.lm.secrets import redact_reply

_UNREADABLE = (TypeError, ValueError, KeyError, AttributeError, IndexError, OverflowError, RecursionError)


class Transport(Protocol):
    """What DSPy's client sends requests through."""

    def stream(self, request: Any) -> Any:
        """Send the request; the response is a context manager over its body."""


class WireEngine(SharedEngine):
    """One endpoint, one model, one key. The key is in the client only."""

    def __init__(self, config: LmConfig, key: str) -> None:
        self.name = dspy_name(config)
        self._config = config
        self._client = client(config, key)
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
        if not answered(self._config, response.provider_data):
            raise ModelError(
                f"What answers at {self._config.api_base} sent JSON that is no reply of a model; check that "
                "lm.api_base ends where the provider's own paths begin, often in /v1.",
                retryable=False,
            )
        return self._plain(response)

    def _sampled(self, asked: Config) -> Config:
        sampling = parameters(self._config)
        effort = sampling.pop("reasoning_effort", None)
        if effort is not None and asked.reasoning is None:
            asked = replace(asked, reasoning=Reasoning(effort=effort))
        return replace(asked, **{name: value for name, value in sampling.items() if getattr(asked, name) is None})

    def _plain(self, response: Response) -> Response:
        """The response with one text, safe to log: no key, no lone surrogate (no file or database takes one)."""
        text = redact_reply(said(response).encode("utf-8", "replace").decode("utf-8"), self._config)
        return Response(
            id=None,
            model=redact_reply(response.model, self._config),
            message=Message.assistant([TextPart(text)]),
            finish_reason=response.finish_reason,
            usage=response.usage,
        )

    def _refuse_long_wait(self, error: LM15Error) -> None:
        """dspy waits as long as a provider says, be it a day."""
        if error.retry_after is not None and error.retry_after > LONGEST_WAIT_SECONDS:
            raise Unanswered(
                f"The model {self._config.model} asks to wait {error.retry_after:.0f} s before the next request, and "
                f"kernelgen waits {LONGEST_WAIT_SECONDS:.0f} s at most; try again then.",
                retryable=True,
                cause="rate_limited",
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


def _timed_out(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, builtins.TimeoutError):
            return True
        error = error.__cause__
    return False
