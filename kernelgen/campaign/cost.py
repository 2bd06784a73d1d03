"""What a verdict took: seconds of judging, and those of a machine with a GPU. Read from the verdict's event alone.

A verdict that came back from a worker repeats the log's own L0, which counts once. A worker's machine is held while it
compiles, so its L1 counts as the GPU's; here only the levels that ran on the GPU do.
"""

from __future__ import annotations

import json

from kernelgen.events import VerdictReached
from kernelgen.judging.ingest import BUNDLE, LINE

GPU = "gpu"
"""Key of a machine and of a level's environment that names the GPU."""
ON_THE_GPU = ("L2", "L3", "L4")
RECORDED = "recorded_line"
"""Key of a verdict's machine: digest of the recorded line that was told again as its own."""


def bundle_of(event: VerdictReached) -> str | None:
    """Id of the bundle that a verdict came back from; None for one that was judged here."""
    found = json.loads(event.machine).get(BUNDLE)
    return None if found is None else str(found)


def lines_of(event: VerdictReached) -> set[str]:
    """Digests of the worker's lines that a verdict rests on."""
    machine = json.loads(event.machine)
    return {str(machine[key]) for key in (LINE, RECORDED) if key in machine}


def is_undecided_there(event: VerdictReached) -> bool:
    """Whether a machine with a GPU judged and could not tell: it was disturbed, or its harness fell."""
    has_gpu = bundle_of(event) is not None and GPU in json.loads(event.machine)
    return has_gpu and event.verdict.refused() is None and event.verdict.levels[-1].outcome == "inconclusive"


def judged_seconds(event: VerdictReached) -> float:
    """Seconds that the levels of this verdict took."""
    return sum(level.seconds for level in event.verdict.levels if bundle_of(event) is None or level.level != "L0")


def gpu_seconds(event: VerdictReached) -> float:
    """Seconds of them that a machine with a GPU was held for."""
    levels = event.verdict.levels
    if bundle_of(event) is not None:
        has_gpu = GPU in json.loads(event.machine)
        return sum(level.seconds for level in levels if has_gpu and level.level != "L0")
    return sum(level.seconds for level in levels if level.level in ON_THE_GPU and GPU in level.environment)
