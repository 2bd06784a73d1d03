"""Every attack of the corpus, found by the names of its files."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

from tests.attacks.attack import Attack

FILE = re.compile(r"[abcd]\d+_\w+\.py")


def attacks() -> tuple[Attack, ...]:
    """All attacks, by kind and number."""
    found = [
        attack
        for file in Path(__file__).parent.iterdir()
        if FILE.fullmatch(file.name)
        for attack in getattr(importlib.import_module(f"tests.attacks.{file.stem}"), "ATTACKS", ())
    ]
    return tuple(sorted(found, key=lambda attack: (attack.id[0], int(attack.id[1:]))))
