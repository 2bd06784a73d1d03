"""Which configurations the prompt's hard rules allow, as far as that can be told before compiling.

A rule that says False excludes; one that cannot be told (registers, shared memory as compiled) does not. Where a rule
asks for what a kernel does in a configuration, its source is followed. On top of the rules stand two facts of every
CUDA GPU: at most 1024 threads a block, and warps in powers of two as Triton asks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kernelgen.constraints.facts import TRACED, facts_before_compiling
from kernelgen.constraints.rules import parse
from kernelgen.errors import NoPlay
from kernelgen.playbook.reading import Request
from kernelgen.records import AutotuneConfig

WARP_THREADS = 32
MAX_THREADS_PER_BLOCK = 1024


@dataclass(frozen=True)
class Place:
    """Where a configuration is meant for."""

    kernel: str
    """The kernel's name."""
    source: str
    """The source that defines and launches it."""


def broken_rule(
    request: Request, config: AutotuneConfig | None = None, source: str | None = None, place: Place | None = None
) -> str | None:
    """Id of the first hard constraint that a configuration or a source is known to break, or None."""
    rules = [(constraint.id, parse(constraint.rule)) for constraint in request.hard if constraint.rule is not None]
    settings: list[Mapping[str, object]] = [_facts(request, config, source)]
    if config is not None and place is not None and any(rule.names() & TRACED for _, rule in rules):
        settings += _followed(request, config, place)
    for name, rule in rules:
        if any(rule.check(facts) is False for facts in settings):
            return name
    return None


def allowed(request: Request, config: AutotuneConfig, place: Place | None = None) -> bool:
    """Whether a configuration can be launched and breaks no hard rule that can be told."""
    warps = config.num_warps
    if warps & (warps - 1) or warps * WARP_THREADS > MAX_THREADS_PER_BLOCK:
        return False
    return broken_rule(request, config, place=place) is None


def keep_allowed(
    request: Request, table: Mapping[str, Sequence[AutotuneConfig]], what: str, source: str
) -> dict[str, list[AutotuneConfig]]:
    """The table without configurations that break a rule in a source. Raises NoPlay where a kernel has none left."""
    kept: dict[str, list[AutotuneConfig]] = {}
    for kernel, rows in table.items():
        place = Place(kernel, source)
        kept[kernel] = [row for row in rows if allowed(request, row, place)]
        if not kept[kernel]:
            broken = (broken_rule(request, row, place=place) for row in rows)
            first = next((f"the hard constraint {id}" for id in broken if id), "the limit of threads per block")
            raise NoPlay(f"No configuration of {kernel} in {what} is within {first}.")
    return kept


def _followed(request: Request, config: AutotuneConfig, place: Place) -> list[Mapping[str, object]]:
    """What the kernel does in the configuration, at each of its launches."""
    facts = facts_before_compiling(
        place.source,
        {place.kernel: [config]},
        "triton",
        arch=request.arch,
        dtypes=request.dtypes,
        kernel=place.kernel,
    )
    return [one.values for one in facts if one.kernel is not None]


def _facts(request: Request, config: AutotuneConfig | None, source: str | None) -> dict[str, object]:
    facts: dict[str, object] = {"dsl": "triton", "language": "python", "arch": request.arch}
    if config is not None:
        facts |= {
            "num_warps": config.num_warps,
            "num_stages": config.num_stages,
            "threads": config.num_warps * WARP_THREADS,
            "blocks": config.kwargs,
        }
    if source is not None:
        facts["source"] = source
    return facts
