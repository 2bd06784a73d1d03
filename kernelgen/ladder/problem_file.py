"""Loads a problem file: imports it, and learns the forms of its inputs and outputs and what it asks of torch.

That takes one call, which computes nothing where torch's fake tensors can be had. Then the problem is tried (see
`problem_trial`). Everything that its code raises is one sentence of BadInput.
"""

from __future__ import annotations

import importlib.util
import secrets
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from kernelgen import python_source
from kernelgen.errors import BadInput
from kernelgen.ladder.problem import (
    SEED_INPUT,
    Argument,
    Problem,
    argument_names,
    identifier,
    is_plain,
    sentence,
    spec_of,
)
from kernelgen.ladder.problem_trial import FAULTS, SEED, Loaded, tried
from kernelgen.ladder.torch_work import Work, tensors, work_of

PARTS = ("Model", "get_inputs", "get_init_inputs")


def load(path: Path) -> Loaded:
    """A problem file, ready to judge by. Raises BadInput with the reason where it cannot be."""
    module = _imported(path)
    try:
        init = module.get_init_inputs()
    except FAULTS as error:
        raise sentence(path, "get_init_inputs", error) from error
    if not isinstance(init, list | tuple):
        raise BadInput(
            f"{path}: get_init_inputs gave a {type(init).__name__}; it must give a list of what Model is made with."
        )
    problem = Problem(path, module.Model, module.get_inputs, list(init), secrets.randbits(63))
    work = _learned(problem)
    return tried(problem, work)


def _imported(path: Path) -> ModuleType:
    """The problem's module, with its three parts."""
    try:
        text = path.read_text(encoding="utf-8")
        python_source.parse(text)
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"The problem file {path} cannot be read: {error}.") from error
    except SyntaxError as error:
        place = f", line {error.lineno}" if error.lineno is not None else ""
        raise BadInput(f"{path}{place}: the problem is not Python: {error.msg}.") from error
    name = f"kernelgen_problem_file_{sha256(str(path.resolve()).encode()).hexdigest()[:16]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise BadInput(f"{path} is not a Python file; a problem is one with {', '.join(PARTS)}.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where dataclasses and pickles of it are looked up
    try:
        spec.loader.exec_module(module)
    except FAULTS as error:
        del sys.modules[name]
        raise sentence(path, "its import", error) from error
    missing = [part for part in PARTS if not callable(getattr(module, part, None))]
    if missing:
        raise BadInput(f"{path} is no problem: it has no {missing[0]}; it needs {', '.join(PARTS)}.")
    return module


def _learned(problem: Problem) -> Work:
    """Fill in the forms of inputs and outputs, and what a call asks of torch."""
    # only now: it costs a second to import
    from torch._subclasses.fake_tensor import FakeTensorMode

    try:
        return _learn(problem, lambda: FakeTensorMode(allow_non_fake_inputs=True))
    except (BadInput, *FAULTS):
        # it may need values: for real, then
        return _learn(problem, nullcontext)


def _learn(problem: Problem, mode: Callable[[], AbstractContextManager[Any]]) -> Work:
    path = problem.path
    with mode(), torch.no_grad():
        given = _raising(path, "get_inputs", lambda: problem.given(SEED))
        model = _raising(path, "Model", lambda: problem.made(SEED))
        names = argument_names(model, len(given))
        problem.arguments = tuple(_argument(path, name, value) for name, value in zip(names, given, strict=True))
        held: dict[str, Any] = {name: value for name, value in zip(names, given, strict=True) if torch.is_tensor(value)}
        problem.scalars = {
            argument.name: "int" if type(argument.value) is int else "float"
            for argument in problem.arguments
            if argument.is_input and argument.name not in held
        }
        state = model.state_dict() if isinstance(model, torch.nn.Module) else {}
        problem.parameters = {}
        for theirs in state:
            taken = {*names, *problem.parameters}
            problem.parameters[identifier(f"model_{theirs}", taken)] = theirs
        held |= {name: state[theirs] for name, theirs in problem.parameters.items()}
        if not is_plain(list(held.values())):
            raise BadInput(f"{path}: a sparse or quantised tensor cannot be passed to a solution.")
        problem.inputs = (*(spec_of(name, value) for name, value in held.items()), (SEED_INPUT, "int64", [1]))
        answer: list[Any] = []
        work = _counted(problem, lambda: answer.append(_raising(path, "Model's forward", lambda: model(*given))))
    found = tensors(answer)
    if not found:
        raise BadInput(f"{path}: Model's forward gives no tensor.")
    outputs = ["out"] if len(found) == 1 else [f"out{index}" for index in range(len(found))]
    problem.outputs = tuple(spec_of(name, value) for name, value in zip(outputs, found, strict=True))
    return work


def _counted(problem: Problem, run: Callable[[], None]) -> Work:
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        work = work_of(run)
    problem.operations = float(counter.get_total_flops())
    return work


def _raising(path: Path, what: str, run: Callable[[], Any]) -> Any:
    try:
        return run()
    except BadInput:
        raise
    except FAULTS as error:
        raise sentence(path, what, error) from error


def _argument(path: Path, name: str, value: Any) -> Argument:
    if torch.is_tensor(value):
        return Argument(name)
    if type(value) in (int, float):
        return Argument(name, value)
    if literal(value) is None:
        raise BadInput(
            f"{path}: get_inputs gives a {type(value).__name__} as {name}; it must give tensors and plain values."
        )
    return Argument(name, value, is_input=False)


def literal(value: Any) -> str | None:
    """A plain value as Python source that makes it again where torch is known; None for anything else."""
    if isinstance(value, torch.dtype | torch.device):
        return str(value) if isinstance(value, torch.dtype) else f"torch.device({str(value)!r})"
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return f"float({str(value)!r})"
    if value is None or type(value) in (bool, int, float, str):
        return repr(value)
    if type(value) in (list, tuple):
        parts = [literal(part) for part in value]
        if None in parts:
            return None
        inner = ", ".join(part for part in parts if part is not None)
        return f"[{inner}]" if type(value) is list else f"({inner}{',' if len(parts) == 1 else ''})"
    return None
