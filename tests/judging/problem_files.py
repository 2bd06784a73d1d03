"""Problems and solutions for the tests, small and in KernelBench's form."""

from __future__ import annotations

import textwrap
from pathlib import Path

HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"
TRITON = "import triton\nimport triton.language as tl\n"

RELU_KERNEL = """
@triton.jit
def relu_kernel(x, out, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + at, mask=at < size, other=0.0)
    tl.store(out + at, tl.maximum(values, 0.0), mask=at < size)


def relu(x):
    out = torch.empty_like(x)
    relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out
"""


def problem(folder: Path, model: str, inputs: str, init: str = "[]", name: str = "problem") -> Path:
    """Write a problem whose class Model is `model`."""
    text = f"{HEAD}\n\n{textwrap.dedent(model)}\n\ndef get_inputs():\n    return {inputs}\n\n"
    return write(folder, name, f"{text}\ndef get_init_inputs():\n    return {init}\n")


def solution(folder: Path, text: str, *, kernels: str = "", name: str = "solution") -> Path:
    """Write a solution; `kernels` stands above it."""
    return write(folder, name, f"{HEAD}{TRITON}\n{textwrap.dedent(kernels)}\n{textwrap.dedent(text)}")


def write(folder: Path, name: str, text: str) -> Path:
    """Write a Python file."""
    path = folder / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    return path
