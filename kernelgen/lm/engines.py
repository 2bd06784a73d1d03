"""Engines that answer within the process: the playbook's plays, and replies of the log.

Both are deterministic and keyless, and both see only what any model sees: the request's texts. An error a play raises
comes out of `dspy.LM` as the cause of dspy's own; `kernelgen.lm.translate` gives it back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dspy.lm15 import Message, Request, Response, TextPart, Usage

from kernelgen.errors import ModelError
from kernelgen.lm.answer import Parameters, messages_of, request_key
from kernelgen.records import Answer


class SharedEngine:
    """An engine that copies of its LM share: optimisers copy programs with all they hold."""

    def __deepcopy__(self, memo: dict[int, Any]) -> SharedEngine:
        return self


class PlaybookEngine(SharedEngine):
    """Answers with `play(prompt)`, the prompt being all texts of the request, joined by blank lines."""

    def __init__(self, model: str, play: Callable[[str], str]) -> None:
        self._model = model
        self._play = play

    def complete(self, request: Request) -> Response:
        """One reply; whatever `play` raises passes through."""
        prompt = "\n\n".join(message["content"] for message in messages_of(request))
        return _response(self._model, self._play(prompt), "stop", Usage())


class RecordedEngine(SharedEngine):
    """Answers with the logged reply to the same model, parameters and messages."""

    def __init__(self, model: str, parameters: Parameters, recorded: Callable[[str], Answer | None]) -> None:
        self._model = model
        self._parameters = parameters
        self._recorded = recorded

    def complete(self, request: Request) -> Response:
        """The logged reply; ModelError where there is none."""
        key = request_key(self._model, self._parameters, messages_of(request))
        answer = self._recorded(key)
        if answer is None:
            raise ModelError(
                f"The log has no reply of {self._model} to this prompt ({key}); use the lm.model, lm.temperature, "
                "lm.max_tokens, lm.seed and lm.reasoning_effort it was recorded with, or ask a model.",
                retryable=False,
            )
        usage = Usage(input_tokens=answer.usage.input_tokens, output_tokens=answer.usage.output_tokens)
        return _response(answer.model, answer.text, answer.finish_reason, usage)


def _response(model: str, text: str, finish_reason: str, usage: Usage) -> Response:
    message = Message.assistant([TextPart(text)])
    return Response(id=None, model=model, message=message, finish_reason=finish_reason, usage=usage)
