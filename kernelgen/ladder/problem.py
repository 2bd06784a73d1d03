"""A KernelBench-style problem (Model, get_inputs, get_init_inputs) as the five functions of a target.

The judge's own process imports the problem's file, which its user trusts, and never a solution. Inputs are what
get_inputs gives, then the Model's parameters and buffers, then the seed that a solution's model is made under: one seed
a kind of inputs, so that weights differ from kind to kind and stay as they are within one. Shapes are the problem's.
The reference works in float64 where the Model lets it. Nothing here says that the problem is a good one but `doubts`.
"""

from __future__ import annotations

import copy
import inspect
import random
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch

from kernelgen.errors import BadInput, ConfigError, nearest
from kernelgen.ladder.problem_compare import distance, tolerances
from kernelgen.ladder.problem_inputs import KINDS, PLAIN, vary
from kernelgen.ladder.torch_work import tensors
from kernelgen.targets.code import MODULE_FAULTS
from kernelgen.targets.compare import ToleranceTable, exact_distance, structure
from kernelgen.targets.findings import Spec, raised

SEED_INPUT = "construction_seed"
SEEDS = 2**31


@dataclass(frozen=True)
class Argument:
    """One argument of the Model's forward."""

    name: str
    """Its name."""
    value: Any = None
    """What is passed where that is no tensor and no number."""
    is_input: bool = True
    """Whether it is one of the target's inputs, and not a constant of the call."""


@dataclass
class Problem:
    """A problem file, loaded."""

    path: Path
    """The file."""
    model: Any
    """Its class Model."""
    get_inputs: Any
    """Its function of that name."""
    init: list[Any]
    """What get_init_inputs gave."""
    key: int
    """Drawn for one judgement: the seeds that models are made under come of it."""
    arguments: tuple[Argument, ...] = ()
    """Those of forward, in order."""
    inputs: tuple[Spec, ...] = ()
    """Name, dtype and shape of each tensor passed: forward's, the Model's, and the seed."""
    scalars: dict[str, Literal["float", "int"]] = field(default_factory=dict)
    """`float` or `int` by the name of each number passed."""
    parameters: dict[str, str] = field(default_factory=dict)
    """The Model's names of its parameters and buffers by the names of the inputs that hold them."""
    outputs: tuple[Spec, ...] = ()
    """Name, dtype and shape of each tensor returned."""
    operations: float = 0.0
    """Floating-point operations of a call, as far as torch counts them."""
    is_double: bool = True
    """Whether the reference works in float64."""
    tightened: bool = False
    """Whether outputs below 1 are held to their own size instead of KernelBench's absolute tolerance."""

    def make_inputs(self, dims: dict[str, int], kind: str, seed: int, device: str) -> dict[str, Any]:
        """Inputs, parameters and the construction seed; tensors without contents on the device `meta`.

        Raises ConfigError for an unknown kind.
        """
        if kind not in KINDS:
            raise ConfigError(f"{self.path} has no input kind '{kind}'{nearest(kind, KINDS)}")
        if device == "meta":
            return self._shapes_alone()
        given = [vary(value, kind) for value in self.given(seed)]
        made = self.made(self.construction_seed(kind))
        state = made.state_dict() if isinstance(made, torch.nn.Module) else {}
        values = {
            argument.name: value for argument, value in zip(self.arguments, given, strict=True) if argument.is_input
        }
        values |= {name: state[theirs].detach() for name, theirs in self.parameters.items()}
        values[SEED_INPUT] = torch.tensor([self.construction_seed(kind)])
        return {name: _placed(value, device) for name, value in values.items()}

    def reference(self, **inputs: Any) -> tuple[Any, ...]:
        """The Model's answer, of the dtypes it has when it works on the inputs as they stand."""
        if self.is_double:
            try:
                answer = self.run(inputs, double=True)
                return tuple(
                    value.to(getattr(torch, dtype)).contiguous()
                    for value, (_, dtype, _) in zip(answer, self.outputs, strict=True)
                )
            except MODULE_FAULTS:
                self.is_double = False  # a Model that insists on its own dtype
        return tuple(value.contiguous() for value in self.run(inputs, double=False))

    def compare(self, inputs: dict[str, Any], expected: Any, got: Any, tolerance: ToleranceTable) -> list[str]:
        """What is wrong with an answer, a sentence each: form first, then every element, in float64."""
        names = [name for name, _, _ in self.outputs]
        faults = structure(names, expected, got)
        if faults:
            return faults
        for name, want, have in zip(names, expected, got, strict=True):
            if not want.is_floating_point():
                faults += exact_distance(name, want, have, "whole numbers are compared exactly")
            else:
                faults += distance(name, want, have, tolerance, tightened=self.tightened)
        return faults

    def flops(self, dims: dict[str, int]) -> float:
        """Floating-point operations of a call: torch's count of products, and one for each number returned."""
        return self.operations + sum(_numbers(spec) for spec in self.outputs)

    def bytes_moved(self, dims: dict[str, int]) -> float:
        """Each input read and each output written once."""
        return float(sum(_numbers(spec) * getattr(torch, spec[1]).itemsize for spec in (*self.inputs, *self.outputs)))

    def tolerance(self) -> dict[str, tuple[float, float]]:
        """rtol and atol by output: KernelBench's of the coarsest floating-point input or output."""
        return tolerances(self.inputs, self.outputs)

    def given(self, seed: int) -> list[Any]:
        """What get_inputs gives under a seed, as plain contiguous tensors and numbers."""
        with seeded(seed):
            given = self.get_inputs()
        if not isinstance(given, list | tuple):
            raise TypeError(f"get_inputs gave a {type(given).__name__} where a list was expected")
        return [value.detach().contiguous() if isinstance(value, torch.Tensor) else value for value in given]

    def made(self, seed: int) -> Any:
        """A Model made under a seed."""
        with seeded(seed):
            return self.model(*copy.deepcopy(self.init))

    def construction_seed(self, kind: str) -> int:
        """The seed under which models are made for a kind of inputs."""
        return random.Random(f"{self.key} {kind}").randrange(SEEDS)

    def _shapes_alone(self) -> dict[str, Any]:
        numbers = {
            argument.name: argument.value
            for argument in self.arguments
            if argument.is_input and argument.name in self.scalars
        }
        held = {
            name: torch.empty(shape, dtype=getattr(torch, dtype), device="meta") for name, dtype, shape in self.inputs
        }
        order = [argument.name for argument in self.arguments if argument.is_input]
        order += [name for name in held if name not in order]
        return {name: held[name] if name in held else numbers[name] for name in order}

    def run(self, inputs: dict[str, Any], *, double: bool, seed: int = 0) -> tuple[Any, ...]:
        """The Model's answer with these parameters, from copies of all it is given; it draws lots under `seed`."""
        model = self.made(int(inputs[SEED_INPUT]))
        device = inputs[SEED_INPUT].device
        if isinstance(model, torch.nn.Module):
            model.load_state_dict({theirs: inputs[name] for name, theirs in self.parameters.items()}, strict=False)
            model = model.to(device)
            model = model.double() if double else model
        given = [
            _copied(inputs[argument.name], double) if argument.is_input else argument.value
            for argument in self.arguments
        ]
        with torch.no_grad(), seeded(seed):
            return tuple(tensors(model(*given)))


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """torch's, Python's and numpy's generators under a seed, and as they were afterwards."""
    import numpy as np

    state, arrays = random.getstate(), np.random.get_state()
    # not torch.manual_seed: its first use loads torch's compiler
    generator = torch.default_generator
    before = generator.get_state()
    generator.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed % SEEDS)
    try:
        yield
    finally:
        generator.set_state(before)
        random.setstate(state)
        np.random.set_state(arrays)


def argument_names(model: Any, count: int) -> list[str]:
    """Names for forward's arguments as they are passed by position."""
    try:
        parameters = inspect.signature(model.forward).parameters.values()
    except (AttributeError, TypeError, ValueError):  # no forward, or one that Python cannot describe
        parameters = {}.values()
    by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    told = [parameter.name for parameter in parameters if parameter.kind in by_position]
    names: list[str] = []
    for index in range(count):
        names.append(identifier(told[index] if index < len(told) else f"argument{index}", {*names, SEED_INPUT}))
    return names


def identifier(name: str, taken: Collection[str]) -> str:
    """A name as an input can have it, and none that is taken."""
    plain = "".join(c if c.isalnum() and c.isascii() else "_" for c in name)
    plain = plain if plain[:1].isalpha() else f"x{plain}"
    while plain in taken:
        plain += "_"
    return plain


def spec_of(name: str, tensor: Any) -> Spec:
    """Name, dtype and shape of a tensor."""
    return name, str(tensor.dtype).removeprefix("torch."), list(tensor.shape)


def sentence(path: Path, what: str, error: BaseException) -> BadInput:
    """What a problem's code raised, as bad input."""
    return BadInput(f"{path} cannot be used as a problem: {what} raised {raised(error)}")


def _numbers(spec: Spec) -> int:
    total = 1
    for extent in spec[2]:
        total *= int(extent)
    return total


def _placed(value: Any, device: str) -> Any:
    return value.to(device).contiguous() if isinstance(value, torch.Tensor) else value


def _copied(value: Any, double: bool) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    return value.double() if double and value.is_floating_point() else value.clone()


def is_plain(values: Sequence[Any]) -> bool:
    """Whether all tensors among some values are dense ones."""
    return all(value.layout is torch.strided and not value.is_quantized for value in values if torch.is_tensor(value))


__all__ = ["PLAIN", "Argument", "Problem"]
