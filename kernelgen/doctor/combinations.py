"""Combinations known to go wrong, each in a sentence with its mend; none where nothing is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kernelgen.doctor.facts import Facts
from kernelgen.ladder.install import NUMPY_LINE, TORCH_CUDA_LINE

INTERPRETER_FAULT = (3, 6)
"""The Triton whose interpreter cannot take what numpy gives it from `NUMPY_CHANGE` on."""
NUMPY_CHANGE = (2, 4)
LITTLE_ROOM_GIB = 1.0
MIG_ON = "Enabled"


@dataclass(frozen=True)
class Finding:
    """Something to know about this machine."""

    sentence: str
    """What goes wrong, and where."""
    install: str | None = None
    """The command that mends it, where one does."""


def findings(facts: Facts) -> list[Finding]:
    """What is known to go wrong with what is here."""
    return [*_packages(facts), *_gpu(facts), *_containment(facts), *_places(facts)]


def _packages(facts: Facts) -> Iterator[Finding]:
    triton, numpy = facts.version("triton"), facts.version("numpy")
    if triton and numpy and _parts(triton) == INTERPRETER_FAULT and _parts(numpy) >= NUMPY_CHANGE:
        yield Finding(
            f"Triton {triton}'s interpreter fails under numpy {numpy} on loops with a run-time bound; kernelgen mends "
            "that for its own checks, TRITON_INTERPRET=1 elsewhere does not.",
            NUMPY_LINE,
        )
    yield from (Finding(sentence) for sentence in facts.unmet.value or ())


def _gpu(facts: Facts) -> Iterator[Finding]:
    build, built_for = facts.torch_build.value or ("", None)
    driver, has_gpu = facts.driver.value, bool(facts.gpus())
    if has_gpu and build == "CPU build":
        yield Finding("There is a GPU, and torch is a CPU build: L2 is only a logic check.", TORCH_CUDA_LINE)
    if built_for and driver and driver.cuda and driver.cuda[0] < built_for[0]:
        yield Finding(
            f"The GPU's driver takes CUDA {_dotted(driver.cuda)} and torch is built for CUDA {_dotted(built_for)}: "
            "install a newer driver, or a torch built for the driver's CUDA."
        )
    elif has_gpu and driver and driver.problem:
        yield Finding(f"There is a GPU, and no CUDA program can open it: {driver.problem}.")
    if any(gpu.mig == MIG_ON for gpu in facts.gpus()):
        yield Finding("MIG splits a GPU here: an instance has less of everything than its hardware config says.")


def _containment(facts: Facts) -> Iterator[Finding]:
    broken = (facts.containment.value or {}).get("broken")
    if broken:
        yield Finding(
            f"Candidates cannot be contained here: {'; '.join(broken)}. The ladder runs their code only with "
            "containment=off, which the verdict records."
        )


def _places(facts: Facts) -> Iterator[Finding]:
    room, log = facts.free_gib.value, facts.log.value
    if room is not None and room < LITTLE_ROOM_GIB:
        yield Finding(f"The disk of the working folder has {room:g} GiB left.")
    if log is not None and log.problem is not None:
        yield Finding(f"The event log {log.path}: {log.problem.removesuffix('.')}.")


def _parts(version: str) -> tuple[int, ...]:
    """Major and minor of a version; empty where it is not written in numbers."""
    parts = version.split(".")[:2]
    return tuple(int(part) for part in parts) if all(part.isdecimal() for part in parts) else ()


def _dotted(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))
