"""Builds CUDA C++ candidates with nvcc, and calls their launchers.

A `.cu` ends in a launcher `extern "C" int NAME(pointers…, scalars…, dims…, outputs…, void* stream)` that returns the
CUDA error code; it includes no torch headers, so it builds in about a second. nvcc is the machine's, or pip's.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelgen.errors import BadInput
from kernelgen.ladder import child
from kernelgen.ladder.install import NVCC_LINE

BUILD_TIMEOUT_S = 600
DEFAULT_TOOLKIT = Path("/usr/local/cuda")
# from here on the arch-specific instructions, such as wgmma, need the suffix
FIRST_ARCH_SPECIFIC = 90

_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")
_SPILLS = re.compile(r"(\d+) bytes spill stores")


@dataclass(frozen=True)
class Built:
    """What nvcc made of a source."""

    failure: str | None
    """nvcc's words where it refused; None where it built."""
    kernels: int = 0
    """How many kernels the source has."""
    registers: int = 0
    """32-bit registers of a thread, at most over the kernels."""
    spill_bytes: int = 0
    """Bytes of spill stores of a thread, at most over the kernels."""
    shared_bytes: int = 0
    """Static shared memory of a block, at most over the kernels; what a launch asks for dynamically is not known."""


def arch_name(compute_capability: int) -> str:
    """nvcc's name of an architecture: 90 is `sm_90a`."""
    return f"sm_{compute_capability}{'a' if compute_capability >= FIRST_ARCH_SPECIFIC else ''}"


def find_nvcc() -> Path | None:
    """nvcc by CUDA_HOME, CUDA_PATH, PATH, pip's package or the default toolkit folder, in this order; None without."""
    homes = [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    on_path = shutil.which("nvcc")
    packaged = [root / part for root in _pip_roots() for part in ("cu13", "cuda_nvcc")]
    found = [
        *(Path(home, "bin", "nvcc") for home in homes),
        *([Path(on_path)] if on_path else []),
        *(home / "bin" / "nvcc" for home in (*packaged, DEFAULT_TOOLKIT)),
    ]
    return next((path for path in found if os.access(path, os.X_OK) and path.is_file()), None)


def build(source: Path, library: Path, arch: str, *, timeout_s: float = BUILD_TIMEOUT_S) -> Built:
    """Compile a `.cu`, device and host code, to a shared library.

    Args:
        source: the `.cu`.
        library: where the library goes.
        arch: one real architecture, such as `sm_90a`.
        timeout_s: seconds nvcc may take.

    Raises:
        BadInput: there is no nvcc.
    """
    nvcc = find_nvcc()
    if nvcc is None:
        raise BadInput(f"CUDA C++ needs nvcc: {NVCC_LINE}.")
    number = arch.removeprefix("sm_")
    options = ["-shared", "-O3", "-std=c++17", "-Xcompiler=-fPIC", "-Xptxas=-v"]
    options += [f"-gencode=arch=compute_{number},code=sm_{number}"]
    # pip's packages keep the static run time where nvcc does not look
    options += [f"-L{path}" for root in _pip_roots() for path in (root / "cu13" / "lib",) if path.is_dir()]
    with tempfile.TemporaryDirectory(prefix="kernelgen-") as folder:
        ended = child.run([nvcc, *options, "-o", library, source], timeout_s=timeout_s, folder=Path(folder))
    if ended.failure is not None:
        return Built(f"nvcc {ended.failure}: {_first_error(ended.output)}")
    registers = [int(number) for number in _USED.findall(ended.output)]
    return Built(
        failure=None,
        kernels=len(registers),
        registers=max(registers, default=0),
        spill_bytes=max(map(int, _SPILLS.findall(ended.output)), default=0),
        shared_bytes=max(map(int, _SHARED.findall(ended.output)), default=0),
    )


def load(path: Path, entry_point: str, *, arch: str | None = None) -> Callable[..., None]:
    """Build a `.cu` for the GPU here and return its launcher.

    Args:
        path: the `.cu`.
        entry_point: the launcher's name.
        arch: architecture to build for; None takes the present GPU's.

    Returns:
        A function of tensors, floats and ints in the launcher's order, without the stream, which is torch's current
        one. It raises TypeError for another type, BadInput for a tensor that is not contiguous, and RuntimeError where
        the launcher returns an error code.

    Raises:
        BadInput: there is no nvcc, no GPU to build for, nvcc refuses the source, or it has no such launcher.
    """
    with tempfile.TemporaryDirectory(prefix="kernelgen-") as folder:
        library = Path(folder, f"{path.stem}.so")
        built = build(path, library, arch or _present_arch())
        if built.failure is not None:
            raise BadInput(f"{path.name} does not build: {built.failure}")
        # once loaded, the file may go
        loaded = ctypes.CDLL(str(library))
    launcher = getattr(loaded, entry_point, None)
    if launcher is None:
        raise BadInput(f'{path.name} has no launcher: define extern "C" int {entry_point}(…, void* stream).')
    launcher.restype = ctypes.c_int
    return calling(launcher, entry_point)


def calling(launcher: Any, name: str) -> Callable[..., None]:
    """A C launcher as a function of tensors and numbers."""

    def launch(*arguments: Any) -> None:
        converted = [_c_value(name, position, argument) for position, argument in enumerate(arguments)]
        stream = ctypes.c_void_p(_current_stream(arguments))
        code = launcher(*converted, stream)
        if code != 0:
            raise RuntimeError(f"{name} returned CUDA error code {code}")

    return launch


def _c_value(name: str, position: int, value: Any) -> Any:
    """A tensor as its pointer, a float as double, an int as int64_t."""
    if isinstance(value, float):
        return ctypes.c_double(value)
    if isinstance(value, int):
        return ctypes.c_int64(value)
    if not hasattr(value, "data_ptr"):
        raise TypeError(f"{name}: argument {position} is a {type(value).__name__}, not a tensor, float or int")
    if not value.is_contiguous():
        raise BadInput(f"{name}: argument {position} is not contiguous; pass tensor.contiguous().")
    return ctypes.c_void_p(value.data_ptr())


def _current_stream(arguments: tuple[Any, ...]) -> int | None:
    """torch's current stream on the device of the tensors; None where none is on a GPU."""
    on_gpu = [argument.device for argument in arguments if getattr(argument, "is_cuda", False)]
    if not on_gpu:
        return None
    import torch

    return int(torch.cuda.current_stream(on_gpu[0]).cuda_stream)


def _present_arch() -> str:
    """The architecture of the current GPU."""
    import torch

    if not torch.cuda.is_available():
        raise BadInput("There is no CUDA GPU here to build for: name an arch, such as sm_90a.")
    major, minor = torch.cuda.get_device_capability()
    return arch_name(10 * major + minor)


def _pip_roots() -> list[Path]:
    """Folders of the `nvidia` namespace that pip's CUDA packages install into."""
    spec = importlib.util.find_spec("nvidia")
    return [Path(folder) for folder in (spec.submodule_search_locations or [])] if spec else []


def _first_error(output: str) -> str:
    """nvcc's first error line, or the end of its words where none says error."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    return (errors or lines[-1:] or ["no words"])[0]
