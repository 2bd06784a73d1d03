"""A session as the server orders it of a keeper."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kernelgen.ladder.containment.applying import Record
from kernelgen.ladder.containment.limits import Limits
from kernelgen.ladder.containment.paths import Paths

# what the child tells its keeper when it is contained
READY = b"+"
# with which a child ends that found no memory
OUT_OF_MEMORY_CODE = 86


@dataclass(frozen=True)
class Order:
    """What to start, and how."""

    job: Callable[[Any], None]
    """What the child calls with its channel."""
    folder: str
    """Its writable folder."""
    limits: Limits
    """What it may use."""
    contained: bool
    """Whether more than limits and killing is asked for."""
    record: Record
    """What holds on this machine."""
    paths: Paths
    """What it may see."""
    channel: int
    """Its end of the channel."""
    output: int
    """Where it prints."""
    status: int
    """Where the keeper says how it ended; closed when nothing of the session is left."""
    life: int
    """Readable when the session is to end."""
