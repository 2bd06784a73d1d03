"""The parent's side of a candidate's calls: a target's inputs as plain data that a child can make arguments of.

The child is told dtypes, shapes, strides and numbers, never where they come from. For host code that needs values,
`with_values` gives tiny inputs in shared memory. Imports torch.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from kernelgen.errors import HarnessError
from kernelgen.ladder.correctness.tensors import Memory, bytes_of, place
from kernelgen.ladder.inputs import shapes_only
from kernelgen.ladder.reasons import Attempt
from kernelgen.ladder.subject import Goal
from kernelgen.targets.code import TargetCode, load_code

SEED = 20_240_229

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
            continue
        tensors, scalars = _apart(inputs)
        told = {name: [_dtype(held), list(held.shape), list(held.stride())] for name, held in tensors.items()}
        calls.append({"name": name, "place": "meta", "tensors": told, "scalars": scalars})
    return calls, left_out


def with_values(goal: Goal, code: TargetCode) -> tuple[list[Call], list[Memory]]:
    """A call for each smoke shape with real tensors, and the memory each of them is in, in the same order."""
    calls: list[Call] = []
    memories: list[Memory] = []
    for name, dims in goal.smoke.items():
        with Attempt(Path(code.module)) as making:
            tensors, scalars = _apart(code.make_inputs(dims, goal.kinds[0], SEED, "cpu"))
        if making.failure is not None:
            raise HarnessError(f"The target {goal.name} cannot make inputs of its shape {name}: {making.failure}")
        placed, size = place((name, _dtype(held), held.shape) for name, held in tensors.items())
        memory = Memory.create(size)
        for one in placed:
            memory.raw(one).copy_(bytes_of(tensors[one.name].contiguous()))
        told = [one.as_list() for one in placed]
        calls.append({"name": name, "place": "cpu", "size": size, "tensors": told, "scalars": scalars})
        memories.append(memory)
    return calls, memories


def _apart(inputs: dict[str, Any]) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """Tensors, and all else, by argument."""
    tensors = {name: value for name, value in inputs.items() if isinstance(value, torch.Tensor)}
    return tensors, {name: value for name, value in inputs.items() if name not in tensors}


def _dtype(tensor: torch.Tensor) -> str:
    """torch's name of a tensor's type."""
    return str(tensor.dtype).removeprefix("torch.")
