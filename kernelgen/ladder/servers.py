"""Processes with a DSL loaded, one a kind, started when first asked for; they serve many candidates."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from kernelgen.ladder.server import Server


class Servers:
    """The servers of one judge; a context manager."""

    def __init__(self, *, contained: bool) -> None:
        """`contained`: whether their children are."""
        self.contained = contained
        self._started: dict[str, Server] = {}

    def get(self, kind: str) -> Server:
        """The server of a kind."""
        if kind not in self._started:
            self._started[kind] = Server(kind, contained=self.contained)
        return self._started[kind]

    def close(self) -> None:
        """End all of them."""
        while self._started:
            self._started.popitem()[1].close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
