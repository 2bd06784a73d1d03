"""What a figure depends on beside the code: the GPU's clocks and temperature, what was built, who had which role."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from kernelgen.ladder.channel import read_descriptor
from kernelgen.ladder.elf import sections
from kernelgen.ladder.subject import Subject

QUERIED = (
    "name", "driver_version", "clocks.sm", "clocks.mem", "temperature.gpu", "power.draw", "pstate", "utilization.gpu",
    "memory.used",
)  # fmt: skip
# older drivers have another name for it
REASONS = "clocks_event_reasons.active"
TIMEOUT_S = 20
BUILT = (".cubin", ".so")
# parts of launchers, the same for every kernel
CODE = ".text"
BESIDE = ("__triton_launcher", "cuda_utils")
FILES_MAX, FILE_BYTES = 512, 64 << 20


def gpu_now(index: int) -> dict[str, str]:
    """Clocks, temperature and more of a GPU as nvidia-smi tells them; `absent` says why there is nothing."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return {"absent": "there is no nvidia-smi here"}
    answer = _asked(program, index, (*QUERIED, REASONS))
    return _asked(program, index, QUERIED) if "absent" in answer else answer


def _asked(program: str, index: int, fields: Sequence[str]) -> dict[str, str]:
    command = [program, f"--query-gpu={','.join(fields)}", "--format=csv,noheader", f"--id={index}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"absent": f"nvidia-smi: {type(error).__name__}"}
    values = [value.strip() for value in done.stdout.strip().split(",")]
    if done.returncode != 0 or len(values) != len(fields):
        return {"absent": f"nvidia-smi: {(done.stderr or done.stdout).strip()[:200]}"}
    return dict(zip(fields, values, strict=True))


def role_digest(subject: Subject) -> str:
    """What a side is known by: the digest of its preamble and source."""
    text = f"{subject.preamble}\n{subject.source}"
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def build_digests(folder: Path) -> list[str]:
    """Digests of the machine code in a session's folder, as it lies there; links are not followed."""
    found: list[str] = []
    for place, _, names in os.walk(folder):
        for name in sorted(names):
            if name.endswith(BUILT) and not name.startswith(BESIDE) and len(found) < FILES_MAX:
                digest = _digest(os.path.join(place, name))
                found += [digest] if digest else []
    return sorted(set(found))


def _digest(path: str) -> str | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        held = read_descriptor(descriptor, FILE_BYTES)
    finally:
        os.close(descriptor)
    return None if held is None else f"sha256:{hashlib.sha256(_code(bytes(held))).hexdigest()}"


def _code(built: bytes) -> bytes:
    """The machine code of a build: line tables beside it name the session's folder. All of it where it is no ELF."""
    try:
        parts = [part for part in sections(built) if part.name.startswith(CODE)]
    except ValueError:
        return built
    return b"".join(built[part.offset : part.offset + part.size_bytes] for part in parts) or built
