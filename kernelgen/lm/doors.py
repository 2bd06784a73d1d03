"""From an `lm=` choice to a `dspy.LM`: one function a door, and the checks that come before.

Every LM has DSPy's cache off (the event log is the cache) and answers through an engine of kernelgen's own, so that
litellm is never imported, nothing is fetched to build one, and no key becomes part of the LM's state. There is no
fallback from one door to another.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from kernelgen.config import LmConfig
from kernelgen.errors import ConfigError, HarnessError
from kernelgen.lm.answer import parameters
from kernelgen.lm.prices import price
from kernelgen.lm.secrets import check_no_secret, read_key
from kernelgen.records import Answer

if TYPE_CHECKING:
    import dspy

HIGHEST_TEMPERATURE: Final[Mapping[str, float]] = MappingProxyType({"anthropic": 1.0})
"""By door, where it is not the usual one."""
USUAL_HIGHEST_TEMPERATURE: Final = 2.0
WIRES: Final = ("openai_compatible", "anthropic", "gemini")
"""Doors that open a connection."""
EXAMPLE_BASE: Final = "http://127.0.0.1:8000/v1"


def check(config: LmConfig) -> None:
    """Raise what is wrong with the config itself; offline, and without loading dspy.

    To be called before the config is logged: one that holds a credential is refused here.
    """
    check_no_secret(config)
    if not config.model.strip() or config.model != config.model.strip("/ "):
        raise ConfigError(f"lm.model is {config.model!r}: give the model's name at the provider.")
    _check_sampling(config)
    if config.max_usd is not None and not price(config).known:
        raise ConfigError(
            f"lm.max_usd needs prices, and {price(config).source}: set lm.usd_per_million_input_tokens, "
            "lm.usd_per_million_output_tokens and lm.price_source, or limit lm.max_total_tokens instead."
        )
    if config.door not in WIRES:
        return
    if config.api_base is None:
        raise ConfigError(f"lm={config.name} needs lm.api_base, as in lm.api_base={EXAMPLE_BASE}.")
    if not _is_endpoint(config.api_base):
        raise ConfigError(f"lm.api_base is {config.api_base!r}: it begins with http:// or https://, a host and a port.")


def _check_sampling(config: LmConfig) -> None:
    highest = HIGHEST_TEMPERATURE.get(config.door, USUAL_HIGHEST_TEMPERATURE)
    if config.temperature is not None and not 0 <= config.temperature <= highest:
        raise ConfigError(f"lm.temperature is {config.temperature:g}: it lies between 0 and {highest:g}.")
    if config.door != "anthropic":
        return
    if config.seed is not None:
        raise ConfigError("lm.seed is set, and Anthropic's interface takes no seed: set it to null.")
    if config.reasoning_effort not in (None, "off") and config.temperature not in (None, 1):
        raise ConfigError(
            f"lm.temperature is {config.temperature:g}: with lm.reasoning_effort Anthropic's models take null or 1."
        )


def build(
    config: LmConfig,
    *,
    recorded: Callable[[str], Answer | None] | None = None,
    play: Callable[[str], str] | None = None,
) -> dspy.LM:
    """The language model behind a choice.

    `recorded` maps a request key to the logged answer, or None; door `recorded` needs it. `play` maps the whole prompt
    text to a reply; door `playbook` needs it. Raises ConfigError or BadInput for a config or an environment that cannot
    work. No request is made here.
    """
    check(config)
    _keep_dspy_offline()
    if config.door == "playbook":
        return _playbook(config, play)
    if config.door == "recorded":
        return _recorded(config, recorded)
    return _wire(config)


def _is_endpoint(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # what urlsplit says to brackets and ports that are none
        return False


def _playbook(config: LmConfig, play: Callable[[str], str] | None) -> dspy.LM:
    import dspy

    from kernelgen.lm.engines import PlaybookEngine

    if play is None:
        raise HarnessError("lm=playbook was built without its play function.")
    return dspy.LM(config.model, engine=PlaybookEngine(config.model, play), cache=False, num_retries=0)


def _recorded(config: LmConfig, recorded: Callable[[str], Answer | None] | None) -> dspy.LM:
    import dspy

    from kernelgen.lm.engines import RecordedEngine

    if recorded is None:
        raise HarnessError("lm=recorded was built without a log to answer from.")
    engine = RecordedEngine(config.model, parameters(config), recorded)
    return dspy.LM(config.model, engine=engine, cache=False, num_retries=0)


def _wire(config: LmConfig) -> dspy.LM:
    import dspy

    from kernelgen.lm.wire import WireEngine

    engine = WireEngine(config, read_key(config))
    try:
        return dspy.LM(engine.name, engine=engine, cache=False, num_retries=config.retries, **parameters(config))
    except dspy.LMConfigurationError:
        raise ConfigError(
            f"The model {config.model} is a reasoning model of OpenAI's: set lm.temperature to null or 1, and "
            "lm.max_tokens to null or at least 16000."
        ) from None


def _keep_dspy_offline() -> None:
    """Set before dspy is first used: it would fetch litellm's price list for questions kernelgen never asks."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    # whoever parses a truncated reply reports it; dspy's own line tells of things kernelgen does not have
    logging.getLogger("dspy.clients.lm").setLevel(logging.ERROR)
