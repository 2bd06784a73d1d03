"""DSPy's own clients, one a door: which one speaks a choice's wire, and how it is set up.

All of them are native to DSPy (`dspy.lm15`); none needs litellm or a vendor's package. Each refuses what its wire
cannot carry as asked instead of leaving it out, so that the parameters in the log are those the model was given.
`answered` tells a reply of the wire from other JSON, such as a gateway's page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import urlsplit

from dspy.lm15 import AnthropicLM, GeminiLM, OpenAIChatCompat, OpenAIChatLM

from kernelgen.config import LmConfig

OPENAI_HOST = "api.openai.com"
REFUSE: Final = "refuse"  # DSPy's policy for a setting that would be dropped or changed

_REPLY_FIELD: Final[Mapping[str, str]] = MappingProxyType(
    {"openai_compatible": "choices", "anthropic": "content", "gemini": "candidates"}
)
_PREFIX: Final[Mapping[str, str]] = MappingProxyType(
    {"openai_compatible": "openai/", "anthropic": "anthropic/", "gemini": "gemini/"}
)
"""DSPy's names for the wires."""


def client(config: LmConfig, key: str) -> Any:
    """The client of a choice, not yet connected. The key is in it alone; its representation leaves the key out."""
    return _MAKERS[config.door](config, key)


def dspy_name(config: LmConfig) -> str:
    """The model's name as DSPy writes it."""
    return _PREFIX[config.door] + config.model


def answered(config: LmConfig, data: Mapping[str, Any] | None) -> bool:
    """Whether the JSON that came back is a reply of this wire; an Anthropic one may have no content."""
    field = _REPLY_FIELD[config.door]
    return data is not None and (bool(data.get(field)) or (config.door == "anthropic" and field in data))


def _chat(config: LmConfig, key: str) -> OpenAIChatLM:
    return OpenAIChatLM(api_key=key, base_url=config.api_base, compat=_compat(config), adaptations=REFUSE)


def _compat(config: LmConfig) -> OpenAIChatCompat | None:
    """OpenAI's newer models want `max_completion_tokens`; many other servers only know `max_tokens`."""
    if config.dialect is not None:
        return OpenAIChatCompat.preset(config.dialect)
    if urlsplit(config.api_base or "").hostname == OPENAI_HOST:
        return None
    return OpenAIChatCompat(max_tokens_field="max_tokens")


def _anthropic(config: LmConfig, key: str) -> AnthropicLM:
    return AnthropicLM(api_key=key, base_url=config.api_base, adaptations=REFUSE)


def _gemini(config: LmConfig, key: str) -> GeminiLM:
    return GeminiLM(api_key=key, base_url=config.api_base, adaptations=REFUSE)


_MAKERS: Final[Mapping[str, Callable[[LmConfig, str], Any]]] = MappingProxyType(
    {"openai_compatible": _chat, "anthropic": _anthropic, "gemini": _gemini}
)
