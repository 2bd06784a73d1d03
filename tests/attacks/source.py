"""The text of a candidate, in which a replacement that finds nothing to replace is an error and not an honest cheat."""

from __future__ import annotations

import textwrap
from typing import SupportsIndex


class Source(str):
    """A candidate's source."""

    def replace(self, old: str, new: str, count: SupportsIndex = -1, /) -> Source:
        """As of a text; raises ValueError where `old` does not stand in it."""
        if old not in self:
            raise ValueError(f"there is no {old!r} to replace")
        return Source(super().replace(old, new, count))


def text(*parts: str) -> Source:
    """A candidate of several parts, each without the indentation it stands in here."""
    return Source("\n\n".join(textwrap.dedent(part).strip("\n") for part in parts) + "\n")
