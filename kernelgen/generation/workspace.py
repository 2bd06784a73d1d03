"""Where a user's work lives: the event log, the constraint file and the out folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kernelgen.catalog import Catalog
from kernelgen.config import GenerateConfig

KERNELS = "scripts/kernels"


@dataclass(frozen=True)
class Workspace:
    """Three places; each may be anywhere, the working folder is the default."""

    events: Path
    """The event log, a SQLite file."""
    constraints: Path
    """The constraint file, JSON lines."""
    out: Path
    """Candidates go to `scripts/kernels/{target}/` under it."""


@dataclass(frozen=True)
class Resolved:
    """A generation's configs, composed and typed, and where their files lie."""

    config: GenerateConfig
    """Every group and key."""
    overrides: tuple[str, ...]
    """What the user set on the command line."""
    catalog: Catalog
    """The other choices, for what is decided at run time."""

    @property
    def workspace(self) -> Workspace:
        """The three places the configs name, made absolute."""
        config = self.config
        return Workspace(
            Path(config.events).absolute(), Path(config.constraints).absolute(), Path(config.out).absolute()
        )
