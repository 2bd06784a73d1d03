"""State 0: a search space for the kernels of any Triton champion, its own or a user's.

The reply is the champion's algorithm, untouched. A kernel that must not be run twice on the same tensors (atomics,
in-place updates) keeps the configuration it has, unless its decorator resets what it changes.
"""

from __future__ import annotations

from collections.abc import Sequence

from kernelgen.errors import NoPlay
from kernelgen.playbook.champion import Champion, Kernel, parse
from kernelgen.playbook.limits import Place, allowed, keep_allowed
from kernelgen.playbook.reading import Request
from kernelgen.playbook.reply import render
from kernelgen.playbook.rewrite import without_table
from kernelgen.playbook.space import around
from kernelgen.records import AutotuneConfig


def propose(request: Request) -> str:
    """The reply. Raises NoPlay where the champion cannot be tuned, or everything near its configurations was tried."""
    if request.champion_language != "python":
        raise NoPlay(
            f"The champion {request.champion_id} is {request.champion_language}, not Triton: nothing to autotune."
        )
    champion = parse(request.champion_source)
    table: dict[str, Sequence[AutotuneConfig]] = {}
    searched: dict[str, int] = {}
    for kernel in champion.kernels:
        own = _own(request, kernel)
        fresh = _fresh(request, champion, kernel, own)
        if fresh:
            searched[kernel.name] = len(fresh)
            table[kernel.name] = fresh
        elif own and _refers_to_table(kernel):
            table[kernel.name] = own
    if not searched:
        raise NoPlay(
            f"Every configuration that the playbook knows around those of {request.champion_id} was tried, is against "
            "a hard constraint, or may not be autotuned: go on with state 1."
        )
    kept = keep_allowed(request, table, f"the champion {request.champion_id}", champion.source)
    return render(request, _hypothesis(request, champion, searched), without_table(champion, kept), kept)


def _own(request: Request, kernel: Kernel) -> Sequence[AutotuneConfig]:
    """The configurations that the kernel has now; empty where they cannot be read and need not be."""
    if kernel.configs:
        return kernel.configs
    if kernel.configs is not None and (told := request.tried(kernel.name)):
        return told
    if _refers_to_table(kernel):
        raise NoPlay(f"The configurations of {kernel.name} cannot be read from the champion {request.champion_id}.")
    return ()


def _refers_to_table(kernel: Kernel) -> bool:
    """Whether the kernel's decorator takes its configurations from AUTOTUNE_CONFIGS."""
    return kernel.table_entry is not None


def _fresh(request: Request, champion: Champion, kernel: Kernel, own: Sequence[AutotuneConfig]) -> list[AutotuneConfig]:
    """Configurations of one kernel to search; empty where it may not be searched or all were tried."""
    if not own or not kernel.repeatable:
        return []
    # a program's share may only change where the grid is computed from it
    fixed = kernel.grid_depends_on - champion.meta_names
    place = Place(kernel.name, champion.source)
    return around(own, fixed, request.tried(kernel.name), lambda config: allowed(request, config, place))


def _hypothesis(request: Request, champion: Champion, searched: dict[str, int]) -> str:
    rest = ", ".join(kernel.name for kernel in champion.kernels if kernel.name not in searched)
    untouched = f" Not searched: {rest} (running it again would change its result, or all was tried)." if rest else ""
    counts = ", ".join(f"{count} of {name}" for name, count in searched.items())
    return (
        f"The profile calls the region {request.bottleneck}: {request.limiting}. Tile sizes, warps and pipeline stages "
        "decide how many bytes are in flight on each SM and how many blocks share it, and no formula knows which "
        f"balance is best, so the algorithm of {request.champion_id} stays and its configurations are searched "
        f"({counts}).{untouched} If none of them is faster at the timed shapes, the configuration was not what limits "
        "this kernel."
    )
