"""What one session may use, and the part of it that the kernel's resource limits keep by themselves.

Memory, processes and the folder's size over all its processes are watched by its keeper (`keeper`); a single process
meets the limits set here first, so that a too large allocation is an error in the candidate and not the end of it.
"""

from __future__ import annotations

import os
import resource
from dataclasses import dataclass

MIB = 1 << 20
OPEN_FILES = 512
# user and group namespaces count the keeper's processes and other sessions of the same server too
PROCESS_SLACK = 256
PAGE_BYTES = resource.getpagesize()
OOM_SCORE_WORST = "1000"


@dataclass(frozen=True)
class Limits:
    """What a session may use, all its processes together."""

    memory_bytes: int = 4096 * MIB
    """Memory beside what the server had loaded: private, shared, memfds."""
    processes: int = 64
    """Processes and threads at a time; processes beside the first need `exec_allowed`."""
    seconds: float = 120.0
    """Wall time of the whole session."""
    output_bytes: int = 1 * MIB
    """What it may print, both streams together."""
    file_bytes: int = 1024 * MIB
    """Its folder, and any one file or memfd."""
    exec_allowed: bool = False
    """Whether it may start processes: compilers and assemblers alone."""


DEFAULT = Limits()


def apply(limits: Limits, *, own_user_namespace: bool) -> None:
    """Bound this process and what it will start; limits already lower stay."""
    cores = os.cpu_count() or 1
    bounds = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_CPU: int(limits.seconds * cores) + 1,
        resource.RLIMIT_FSIZE: limits.file_bytes,
        resource.RLIMIT_NOFILE: OPEN_FILES,
        # private writable memory: unlike the address space, not what a GPU's driver reserves
        resource.RLIMIT_DATA: data_bytes() + limits.memory_bytes,
        resource.RLIMIT_MSGQUEUE: 0,
    }
    if own_user_namespace:  # else the user's other processes would count
        bounds[resource.RLIMIT_NPROC] = limits.processes + PROCESS_SLACK
    for kind, wanted in bounds.items():
        _, hard = resource.getrlimit(kind)
        bound = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(kind, (bound, bound))
    with open("/proc/self/oom_score_adj", "w", encoding="ascii") as score:  # the first to go where memory runs out
        score.write(OOM_SCORE_WORST)


def data_bytes() -> int:
    """Private writable memory that this process has mapped."""
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[5]) * PAGE_BYTES
