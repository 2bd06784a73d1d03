"""What was asked and what came back, as kernelgen records it.

`request_key` names a question: the same model, sampling parameters and messages have the same key, on every machine and
through every door; `lm=recorded` finds a reply by it. Nothing here imports dspy.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING

import kernelgen
from kernelgen.config import LmConfig
from kernelgen.ids import canonical_json, digest_text
from kernelgen.lm.prices import cost_usd
from kernelgen.records import Answer, Digest, Usage

if TYPE_CHECKING:
    import dspy.lm15

Parameters = Mapping[str, float | int | str]
_COUNTS_REASONING_APART = ("gemini",)
"""Doors whose output tokens leave out those of the reasoning, which are paid for as output."""


def parameters(config: LmConfig) -> dict[str, float | int | str]:
    """The sampling parameters sent with every request: those that are set, and none to the playbook, which has none."""
    if config.door == "playbook":
        return {}
    known = {
        "temperature": config.temperature,
        "max_tokens": config.max_tokens,
        "seed": config.seed,
        "reasoning_effort": config.reasoning_effort,
    }
    return {name: value for name, value in known.items() if value is not None}


def request_key(model: str, parameters: Parameters, messages: Sequence[Mapping[str, str]]) -> Digest:
    """Digest of one question; `messages` are `{"role", "content"}` in order."""
    asked = [{"role": message["role"], "content": message["content"]} for message in messages]
    return digest_text(canonical_json({"model": model, "parameters": dict(parameters), "messages": asked}))


def messages_of(request: dspy.lm15.Request) -> list[dict[str, str]]:
    """The request's texts as `{"role", "content"}`, the system text first: what `request_key` was made of."""
    texts = [{"role": message.role, "content": _text(message.parts)} for message in request.messages]
    if request.system is None:
        return texts
    system = request.system if isinstance(request.system, str) else _text(request.system)
    return [{"role": "system", "content": system}, *texts]


def to_answer(response: dspy.lm15.Response, config: LmConfig, seconds: float) -> Answer:
    """The response as an Answer; `seconds` is the wall time of the call, retries included.

    An empty reply is an Answer too, and so is a refusal, with the model's words for it: both were paid for and belong
    in the log.
    """
    output_tokens = response.usage.output_tokens
    if config.door in _COUNTS_REASONING_APART and output_tokens is not None:
        output_tokens += response.usage.reasoning_tokens or 0
    return Answer(
        text=said(response),
        model=response.model,
        finish_reason=response.finish_reason,
        usage=Usage(
            input_tokens=response.usage.input_tokens,
            output_tokens=output_tokens,
            cost_usd=cost_usd(response.usage.input_tokens, output_tokens, config),
            seconds=seconds,
        ),
    )


def said(response: dspy.lm15.Response) -> str:
    """All that the model said, a refusal too; its reasoning is left out."""
    return _text([part for part in response.message.parts if part.type in ("text", "refusal")])


def versions() -> dict[str, str]:
    """Versions a reply depends on: kernelgen, python, dspy. Reads package metadata only."""
    return {"kernelgen": kernelgen.__version__, "python": platform.python_version(), "dspy": version("dspy")}


def _text(parts: Sequence[dspy.lm15.TextPart]) -> str:
    return "".join(part.text for part in parts)
