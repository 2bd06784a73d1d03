"""L1 for CUDA source that a Python solution hands to torch's loader: its kernels alone, cut out of the host's code.

The host's part needs torch's CUDA headers and minutes of compiling, so it is not built here and a pass is never said:
where the kernels compile the level is inconclusive, with their figures. What nvcc refuses may be the fault of the cut;
only a limit of the card, which no header changes, fails the solution.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from kernelgen.ladder import compile as compiling
from kernelgen.ladder.results import Result
from kernelgen.ladder.subject import Subject

if TYPE_CHECKING:
    from kernelgen.ladder.compile import ServerFor
    from kernelgen.ladder.compile.report import Build

LAUNCHER = "judged_launcher"
HEAD = (
    "#include <cfloat>\n#include <cmath>\n#include <cstdint>\n#include <cuda.h>\n#include <cuda_bf16.h>\n"
    "#include <cuda_fp16.h>\n#include <cuda_runtime.h>\n"
)
TAIL = f'\nextern "C" int {LAUNCHER}(void*) {{ return 0; }}\n'
LIMITS = frozenset({"compile.shared_memory"})
"""Faults that the kernels have by themselves."""
HOST_NEEDS = "the host's part needs torch's CUDA headers and is built by torch's loader, not here"

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_TEXT = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'')
_INCLUDE = re.compile(r"\s*#\s*include\s*[<\"](torch|ATen|c10|pybind11|THC)")
_HOST = re.compile(
    r"\b(torch|at|c10|pybind11|py)\s*::|\bTensor\b|<<<|\b(PYBIND11_|AT_DISPATCH|TORCH_|C10_|TORCH_LIBRARY)"
)
_NAMESPACE = re.compile(r"\s*(?:inline\s+)?namespace(?:\s+[\w:]+)?\s*\{")
_KERNEL = re.compile(r"__global__[^;{]*?(\w+)\s*\(")


def compile_loaded(subject: Subject, texts: Sequence[str], *, server_for: ServerFor, timeout_s: float) -> Result:
    """The result of L1 for the CUDA sources of a loader. Raises HarnessError where kernelgen is at fault.

    Args:
        subject: the Python solution.
        texts: the sources, as they are handed to the loader.
        server_for: gives the server of a kind.
        timeout_s: seconds the compile may take.
    """
    kernels = "\n".join(part for part in map(kernels_alone, texts) if part)
    wanted = set(_KERNEL.findall(kernels))
    missing = compiling.what_is_missing("cuda")
    if not wanted or missing is not None:
        why = missing or "no kernel stands apart from torch's types, so that none can be compiled alone"
        return Result("L1", "inconclusive", f"{why}; {HOST_NEEDS}")
    from kernelgen.ladder.compile.cuda import build

    started = time.monotonic()
    server = server_for(compiling.KINDS["cuda"])
    source = HEAD + kernels + TAIL
    alone = replace(subject, language="cuda", dsl="cuda", source=source, preamble="", entry_point=LAUNCHER)
    found = build(alone, server, timeout_s)
    environment = {**server.environment, **compiling.compiler_environment(alone)}
    seconds = time.monotonic() - started
    limits = tuple(fault for fault in found.faults if fault.check in LIMITS)
    if limits:
        return Result("L1", "failed", limits[0].reason, limits, environment=environment, seconds=seconds)
    if found.faults:
        reason = (
            f"its kernels, cut out of the host's code, do not compile alone: {found.faults[0].reason}; {HOST_NEEDS}"
        )
        return Result(
            "L1", "inconclusive", reason, notes=(found.faults[0].detail,), environment=environment, seconds=seconds
        )
    built = {build.kernel for build in found.builds}
    notes = [f"{name} is a template that the host's part instantiates: not compiled" for name in sorted(wanted - built)]
    details = {"builds": [asdict(build) for build in found.builds]}
    reason = (
        f"{len(built)} of {len(wanted)} kernels compile for {subject.goal.arch}{_figures(found.builds)}; {HOST_NEEDS}"
    )
    return Result("L1", "inconclusive", reason, (), tuple(notes), details, environment, seconds)


def kernels_alone(text: str) -> str:
    """The parts of a CUDA source that do without torch, every one on its own lines; empty where there is no kernel."""
    bare = _COMMENT.sub(lambda found: "\n" * found[0].count("\n") or " ", text)
    kept = "".join(_kept(bare))
    return kept if "__global__" in kept else ""


def _kept(text: str) -> Iterator[str]:
    for unit in _units(text):
        inside = _NAMESPACE.match(unit)
        if inside is not None and unit.rstrip().endswith("}"):
            end = unit.rindex("}")
            yield unit[: inside.end()] + "".join(_kept(unit[inside.end() : end])) + unit[end:]
        elif _INCLUDE.match(unit) or _HOST.search(_TEXT.sub('""', unit)):
            yield "\n" * unit.count("\n")
        else:
            yield unit


def _units(text: str) -> Iterator[str]:
    """Declarations, definitions and lines of the preprocessor at the outermost level, each with the space before it."""
    # texts hide brackets: blanked here, of the same length
    shown = _TEXT.sub(lambda found: " " * len(found[0]), text)
    start, depth, place = 0, 0, 0
    while place < len(shown):
        sign = shown[place]
        if depth == 0 and sign == "#" and not shown[start:place].strip():
            end = shown.find("\n", place)
            while end > 0 and shown[end - 1] == "\\":
                end = shown.find("\n", end + 1)
            place = len(shown) if end < 0 else end + 1
            yield text[start:place]
            start = place
            continue
        depth += (sign == "{") - (sign == "}")
        place += 1
        if depth <= 0 and sign in ";}":
            depth = 0
            yield text[start:place]
            start = place
    yield text[start:]


def _figures(builds: Sequence[Build]) -> str:
    if not builds:
        return ""
    registers = max(build.registers for build in builds)
    return f", registers up to {registers}, static shared up to {max(build.shared_bytes for build in builds)} B"
