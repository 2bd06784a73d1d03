"""L1: whether a candidate builds for the hardware, without a GPU, and what its kernels use.

Triton and TileLang compile what the host wrapper launches at the tune shapes, in a contained child; CUDA C++ is built
with nvcc, contained too. Registers, stack, shared memory and machine instructions are read from the binaries by the
parent. It does not say that a kernel is right, or that a launch succeeds: a candidate could make up binaries, which the
GPU then finds out. Shared memory asked for at a launch is what the compiler says for Triton and TileLang, and not known
for CUDA C++.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import TYPE_CHECKING

from kernelgen.ladder import binary
from kernelgen.ladder.compile import tools
from kernelgen.ladder.compile.report import Findings, conclude
from kernelgen.ladder.cuda import find_nvcc
from kernelgen.ladder.install import KERNELS_LINE, NVCC_LINE, TILELANG_LINE
from kernelgen.ladder.results import Result
from kernelgen.ladder.subject import Subject

if TYPE_CHECKING:
    from kernelgen.ladder.server import Server

ServerFor = Callable[[str], "Server"]
"""A running server by its kind; the caller owns it."""

TRITON_JOB = "kernelgen.ladder.compile.triton:job"
TILELANG_JOB = "kernelgen.ladder.compile.tilelang:job"
COMPILERS = {"triton": "triton", "tilelang": "tilelang", "cuda": "nvcc"}
"""Whose word a DSL's L1 brings: also the key of its version in a result's environment."""
NEEDED = {"triton": {"triton": KERNELS_LINE}, "tilelang": {"tilelang": TILELANG_LINE}, "cuda": {}}
KINDS = {"triton": "compiler", "tilelang": "tilelang", "cuda": "plain"}
"""The server each DSL is compiled by."""


def compile_candidate(subject: Subject, *, server_for: ServerFor, timeout_s: float) -> Result:
    """The result of L1. Raises HarnessError where kernelgen itself or the target is at fault.

    Args:
        subject: the candidate.
        server_for: gives the server of a kind; one call, `KINDS[subject.dsl]`.
        timeout_s: seconds the compile may take in all.
    """
    missing = what_is_missing(subject.dsl)
    if missing is not None:
        return Result("L1", "inconclusive", missing)
    started = time.monotonic()
    server = server_for(KINDS[subject.dsl])
    found = _compiled(subject, server, timeout_s)
    return conclude(
        found,
        entry_point=subject.entry_point,
        arch=subject.goal.arch,
        shared_limit=subject.goal.shared_bytes_per_block,
        instructions=subject.goal.instructions,
        environment=_environment(subject, server),
        seconds=time.monotonic() - started,
    )


def what_is_missing(dsl: str) -> str | None:
    """What this machine lacks to compile a DSL, with how it is installed; None where nothing is."""
    for package, line in {"torch": KERNELS_LINE, **NEEDED[dsl]}.items():
        if find_spec(package) is None:
            return f"{package} is not installed: {line}"
    if dsl != "triton" and find_nvcc() is None:
        return f"there is no nvcc: {NVCC_LINE}"
    return binary.missing_tool()


def compiler_environment(subject: Subject) -> dict[str, str]:
    """The compiler, its version, its assembler's, and the architecture: what a fault of L1 holds for."""
    compiler = COMPILERS[subject.dsl]
    found = {"nvcc": tools.nvcc_version()} if subject.dsl != "triton" else {"ptxas": tools.ptxas_version()}
    found |= {} if compiler == "nvcc" else {compiler: _version(compiler)}
    return {"compiler": compiler, "compiler_version": found[compiler], **found, "arch": subject.goal.arch}


def _environment(subject: Subject, server: Server) -> dict[str, str]:
    """What the result depends on; the server's word on versions goes before this process's."""
    seen = {**compiler_environment(subject), **server.environment}
    return {**seen, "compiler_version": seen[seen["compiler"]]}


def _compiled(subject: Subject, server: Server, timeout_s: float) -> Findings:
    if subject.dsl == "cuda":
        from kernelgen.ladder.compile.cuda import build

        return build(subject, server, timeout_s)
    from kernelgen.ladder.compile.collect import compile_in_child

    job = TRITON_JOB if subject.dsl == "triton" else TILELANG_JOB
    return compile_in_child(subject, server, job, timeout_s)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # a source tree on the path
        return "unknown"
