"""Turns the values of a JSON profile into metrics and texts that can be stored."""

from __future__ import annotations

import json
import math
from typing import Any

from kernelgen.profile.table import Metric

Scalar = str | int | float | bool


def storable(text: str) -> str:
    """The text without the halves of characters that JSON can escape and UTF-8 cannot store."""
    return text.encode("utf-8", "replace").decode("utf-8")


def dims(value: Any) -> str:
    """Grid or block extents as ncu prints them, `(1536, 1, 1)`; empty where the value is no list of numbers."""
    if not isinstance(value, list) or not value or not all(isinstance(one, int) for one in value):
        return ""
    return f"({', '.join(str(one) for one in value)})"


class MetricPool:
    """Makes metrics and names, one object for equal ones: a profile repeats the same few in every launch."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, Scalar], Metric] = {}
        self._names: dict[str, str] = {}

    def name(self, text: str) -> str:
        """The storable text of a name, one object for equal ones."""
        found = self._names.get(text)
        if found is None:
            found = self._names[text] = storable(text)
        return found

    def metric(self, unit: str, value: Scalar) -> Metric:
        """The metric of a scalar; booleans and strings have no number."""
        key = (unit, value) if not isinstance(value, bool) else (unit, json.dumps(value))
        found = self._made.get(key)
        if found is None:
            text = storable(value) if isinstance(value, str) else json.dumps(value)
            found = self._made[key] = Metric(unit, text, _number(value))
        return found


def _number(value: Scalar) -> float | None:
    if isinstance(value, bool | str):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
