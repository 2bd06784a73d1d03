"""What was profiled: the champion, when its kernels take most of the region's time, otherwise what ran, in a phrase.

Kernel names are all a profile shows of a source: another source with the champion's kernel names is taken for it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import NamedTuple

from kernelgen import python_source
from kernelgen.ids import digest_text
from kernelgen.profile.roofline import Region
from kernelgen.profile.table import short_name
from kernelgen.records import Champion, Digest

OWN_SHARE_PERCENT = 50.0
"""The champion's kernels must hold this much of the time: a driver's own launches do not make it something else."""

_CUDA_KERNEL = re.compile(r"__global__[^;{}]*?\b(\w+)\s*\(")
_LAUNCH_BOUNDS = re.compile(r"__launch_bounds__\s*\([^)]*\)|__cluster_dims__\s*\([^)]*\)")
_TILELANG_SUFFIX = "_kernel"  # TileLang names the device function of a prim_func `main` so: `main_kernel`

# first match wins: what PyTorch launches itself tells more than the libraries it calls
_FAMILIES = (
    ("compiled PyTorch (Inductor)", re.compile(r"\btriton_(?:poi|red|per|tem|mm)_")),
    ("eager PyTorch", re.compile(r"\b(?:at|c10|native|at_cuda_detail)::")),
    ("cuDNN", re.compile(r"cudnn", re.I)),
    ("cuBLAS", re.compile(r"^nvjet_|cublas|gemmk1_kernel|^(?:ampere|sm[0-9]+_xmma|cutlass)[_0-9]", re.I)),
    ("CUB", re.compile(r"\bcub::|\bDeviceRadixSort|\bDeviceScan|\bDeviceReduce")),
)


class Subject(NamedTuple):
    """What a profile shows."""

    phrase: str
    """For the prompt."""
    source_digest: Digest | None
    """Of the champion's source, where that is what ran."""


def kernel_names(champion: Champion) -> frozenset[str]:
    """Names under which the champion's kernels show in a profile; empty where its source does not tell."""
    if champion.language == "cuda":
        return frozenset(_CUDA_KERNEL.findall(_LAUNCH_BOUNDS.sub("", champion.source)))
    try:
        tree = python_source.parse(champion.source)
    except SyntaxError:
        return frozenset()
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            decorators = {_last_name(decorator) for decorator in node.decorator_list}
            if "jit" in decorators:
                names.add(node.name)
            if "prim_func" in decorators:
                names |= {node.name, node.name + _TILELANG_SUFFIX}
    return frozenset(names)


def name_subject(region: Region, champion: Champion, champion_kernels: Iterable[str], words: str | None) -> Subject:
    """Who ran; `words` are the user's own, and extend the phrase."""
    own = frozenset(champion_kernels)
    names = [short_name(launch.name) for launch in region.launches]
    mine = [index for index, name in enumerate(names) if name in own]
    held = sum(region.each[index].time_us for index in mine)
    said = " ".join((words or "").split())
    if mine and 100 * held / region.time_us >= OWN_SHARE_PERCENT:
        others = len(names) - len(mine)
        phrase = f"champion {champion.id}: {', '.join(dict.fromkeys(names[index] for index in mine))}"
        phrase += f" and {_launches(others)} of other kernels" if others else ""
        return Subject(_join(phrase, said), digest_text(champion.source))
    phrase = f"{_who(region)}: {_launches(len(names))}, the longest {names[region.dominant]}"
    return Subject(_join(phrase, said), None)


def _who(region: Region) -> str:
    full = {launch.name for launch in region.launches}
    return next((who for who, pattern in _FAMILIES if any(pattern.search(name) for name in full)), "other kernels")


def _last_name(decorator: ast.expr) -> str:
    """`jit` of `@jit`, `@triton.jit` and `@triton.jit(...)`."""
    node = decorator.func if isinstance(decorator, ast.Call) else decorator
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _launches(count: int) -> str:
    return f"{count} launch" if count == 1 else f"{count} launches"


def _join(phrase: str, words: str) -> str:
    return f"{phrase}; {words}" if words else phrase
