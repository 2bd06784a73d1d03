"""What a token costs: the config's own prices, or the dated snapshot of list prices in `prices.json`.

The snapshot speaks only for a provider's own host, never for a gateway or a server of the user's. A price it does not
hold is unknown and stays unknown: no cost is guessed from a similar name. List prices leave out the discounts for
cached input and batches and the surcharges for long prompts, so a cost is an estimate, not a bill.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from importlib import resources
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from kernelgen.config import LmConfig

TOKENS_PER_PRICE = 1_000_000  # prices are in USD for this many tokens
_DATED = re.compile(r"-(?:\d{4}-\d{2}-\d{2}|\d{8})$")  # a release of the model that the rest of the name prices


class Price(NamedTuple):
    """What a model costs, in USD for a million tokens; None where it is not known."""

    input: float | None
    output: float | None
    source: str
    """Where the prices come from, with the date; or why they are not known."""

    @property
    def known(self) -> bool:
        """Whether both are."""
        return self.input is not None and self.output is not None


def price(config: LmConfig) -> Price:
    """The config's prices where it has any; else the snapshot's for this model at this host."""
    if config.price_source is not None:
        return Price(config.usd_per_million_input_tokens, config.usd_per_million_output_tokens, config.price_source)
    snapshot = _snapshot()
    host = urlsplit(config.api_base or "").hostname or ""
    listed = snapshot["hosts"].get(host, {})
    found = listed.get(config.model) or listed.get(_DATED.sub("", config.model))
    if found is None:
        return Price(None, None, f"no price of {config.model} is known (list of {snapshot['as_of']})")
    return Price(found[0], found[1], f"{snapshot['source']}, {snapshot['as_of']}")


def cost_usd(input_tokens: int | None, output_tokens: int | None, config: LmConfig) -> float | None:
    """Tokens times prices, or None where a price or a count it needs is unknown."""
    prices = price(config)
    charges = (_charge_usd(input_tokens, prices.input), _charge_usd(output_tokens, prices.output))
    known = [charge for charge in charges if charge is not None]
    return sum(known) if len(known) == len(charges) else None


def _charge_usd(tokens: int | None, usd: float | None) -> float | None:
    if usd == 0:
        return 0.0  # free however many tokens it took
    return None if tokens is None or usd is None else tokens * usd / TOKENS_PER_PRICE


@lru_cache(maxsize=1)
def _snapshot() -> dict[str, Any]:
    text = (resources.files("kernelgen.lm") / "prices.json").read_text(encoding="utf-8")
    snapshot: dict[str, Any] = json.loads(text)
    return snapshot
