"""Builds a CUDA C++ candidate in a child and reads what came of it: kernels, resources, and the launcher's symbol.

Nothing of it is loaded here. nvcc's words reach the reader whole, but for lines of files that are neither the
candidate's nor the toolkit's: what an `#include` of someone else's file brings to light is left out.
"""

from __future__ import annotations

import os
import re
import time
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from kernelgen.errors import HarnessError
from kernelgen.ladder import cuda, elf
from kernelgen.ladder.compile import words
from kernelgen.ladder.compile.collect import early_end, limits
from kernelgen.ladder.compile.events import contents
from kernelgen.ladder.compile.nvcc import SOURCE
from kernelgen.ladder.compile.report import Findings, read_builds
from kernelgen.ladder.results import Fault
from kernelgen.ladder.server import ChildEnded, Server
from kernelgen.ladder.subject import Subject

JOB = "kernelgen.ladder.compile.nvcc:job"
NOT_SHOWN = "(lines of a file that is neither the candidate's nor the compiler's are not shown)"
SYSTEM_FOLDERS = ("/usr/include/", "/usr/lib/", "/usr/local/cuda")

# `candidate.cu(10): error: …`, `candidate.cu:10:5: error: …`, `ptxas error : …`
_HEAD = re.compile(r"^(?P<file>[^\s():][^():]*)(?:\((?P<line>\d+)\)|:(?P<colon>\d+)(?::\d+)?)\s*:")
_ERROR = re.compile(r"\b(?:error|fatal)\b", re.IGNORECASE)
_LENGTH = re.compile(r"(\d+)")


def build(subject: Subject, server: Server, timeout_s: float) -> Findings:
    """What nvcc makes of a candidate for the goal's architecture. Raises HarnessError where there is no nvcc."""
    nvcc = cuda.find_nvcc()
    if nvcc is None:
        raise HarnessError("There is no nvcc.")
    found = Findings()
    deadline = time.monotonic() + timeout_s
    task = {"source": subject.preamble + subject.source, "nvcc": str(nvcc), "options": _options(subject.goal.arch)}
    with server.open(JOB, limits=limits(timeout_s)) as session:
        session.send(task)
        try:
            answer, files = session.receive(max(deadline - time.monotonic(), 0.0))
            made = contents(files)
            failed, said = answer["code"] != 0, own_words(str(answer["words"]), nvcc)
        except ChildEnded as ended:
            found.faults.append(early_end(ended, "the source", {}, timed_out=time.monotonic() >= deadline))
            return found
        except (KeyError, TypeError, ValueError) as error:
            found.faults.append(Fault("process.reached_out", f"the build sent what kernelgen does not send: {error}"))
            return found
    if failed:
        found.faults.append(_refusal(said))
    elif len(made) != 2:
        found.faults.append(Fault("compile.no_launch", "the source has no device code of its own"))
    else:
        _read(found, made[0], made[1], subject.entry_point)
    return found


def own_words(said: str, nvcc: Path) -> str:
    """A compiler's words without excerpts of foreign files."""
    toolkit = str(nvcc.resolve().parent.parent)
    kept: list[str] = []
    foreign = False
    for line in said.splitlines():
        head = _HEAD.match(line)
        if head is not None:
            name = head["file"]
            foreign = name != SOURCE and not os.path.abspath(name).startswith((*SYSTEM_FOLDERS, toolkit))
            if foreign:
                kept.append(f"{name}: {NOT_SHOWN}")
        elif foreign and not line.strip():
            foreign = False
        if not foreign:
            kept.append(line)
    return "\n".join(kept)


def plain_name(symbol: str) -> str:
    """A kernel's name without C++'s mangling of its parameters: `_Z10add_kernelPKf` is `add_kernel`."""
    if not symbol.startswith("_Z"):
        return symbol
    rest, parts = symbol[2:].removeprefix("N"), []
    while (length := _LENGTH.match(rest)) is not None:
        size = int(length[1])
        parts.append(rest[length.end() : length.end() + size])
        rest = rest[length.end() + size :]
    return "::".join(parts) or symbol


def _options(arch: str) -> list[str]:
    number = arch.removeprefix("sm_")
    options = ["-shared", "-O3", "-std=c++17", "-Xcompiler=-fPIC", f"-gencode=arch=compute_{number},code=sm_{number}"]
    # pip's packages keep the static run time where nvcc does not look
    return options + [f"-L{root / 'cu13' / 'lib'}" for root in _pip_roots()]


def _pip_roots() -> list[Path]:
    """Folders that pip's CUDA packages install into."""
    spec = find_spec("nvidia")
    return [Path(folder) for folder in (spec.submodule_search_locations or [])] if spec else []


def _refusal(said: str) -> Fault:
    """nvcc's refusal: its first error in the reason, all its words in the detail."""
    lines = said.splitlines()
    first = next((line.strip() for line in lines if _ERROR.search(line)), lines[-1].strip() if lines else "no words")
    check, facts = words.classify(said, {})
    at = _HEAD.match(first)
    line = int(at["line"] or at["colon"]) if at is not None and at["file"] == SOURCE else None
    return Fault(check, f"nvcc refuses the source: {first}", said, line, facts)


def _read(found: Findings, library: bytes, device: bytes, entry_point: str) -> None:
    """Note what the library exports and the kernels use."""
    try:
        exported = elf.exported_functions(library)
        builds = read_builds(device, ())
    except ValueError as error:
        found.faults.append(Fault("compile.other", f"what nvcc made cannot be read: {error}"))
        return
    if entry_point not in exported:
        found.faults.append(_no_launcher(exported, entry_point))
    for build in builds:
        found.add(replace(build, kernel=plain_name(build.kernel)))
    if not builds:
        found.faults.append(Fault("compile.no_launch", "the source has no kernel"))


def _no_launcher(exported: set[str], entry_point: str) -> Fault:
    wanted = f'extern "C" int {entry_point}(…, void* stream)'
    mangled = any(plain_name(symbol) == entry_point for symbol in exported)
    why = f'it is there without extern "C": write {wanted}' if mangled else f"define {wanted}"
    return Fault("compile.launcher", f"the library exports no function {entry_point}; {why}")
