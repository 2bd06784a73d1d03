"""Whether a target's FLOP and byte counts make sense: positive, repeatable, and of one mind about what is more work."""

from __future__ import annotations

import math
from itertools import combinations

from kernelgen.targets.code import MODULE_FAULTS, TargetCode
from kernelgen.targets.findings import Dims, Findings, Task, raised


def check_costs(task: Task, code: TargetCode, found: Findings) -> None:
    """Add to the findings what is wrong with the counts at any shape, without making inputs.

    Where two shapes differ in one dimension alone, FLOPs and bytes must not go opposite ways, and one must change.
    """
    counts: dict[str, tuple[float, float]] = {}
    for name, dims in task.shapes.items():
        try:
            counts[name] = (code.flops(dims), code.bytes_moved(dims))
            repeats = (code.flops(dims), code.bytes_moved(dims)) == counts[name]
        except MODULE_FAULTS as error:
            found.add("costs", f"{name}: {raised(error)}")
            return
        sound = all(isinstance(count, int | float) and math.isfinite(count) and count > 0 for count in counts[name])
        told = f"{name}: flops {counts[name][0]}, bytes {counts[name][1]}: both must be finite, above 0 and repeat"
        found.add("costs", None if sound and repeats else told)
    if "costs" in found.faults:
        return
    for one, other in combinations(counts, 2):
        if _differing(task.shapes[one], task.shapes[other]) == 1:
            work, traffic = (after - before for before, after in zip(counts[one], counts[other], strict=True))
            told = f"from {one} to {other} flops change by {work:g} and bytes by {traffic:g}"
            found.add("costs", told if work * traffic < 0 or work == traffic == 0 else None)


def _differing(one: Dims, other: Dims) -> int:
    """How many dimensions differ; all of them where they are not the same ones."""
    return sum(one[name] != other[name] for name in one) if one.keys() == other.keys() else len(one) + len(other)
