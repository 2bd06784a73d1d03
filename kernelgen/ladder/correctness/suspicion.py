"""What the called process says against a candidate: flags, threads, sniffing, launches, torch's operators.

Operators are allowed that allocate, view, copy, cast (but to fp8: that is quantisation) or read a number. Those that
compute on whole numbers alone, where the target itself is about floating-point numbers, or that join tensors, are a
matter for a person: they may be bookkeeping. Any other one does work that is the kernel's. Python may read a few
numbers, and lists of whole ones; whoever reads more may compute with them, which is for a person too.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernelgen.ladder.correctness.calls import Answer
from kernelgen.ladder.results import Fault
from kernelgen.ladder.subject import Goal

ALLOCATES = (
    "empty empty_like empty_strided new_empty new_empty_strided zeros zeros_like new_zeros ones ones_like new_ones "
    "full full_like new_full zero_ fill_ scalar_tensor arange resize_"
)
VIEWS = (
    "view view_as reshape _reshape_alias _unsafe_view expand expand_as permute transpose transpose_ t slice select "
    "squeeze unsqueeze squeeze_ unsqueeze_ flatten unflatten as_strided detach detach_ alias unbind split "
    "split_with_sizes chunk narrow unfold diagonal movedim swapaxes view_as_real view_as_complex set_ lift lift_fresh"
)
COPIES = (
    "copy_ copy clone contiguous _to_copy to _pin_memory pin_memory is_pinned record_stream _local_scalar_dense item "
    "is_same_size sym_size sym_stride sym_numel sym_storage_offset"
)
ALLOWED = frozenset(f"{ALLOCATES} {VIEWS} {COPIES}".split())
JOINS = frozenset({"cat", "stack", "constant_pad_nd", "pad", "repeat", "repeat_interleave", "tile"})
FLOATS = ("float", "bfloat")
# what one call may read into Python: scales and the like, and lists of counts or indices
FEW_FLOATS = 32
FEW_OTHERS = 4096


@dataclass(frozen=True)
class Suspicions:
    """What was said against a candidate."""

    faults: tuple[Fault, ...]
    """What fails it."""
    doubts: tuple[Fault, ...]
    """What a person should look at."""


def against(answer: Answer, place: str, goal: Goal, *, launches_count: bool) -> Suspicions:
    """What an answer to `call` or `load` says against the candidate."""
    faults = []
    if answer.texts("changed"):
        names = ", ".join(answer.texts("changed"))
        faults.append(Fault("correctness.flags", f"{place}: the candidate changed {names}, which others rely on"))
    if answer.number("started") > 0:
        count = answer.number("started")
        reason = f"{place}: {count} more thread{'' if count == 1 else 's'} or processes than before run after the call"
        faults.append(Fault("correctness.threads", reason))
    if answer.texts("looked"):
        reason = f"{place}: the candidate looks for its caller: {', '.join(answer.texts('looked'))}"
        faults.append(Fault("correctness.sniffing", reason))
    if answer.texts("beside"):
        reason = f"{place}: the kernel wrote outside its outputs, {', '.join(answer.texts('beside'))}"
        faults.append(Fault("correctness.guard_band", reason))
    if launches_count and answer.number("launches") == 0:
        reason = f"{place}: {goal.name} was answered without a single kernel launch"
        faults.append(Fault("correctness.no_launch", reason))
    work, doubtful = _operators(answer.counts("operators"), goal)
    doubts = []
    if work:
        reason = f"{place}: torch computes in place of a kernel: {', '.join(work)}"
        faults.append(Fault("correctness.library_work", reason))
    if doubtful:
        reason = f"{place}: torch computes beside the kernels, perhaps bookkeeping: {', '.join(doubtful)}"
        doubts.append(Fault("correctness.library_work", reason))
    floats, others = answer.number("read_floats"), answer.number("read_others")
    if floats > FEW_FLOATS or others > FEW_OTHERS:
        read = f"{floats} floating-point and {others} other numbers"
        reason = f"{place}: Python reads {read} of tensors, and may compute in place of a kernel"
        doubts.append(Fault("correctness.host_work", reason))
    return Suspicions(tuple(faults), tuple(doubts))


def _operators(counts: dict[str, int], goal: Goal) -> tuple[list[str], list[str]]:
    """Operators that do the kernel's work, and those that may."""
    tensors = [*goal.inputs, *goal.outputs]
    has_numbers = any(dtype.startswith(FLOATS) for _, dtype, _ in tensors)
    work, doubtful = [], []
    for name, count in counts.items():
        operator, _, whole = name.partition("/")
        operator, _, cast = operator.partition(">")
        namespace, _, bare = operator.partition("::")
        bare = bare.partition(".")[0]
        described = f"{operator} ({count}x)"
        if namespace not in ("aten", "prims") or bare in JOINS:
            doubtful.append(described)
        elif bare in ALLOWED:
            if "float8" in cast:
                work.append(f"{described} to {cast}")
        elif whole and has_numbers:
            doubtful.append(described)
        else:
            work.append(described)
    return work, doubtful
