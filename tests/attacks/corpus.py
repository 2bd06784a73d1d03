"""Every attack of the corpus, found by the names of its files."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

from tests.attacks.attack import Attack

HEADERS = "d7_"
FILE = re.compile(r"[abcd]\d+_\w+\.py")


def files() -> list[Path]:
    """The files of the corpus."""
    return sorted(file for file in Path(__file__).parent.iterdir() if FILE.fullmatch(file.name))


def kinds() -> list[str]:
    """Ids of the kinds that have a file."""
    return [file.stem.partition("_")[0].upper() for file in files()]


def attacks() -> tuple[Attack, ...]:
    """All attacks on the levels, by kind and number; false headers are `d7_false_header.CHEATS`.

    That file alone needs the verbs, which a GPU machine does not have: it is not imported here.
    """
    found = [
        attack
        for file in files()
        if not file.stem.startswith(HEADERS)
        for attack in importlib.import_module(f"tests.attacks.{file.stem}").ATTACKS
    ]
    return tuple(sorted(found, key=lambda attack: (attack.id[0], int(attack.id[1:]))))
