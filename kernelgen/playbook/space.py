"""The configurations around a champion's own: tiles over powers of two, warps and stages one step at a time.

Deterministic: the champion's first, then by how many values change, then by value. The order is a guess at what is
worth compiling first; which one is fastest is measured, never computed here.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence

from kernelgen.records import AutotuneConfig

PER_KERNEL = 12
"""Configurations proposed of one kernel at a time."""
SMALLEST_TILE = 16
"""Below this a power of two is more likely a count than a tile; tl.dot takes no less either."""
FEWEST_STAGES, MOST_STAGES = 1, 5
MOST_WARPS = 16


def around(
    known: Sequence[AutotuneConfig],
    fixed: frozenset[str],
    tried: Iterable[AutotuneConfig],
    allowed: Callable[[AutotuneConfig], bool],
) -> list[AutotuneConfig]:
    """At most PER_KERNEL configurations near the known ones that are allowed and were not tried.

    `fixed` names the constexpr parameters that keep their values.
    """
    seen = list(tried)
    chosen: list[AutotuneConfig] = []
    neighbours = sorted(
        (neighbour for base in known for neighbour in _neighbours(base, fixed)), key=lambda found: found[0]
    )
    for config in itertools.chain(known, (config for _, config in neighbours)):
        if len(chosen) == PER_KERNEL:
            break
        if config not in seen and config not in chosen and allowed(config):
            chosen.append(config)
    return chosen


def _neighbours(base: AutotuneConfig, fixed: frozenset[str]) -> list[tuple[int, AutotuneConfig]]:
    """The configurations around one, each with how many of its values differ."""
    kwargs = [[value, *(() if name in fixed else _tiles(value))] for name, value in base.kwargs.items()]
    found = []
    for *tiles, warps, stages in itertools.product(*kwargs, _warps(base.num_warps), _stages(base.num_stages)):
        config = AutotuneConfig(kwargs=dict(zip(base.kwargs, tiles, strict=True)), num_warps=warps, num_stages=stages)
        changed = sum(config.kwargs[name] != value for name, value in base.kwargs.items())
        changed += (warps != base.num_warps) + (stages != base.num_stages)
        found.append((changed, config))
    return found


def _tiles(value: int | bool | str) -> list[int]:
    if isinstance(value, bool) or not isinstance(value, int) or value < SMALLEST_TILE or value & (value - 1):
        return []
    return [size for size in (value * 2, value // 2, value * 4) if size >= SMALLEST_TILE]


def _warps(value: int) -> list[int]:
    return [value, *(count for count in (value * 2, value // 2) if 1 <= count <= MOST_WARPS)]


def _stages(value: int) -> list[int]:
    return [value, *(count for count in (value + 1, value - 1, value + 2) if FEWEST_STAGES <= count <= MOST_STAGES)]
