"""What a candidate's own `python x.py` runs: its checks, as far as this machine allows, a plain line each.

    compile      every kernel compiles for the target's card; needs no GPU
    interpreter  the correctness test on the CPU, where there is no GPU; a logic check
    gpu          the correctness test on the GPU

Exit code 0: nothing failed; 1: something failed; 2: nothing could be checked, or bad input. It is the candidate's own
test, for its reader, and decides no verdict. Each check runs the candidate in a process that can be killed; this one
never imports it. Needs Python alone, and says what else is missing.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import platform
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from kernelgen.errors import BadInput, HarnessError, KernelgenError
from kernelgen.ladder import child, cuda, declaration
from kernelgen.ladder.declaration import Declaration
from kernelgen.ladder.install import KERNELS_LINE, NVCC_LINE, TILELANG_LINE

TIMEOUT_S = 600.0
NOTHING_CHECKED = 2
# of the interpreter's time, for beginning with further configurations
BUDGET_SHARE = 0.5
PACKAGES = {
    "triton": {"torch": KERNELS_LINE, "triton": KERNELS_LINE},
    "tilelang": {"torch": KERNELS_LINE, "tilelang": TILELANG_LINE},
    "cuda": {"torch": KERNELS_LINE},
}


@dataclass(frozen=True)
class Check:
    """One line of a self-test."""

    name: str
    """What was checked."""
    status: Literal["passed", "failed", "not here"]
    """`not here`: something is missing that the check needs."""
    note: str = ""
    """Figures, reason, or what is missing and how it is installed."""
    detail: str | None = None
    """The traceback or the compiler's words, whole, where it failed."""
    builds: list[dict[str, Any]] = field(default_factory=list)
    """Compiled configurations with their resources."""

    def line(self) -> str:
        """The check in one line."""
        return ": ".join(part for part in (self.name, self.status, self.note) if part)


def main(file: str, argv: Sequence[str] | None = None) -> int:
    """Check one candidate file and print what came of it; the exit code.

    Args:
        file: the candidate, or for CUDA C++ its `.cu` or the test beside it.
        argv: `--json`, `--timeout SECONDS`; None takes the command line's.
    """
    options = _parser(with_files=False).parse_args(sys.argv[1:] if argv is None else list(argv))
    return _report(Path(file), as_json=options.json, timeout_s=options.timeout)


def checks(file: Path, *, timeout_s: float = TIMEOUT_S) -> list[Check]:
    """Check a candidate file: packages first, then whatever they allow.

    Raises:
        BadInput: the file does not declare itself as a candidate, or its target cannot be loaded.
        HarnessError: a check could not be made.
    """
    declared = declaration.read(file)
    packages = [Check("python", "passed", platform.python_version())]
    packages += [_package(name, line) for name, line in PACKAGES[declared.dsl].items()]
    missing = [check for check in packages if check.status == "not here"]
    if missing:
        return [*packages, Check("checks", "not here", f"{missing[0].name}: {missing[0].note}")]
    compiled = COMPILE[declared.dsl](declared, timeout_s)
    if _has_gpu():
        return [*packages, compiled, _in_child("gpu", declared, timeout_s)]
    tested = [_interpreted(declared, timeout_s)] if declared.dsl == "triton" else []
    return [*packages, compiled, *tested, Check("gpu", "not here", "no CUDA GPU that torch can use")]


def exit_code(made: Sequence[Check]) -> int:
    """0 nothing failed, 1 something failed, 2 nothing could be checked; packages alone are no check."""
    statuses = {check.status for check in made if check.name in ("compile", "interpreter", "gpu")}
    if "failed" in statuses:
        return 1
    return 0 if "passed" in statuses else NOTHING_CHECKED


def _compile_triton(declared: Declaration, timeout_s: float) -> Check:
    return _in_child("compile", declared, timeout_s)


def _compile_tilelang(declared: Declaration, timeout_s: float) -> Check:
    return Check("compile", "not here", "TileLang compiles a kernel for the GPU it is called on: the gpu check does it")


def _compile_cuda(declared: Declaration, timeout_s: float) -> Check:
    """Build the `.cu` for the target's arch and look for its launcher."""
    arch = cuda.arch_name(declared.arch)
    if cuda.find_nvcc() is None:
        return Check("compile", "not here", f"nvcc: {NVCC_LINE}")
    if not declared.source.is_file():
        raise BadInput(f"{declared.file} has no {declared.source.name} beside it.")
    with tempfile.TemporaryDirectory(prefix="kernelgen-") as folder:
        library = Path(folder, "candidate.so")
        built = cuda.build(declared.source, library, arch, timeout_s=timeout_s)
        if built.failure is not None:
            return Check("compile", "failed", built.failure)
        launcher = _in_child("launcher", declared, timeout_s, str(library))
    if launcher.status == "failed":
        return Check("compile", "failed", launcher.note, launcher.detail)
    note = (
        f"compiled for {arch}: {built.kernels} kernel{'' if built.kernels == 1 else 's'}; registers up to "
        f"{built.registers}, spills {built.spill_bytes} B, static shared up to {built.shared_bytes} B"
    )
    return Check("compile", "passed", note)


COMPILE = {"triton": _compile_triton, "tilelang": _compile_tilelang, "cuda": _compile_cuda}


def _interpreted(declared: Declaration, timeout_s: float) -> Check:
    budget = str(timeout_s * BUDGET_SHARE)
    return _in_child("interpreter", declared, timeout_s, budget, variables={"TRITON_INTERPRET": "1"})


def _in_child(
    name: str, declared: Declaration, timeout_s: float, *further: str, variables: dict[str, str] | None = None
) -> Check:
    """Make one check in a process of its own."""
    ended = child.python(
        "kernelgen.ladder.checks",
        [name, str(declared.file), *further],
        timeout_s=timeout_s,
        interpreter=sys.executable,
        variables=variables,
    )
    if ended.failure is not None:
        return Check(name, "failed", ended.failure, ended.output)
    if ended.record is None:
        return Check(name, "failed", "ended the process before the check was done", ended.output)
    if "error" in ended.record:
        raise HarnessError(f"The {name} check could not be made: {ended.record['error']}")
    try:
        return Check(name, **ended.record)
    except TypeError as error:
        raise HarnessError(f"The {name} check left a record of another form: {error}") from error


def _package(name: str, install_line: str) -> Check:
    """Whether a package is installed, without importing it."""
    if importlib.util.find_spec(name) is None:
        return Check(name, "not here", install_line)
    try:
        return Check(name, "passed", importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:  # a source tree on the path
        return Check(name, "passed", "version unknown")


def _has_gpu() -> bool:
    import torch

    return bool(torch.cuda.is_available())


def _report(file: Path, *, as_json: bool, timeout_s: float, titled: bool = False) -> int:
    """Check a file, print the lines or one JSON record, and return the exit code."""
    try:
        made = checks(file, timeout_s=timeout_s)
    except KernelgenError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    code = exit_code(made)
    if as_json:
        print(json.dumps({"file": str(file), "exit_code": code, "checks": [asdict(check) for check in made]}))
        return code
    if titled:
        print(file)
    for check in made:
        print(check.line())
        if check.detail:
            print(check.detail.rstrip(), file=sys.stderr)
    return code


def _parser(*, with_files: bool) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Checks a candidate's kernels as far as this machine allows.")
    if with_files:
        parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="candidate: .py, or .cu with its test")
    parser.add_argument("--json", action="store_true", help="print one JSON record a file instead of lines")
    parser.add_argument("--timeout", type=float, default=TIMEOUT_S, metavar="SECONDS", help="limit of each check")
    return parser


def _command_line() -> int:
    options = _parser(with_files=True).parse_args()
    titled = len(options.files) > 1
    codes = [_report(file, as_json=options.json, timeout_s=options.timeout, titled=titled) for file in options.files]
    return 1 if 1 in codes else max(codes)


if __name__ == "__main__":
    sys.exit(_command_line())
