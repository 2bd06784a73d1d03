"""Texts from outside as a bug report may carry them: no home folder, no user's and no host's name.

For paths and for what tools and errors say. A short or common name is left alone where it is no part of a path: it
would spoil words, and tells nobody anything.
"""

from __future__ import annotations

import getpass
import os
import platform
import re
from functools import lru_cache
from pathlib import Path

HOME = "~"
USER = "USER"
HOST = "HOST"
SHORTEST_NAME = 3
COMMON_NAMES = frozenset({"root", "user", "home", "usr", "localhost"})


def shown(text: str) -> str:
    """The text without the home folder, the user's name in a path, and the host's name."""
    for pattern, instead in _patterns():
        text = pattern.sub(instead, text)
    return text


def shown_path(path: Path) -> str:
    """A path as short as it can be said: below the working folder, below home, or as it is."""
    absolute = Path(os.path.abspath(path))
    try:
        return str(absolute.relative_to(Path.cwd()))
    except ValueError:
        return shown(str(absolute))


@lru_cache(maxsize=1)
def _patterns() -> tuple[tuple[re.Pattern[str], str], ...]:
    homes = {home.rstrip("/") for home in (os.path.expanduser("~"), os.environ.get("HOME", "")) if len(home) > 1}
    found = [(re.compile(rf"{re.escape(home)}(?![\w.-])"), HOME) for home in sorted(homes, key=len, reverse=True)]
    user, host = _user(), platform.node()
    if _telling(user):
        found.append((re.compile(rf"(?<=/){re.escape(user)}(?=/|$|[\s:'\"])"), USER))
    if _telling(host):
        found.append((re.compile(rf"(?<![\w.-]){re.escape(host)}(?![\w-])"), HOST))
    return tuple(found)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user without an entry
        return ""


def _telling(name: str) -> bool:
    return len(name) >= SHORTEST_NAME and name not in COMMON_NAMES
