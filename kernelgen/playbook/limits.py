"""Which configurations the prompt's hard rules allow, as far as that can be told before compiling.

A rule that says False excludes; one that cannot be told (registers, shared memory) does not. On top of the rules stand
two facts of every CUDA GPU: at most 1024 threads a block, and warps in powers of two as Triton asks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kernelgen.constraints.rules import parse
from kernelgen.errors import NoPlay
from kernelgen.playbook.reading import Request
from kernelgen.records import AutotuneConfig

WARP_THREADS = 32
MAX_THREADS_PER_BLOCK = 1024


def broken_rule(request: Request, config: AutotuneConfig | None = None, source: str | None = None) -> str | None:
    """Id of the first hard constraint that a configuration or a source is known to break, or None."""
    facts = _facts(request, config, source)
    for constraint in request.hard:
        if constraint.rule is not None and parse(constraint.rule).check(facts) is False:
            return constraint.id
    return None


def allowed(request: Request, config: AutotuneConfig) -> bool:
    """Whether a configuration can be launched and breaks no hard rule that can be told."""
    warps = config.num_warps
    if warps & (warps - 1) or warps * WARP_THREADS > MAX_THREADS_PER_BLOCK:
        return False
    return broken_rule(request, config) is None


def keep_allowed(
    request: Request, table: Mapping[str, Sequence[AutotuneConfig]], what: str
) -> dict[str, list[AutotuneConfig]]:
    """The table without configurations that break a rule. Raises NoPlay where a kernel is left with none."""
    kept = {kernel: [row for row in rows if allowed(request, row)] for kernel, rows in table.items()}
    for kernel, rows in kept.items():
        if not rows:
            broken = (broken_rule(request, row) for row in table[kernel])
            first = next((f"the hard constraint {id}" for id in broken if id), "the limit of threads per block")
            raise NoPlay(f"No configuration of {kernel} in {what} is within {first}.")
    return kept


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
