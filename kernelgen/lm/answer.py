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
from kernelgen.records import Answer, Digest, Usage

if TYPE_CHECKING:
    import dspy.lm15

TOKENS_PER_PRICE = 1_000_000  # prices are in USD for this many tokens


def parameters(config: LmConfig) -> dict[str, float | int]:
    """The sampling parameters sent with every request: those that are set, and none to the playbook, which has none."""
    if config.door == "playbook":
        return {}
    known = {"temperature": config.temperature, "max_tokens": config.max_tokens, "seed": config.seed}
    return {name: value for name, value in known.items() if value is not None}


def request_key(model: str, parameters: Mapping[str, float | int], messages: Sequence[Mapping[str, str]]) -> Digest:
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
    in the log. A lone surrogate, which no file or database takes, becomes `?`. Reasoning is left out of the text.
    """
    parts = [part for part in response.message.parts if part.type in ("text", "refusal")]
    return Answer(
        text=_text(parts).encode("utf-8", "replace").decode("utf-8"),
        model=response.model,
        finish_reason=response.finish_reason,
        usage=Usage(
            input_tokens=response.usage.input_tokens,
            output_tokens=response.usage.output_tokens,
            cost_usd=_cost_usd(response.usage, config),
            seconds=seconds,
        ),
    )


def versions() -> dict[str, str]:
    """Versions a reply depends on: kernelgen, python, dspy. Reads package metadata only."""
    return {"kernelgen": kernelgen.__version__, "python": platform.python_version(), "dspy": version("dspy")}


def _text(parts: Sequence[dspy.lm15.TextPart]) -> str:
    return "".join(part.text for part in parts)


def _cost_usd(usage: dspy.lm15.Usage, config: LmConfig) -> float | None:
    """Tokens times the config's prices, or None where a price or a count it needs is unknown."""
    charges = (
        _charge_usd(usage.input_tokens, config.usd_per_million_input_tokens),
        _charge_usd(usage.output_tokens, config.usd_per_million_output_tokens),
    )
    known = [charge for charge in charges if charge is not None]
    return sum(known) if len(known) == len(charges) else None


def _charge_usd(tokens: int | None, price: float | None) -> float | None:
    if price == 0:
        return 0.0  # free however many tokens it took
    return None if tokens is None or price is None else tokens * price / TOKENS_PER_PRICE
