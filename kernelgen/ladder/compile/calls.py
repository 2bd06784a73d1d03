"""The parent's side of a candidate's calls: a target's inputs as plain data that a child can make arguments of.

The child is told dtypes, shapes, strides and numbers, never where they come from. For host code that needs values,
`with_values` gives the bytes of tiny inputs in an open memory file. Imports torch only when called.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from kernelgen.errors import HarnessError
from kernelgen.ladder.inputs import shapes_only
from kernelgen.ladder.reasons import Attempt
from kernelgen.ladder.subject import Goal
from kernelgen.targets.code import TargetCode, load_code

SEED = 20_240_229
# where tensors in a memory file begin
ALIGNMENT = 64

Call = dict[str, Any]


def target_code(goal: Goal) -> TargetCode:
    """The target's Python. Raises ConfigError where it cannot be loaded."""
    return load_code(goal.module, None if goal.folder is None else Path(goal.folder))


def shapes_alone(goal: Goal, code: TargetCode) -> tuple[list[Call], list[str]]:
    """A call for each tune shape with tensors that hold nothing, and the shapes whose inputs cannot be made so."""
    calls, left_out = [], []
    for name, dims in goal.tune.items():
        inputs = shapes_only(code, dims, goal.kinds[0], SEED)
        if inputs is None:
            left_out.append(name)
        else:
            arguments = {argument: _told(value) for argument, value in inputs.items()}
            calls.append({"name": name, "place": "meta", "file": None, "arguments": arguments})
    return calls, left_out


def with_values(goal: Goal, code: TargetCode) -> tuple[list[Call], list[int]]:
    """A call for each smoke shape with real tensors, and the memory files they refer to, open for reading."""
    calls: list[Call] = []
    files: list[int] = []
    for number, (name, dims) in enumerate(goal.smoke.items()):
        with Attempt(Path(code.module)) as making:
            inputs = code.make_inputs(dims, goal.kinds[0], SEED, "cpu")
        if making.failure is not None:
            raise HarnessError(f"The target {goal.name} cannot make inputs of its shape {name}: {making.failure}")
        arguments, content = _contents(inputs)
        files.append(_memory_file(content))
        calls.append({"name": name, "place": "cpu", "file": number, "arguments": arguments})
    return calls, files


def _told(value: Any) -> dict[str, Any]:
    """One argument as plain data."""
    if not hasattr(value, "stride"):
        return {"value": value}
    dtype = str(value.dtype).removeprefix("torch.")
    return {"dtype": dtype, "shape": list(value.shape), "stride": list(value.stride())}


def _contents(inputs: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    """All arguments as plain data, and the bytes of the tensors among them; `at` says where each begins."""
    import torch

    arguments, content = {}, bytearray()
    for name, value in inputs.items():
        arguments[name] = _told(value)
        if isinstance(value, torch.Tensor):
            content.extend(b"\0" * (-len(content) % ALIGNMENT))
            arguments[name]["at"] = len(content)
            content.extend(value.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return arguments, bytes(content) or b"\0"


def _memory_file(content: bytes) -> int:
    descriptor = os.memfd_create("inputs", os.MFD_CLOEXEC)
    with open(descriptor, "wb", closefd=False) as file:
        file.write(content)
    return descriptor
