"""Prices come from the config or from a dated list; what neither holds is unknown and said to be."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from kernelgen.config import LmConfig
from kernelgen.errors import ConfigError
from kernelgen.lm import check, price
from kernelgen.lm.prices import cost_usd

Config = Callable[..., LmConfig]
OPENAI = "https://api.openai.com/v1"
OWN = {"usd_per_million_input_tokens": 1.0, "usd_per_million_output_tokens": 3.0, "price_source": "my contract, 2026"}


@pytest.mark.parametrize("model", ["gpt-5", "gpt-5-2025-08-07"])
def test_a_listed_price_names_its_list_and_date(config: Config, model: str) -> None:
    found = price(config(api_base=OPENAI, model=model))
    assert (found.input, found.output) == (1.25, 10.0)
    assert re.search(r"litellm .*, \d{4}-\d{2}-\d{2}$", found.source)


@pytest.mark.parametrize(
    "changed",
    [
        {"api_base": OPENAI, "model": "gpt-5-from-next-year"},
        {"api_base": "http://127.0.0.1:8000/v1", "model": "gpt-5"},
        {"api_base": "https://gateway.example/v1", "model": "gpt-5"},
        {"api_base": "https://api.anthropic.com/v1", "model": "gpt-5"},
    ],
    ids=["model", "own server", "gateway", "other provider"],
)
def test_what_the_list_does_not_hold_is_unknown_and_says_so(config: Config, changed: dict[str, Any]) -> None:
    found = price(config(**changed))
    assert not found.known
    assert re.search(r"no price of gpt-5.* is known \(list of \d{4}-\d{2}-\d{2}\)", found.source)
    assert cost_usd(10, 10, config(**changed)) is None


def test_the_configs_own_price_comes_first(config: Config) -> None:
    own = config(api_base=OPENAI, model="gpt-5", **OWN)
    assert price(own).source == "my contract, 2026"
    assert cost_usd(1_000_000, 2_000_000, own) == pytest.approx(7.0)


def test_a_money_budget_without_prices_is_refused(config: Config) -> None:
    unpriced = {"api_base": "http://127.0.0.1:8000/v1", "model": "m", "max_usd": 1.0}
    with pytest.raises(ConfigError, match=r"lm\.max_usd needs prices, and no price of m is known"):
        check(config(**unpriced))
    check(config(**unpriced, **OWN))
