"""What a compiling child sends, read with doubt: a form that kernelgen does not send is a `ValueError`, and the
candidate's doing.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from kernelgen.ladder import binary
from kernelgen.ladder.channel import read_descriptor
from kernelgen.ladder.reasons import shorten

LONGEST_TEXT = 1 << 18
VALUE_TYPES = (bool, int, float, str, type(None))

Event = dict[str, Any]


def contents(files: Sequence[int]) -> list[bytes]:
    """The bytes of the files that came along, which are closed. Raises ValueError where one is no binary."""
    try:
        held = [read_descriptor(file, binary.LARGEST_BYTES) for file in files]
    finally:
        for file in files:
            os.close(file)
    if any(one is None for one in held):
        raise ValueError("files that are no binaries")
    return [bytes(one) for one in held if one is not None]


def config(event: Event) -> dict[str, Any]:
    """Kernel, compile-time arguments and options. Raises ValueError where they are not as plain as they must be."""
    kwargs = event["kwargs"]
    if not isinstance(kwargs, dict) or not all(type(value) in VALUE_TYPES for value in kwargs.values()):
        raise ValueError("compile-time arguments that are no plain values")
    options = {name: event[name] for name in ("num_warps", "num_stages")}
    if not all(value is None or type(value) is int for value in options.values()):
        raise ValueError("options that are no numbers")
    return {"kernel": shorten(text(event["kernel"])), "kwargs": kwargs, **options}


def text(value: Any) -> str:
    """A text. Raises ValueError for anything else, and for one too long."""
    if not isinstance(value, str) or len(value) > LONGEST_TEXT:
        raise ValueError("no text, or one too long")
    return value


def call(event: Event) -> str | None:
    """The shape at which it happened; None while the file is loaded."""
    return None if event["call"] is None else text(event["call"])


def line(value: Any) -> int | None:
    """A line of the source, or None. Raises ValueError for anything else."""
    if value is not None and type(value) is not int:
        raise ValueError("a line that is no number")
    return value
