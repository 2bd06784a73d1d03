"""The names all records share: digests, ids, and a record's canonical text."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import StringConstraints

from kernelgen.config import Frozen
from kernelgen.ids import canonical_json, digest_text

Digest = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
Id = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_.-]{0,127}$")]
Language = Literal["python", "cuda"]
Bottleneck = Literal["memory_bound", "compute_bound", "latency_bound", "underutilised", "at_roofline"]
Level = Literal["L0", "L1", "L2", "L3", "L4"]


def to_text(record: Frozen) -> str:
    """The record's canonical JSON, the form that is stored and hashed."""
    return canonical_json(record.model_dump(mode="json"))


def digest(record: Frozen) -> str:
    """Digest of `to_text`."""
    return digest_text(to_text(record))
