"""What a compiled kernel uses: registers, stack and machine instructions, read from its cubin.

Runs the `cuobjdump` and `nvdisasm` that Triton bundles: no CUDA toolkit and no GPU.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelgen.errors import HarnessError

# tensor cores (warp group, fp8 warp group, warp), bulk tensor copies, spilled registers
TELLING_INSTRUCTIONS = ("HGMMA", "QGMMA", "HMMA", "UTMALDG", "LDL", "STL")
WORD_BYTES = 4
TOOL_TIMEOUT_S = 60

_RESOURCES = re.compile(r"REG:(\d+) STACK:(\d+)")
# `/*0150*/  @P0 HGMMA.64x64x16.F32.BF16 R24, …`: the opcode behind an optional predicate, without its modifiers
_OPCODE = re.compile(r"^\s*/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_]*)", re.MULTILINE)


@dataclass(frozen=True)
class Resources:
    """What one thread of a kernel uses."""

    registers: int
    """32-bit registers."""
    spills: int
    """32-bit words of stack, which Triton reports as spills: an array indexed at run time counts too."""


def resources(cubin: bytes) -> Resources:
    """Registers and spills of the kernel in a cubin.

    Raises:
        HarnessError: the bundled cuobjdump is missing or says something unknown.
    """
    said = _bundled("cuobjdump", ["-res-usage"], cubin)
    found = _RESOURCES.search(said)
    if found is None:
        raise HarnessError(f"cuobjdump reports no registers: {said.strip()[-200:]!r}")
    return Resources(int(found[1]), int(found[2]) // WORD_BYTES)


def instruction_counts(cubin: bytes, opcodes: Sequence[str] = TELLING_INSTRUCTIONS) -> dict[str, int]:
    """How often each opcode stands in the machine code, modifiers aside; in the order of `opcodes`."""
    counts = Counter(_OPCODE.findall(_bundled("nvdisasm", ["-c"], cubin)))
    return {opcode: counts[opcode] for opcode in opcodes}


def _bundled(tool: str, options: list[str], cubin: bytes) -> str:
    """Output of one of Triton's tools on a cubin."""
    import triton

    path = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / tool
    if not path.is_file():
        raise HarnessError(f"Triton's bundled {tool} is missing at {path}; install Triton anew.")
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        done = subprocess.run(
            [path, *options, file.name], capture_output=True, text=True, timeout=TOOL_TIMEOUT_S, check=False
        )
    if done.returncode != 0:
        raise HarnessError(f"{tool} ended with code {done.returncode}: {done.stderr.strip()[-200:]}")
    return done.stdout
