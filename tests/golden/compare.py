"""Stored texts beside the tests: compared byte for byte, and accepted anew with KERNELGEN_ACCEPT=1."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).resolve().parent


def assert_golden(name: str, text: str) -> None:
    """The text must be what `tests/golden/{name}` holds."""
    path = FOLDER / name
    if os.environ.get("KERNELGEN_ACCEPT") == "1":
        path.write_bytes(text.encode("utf-8"))
    stored = path.read_bytes().decode("utf-8")
    assert text == stored, f"{path.name} differs; look at the change, then accept it with KERNELGEN_ACCEPT=1"
