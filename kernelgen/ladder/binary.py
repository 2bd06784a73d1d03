"""What the kernels of a cubin use, read by the parent itself: a child's word about them counts for nothing.

Runs `cuobjdump` and `nvdisasm`, Triton's own or the toolkit's, on bytes that a candidate may have made up: what these
tools cannot read is a `ValueError`, and so a fault of the candidate; a tool that is missing is told apart beforehand by
`missing_tool`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from kernelgen.ladder import elf
from kernelgen.ladder.install import KERNELS_LINE

# tensor cores by warp group, warp and tensor memory; bulk tensor copies; spilled registers
COUNTED = (
    "HGMMA", "QGMMA", "IGMMA", "HMMA", "QMMA", "IMMA", "UTCHMMA", "UTCQMMA", "UTCIMMA",
    "UTMALDG", "UTMASTG", "LDL", "STL",
)  # fmt: skip
LARGEST_BYTES = 64 * 1024 * 1024
WORD_BYTES = 4
TOOL_TIMEOUT_S = 60
STATIC_SHARED = ".nv.shared."
# from sm_90 on a block's own section counts what the system keeps for itself, which is no part of the limit
RESERVED_SHARED, RESERVED_BYTES = ".nv.shared.reserved.0", 1024

_RESOURCES = re.compile(r"^\s*Function (\S+):\s*\n\s*REG:(\d+) STACK:(\d+)", re.MULTILINE)
_BODY = re.compile(r"^\.text\.(\S+):$", re.MULTILINE)
# `/*0150*/  @P0 HGMMA.64x64x16.F32.BF16 R24, …`: the opcode behind an optional predicate, without its modifiers
_OPCODE = re.compile(r"^\s*/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_]*)", re.MULTILINE)


@dataclass(frozen=True)
class Used:
    """What one kernel of a cubin uses."""

    name: str
    """As the linker has it: mangled for a C++ kernel."""
    registers: int
    """32-bit registers of a thread."""
    stack_bytes: int
    """Local memory of a thread: spilled registers and arrays indexed at run time."""
    static_shared_bytes: int
    """Shared memory of a block that is known without a launch."""
    instructions: dict[str, int] = field(default_factory=dict)
    """How often each telling instruction stands in the machine code; those that do not are left out."""


def missing_tool() -> str | None:
    """What to install where `cuobjdump` or `nvdisasm` cannot be found; None where both are there."""
    gone = [name for name in ("cuobjdump", "nvdisasm") if _tool(name) is None]
    return f"{' and '.join(gone)} not found: {KERNELS_LINE}" if gone else None


def read(binary: bytes, further: Sequence[str] | None = ()) -> list[Used]:
    """The kernels of a cubin, in its order; empty where it has none.

    Args:
        binary: the cubin.
        further: instructions to count beside `COUNTED`; None counts none, which saves most of the time.

    Raises:
        ValueError: these bytes are no cubin that the tools can read.
    """
    if len(binary) > LARGEST_BYTES:
        raise ValueError(f"a binary of {len(binary)} bytes, more than {LARGEST_BYTES}")
    shared = _static_shared(elf.sections(binary))
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(binary)
        file.flush()
        resources = _RESOURCES.findall(_run("cuobjdump", ["-res-usage", file.name]))
        counts: dict[str, dict[str, int]] = {}
        if resources and further is not None:
            counts = _counts(_run("nvdisasm", ["-c", "-ndf", file.name]), {*COUNTED, *further})
    return [
        Used(name, int(registers), int(stack), shared.get(name, 0), counts.get(name, {}))
        for name, registers, stack in resources
    ]


def _static_shared(sections: list[elf.Section]) -> dict[str, int]:
    """Static shared memory by kernel, without the system's own."""
    sizes = {section.name: section.size_bytes for section in sections if section.name.startswith(STATIC_SHARED)}
    reserved = RESERVED_BYTES if sizes.pop(RESERVED_SHARED, None) is not None else 0
    return {name.removeprefix(STATIC_SHARED): size - reserved for name, size in sizes.items()}


def _counts(code: str, opcodes: set[str]) -> dict[str, dict[str, int]]:
    """Telling instructions by kernel."""
    _, *parts = _BODY.split(code)
    counts = {}
    for name, body in zip(parts[::2], parts[1::2], strict=True):
        found = Counter(opcode for opcode in _OPCODE.findall(body) if opcode in opcodes)
        counts[name] = dict(sorted(found.items()))
    return counts


def _run(name: str, arguments: list[str]) -> str:
    tool = _tool(name)
    if tool is None:
        raise ValueError(f"{name} is missing")
    try:
        done = subprocess.run(
            [tool, *arguments], capture_output=True, text=True, errors="replace", timeout=TOOL_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise ValueError(f"a binary that {name} did not finish within {TOOL_TIMEOUT_S} s") from error
    if done.returncode != 0:
        said = " ".join(done.stderr.split())[-200:]
        raise ValueError(f"a binary that {name} refuses: {said}")
    return done.stdout


@cache
def _tool(name: str) -> Path | None:
    """Triton's own tool, else the toolkit's."""
    triton = find_spec("triton")
    roots = [Path(root, "backends", "nvidia", "bin") for root in (triton and triton.submodule_search_locations) or ()]
    roots += [Path(os.environ[variable], "bin") for variable in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(variable)]
    found = next((root / name for root in roots if os.access(root / name, os.X_OK)), None)
    on_path = shutil.which(name)
    return found or (Path(on_path) if on_path else None)
