"""What the calls of a shape work on: sets of inputs with their right answers, and how contents change within a block.

No two timed calls of a block see the same contents. Before each call of a round, one element of one floating-point
input goes up by the least step its format has; the elements start so much lower that the contents are exactly those of
the set at the one call whose answer is compared, and which call that is, is drawn for each block.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import torch

from kernelgen.errors import BadInput
from kernelgen.ladder.benchmark.rounds import INTEGERS
from kernelgen.ladder.correctness.calls import Shared
from kernelgen.ladder.correctness.checks import Expected
from kernelgen.ladder.correctness.plan import Case
from kernelgen.targets.code import MODULE_FAULTS, TargetCode
from kernelgen.targets.findings import Dims, raised

SEEDS = 2**31
# an element's bits, read as a number, must leave room for the steps of a block below it
LEAST_BITS = 4096
SAMPLED = 4096


@dataclass(frozen=True)
class Step:
    """The element that changes before a call of a round."""

    input: str
    """Name of the input; empty where no input has an element that may change."""
    position: int
    """Which element of it, flat."""

    def as_list(self) -> list[Any]:
        """As requests have it."""
        return [self.input, self.position]


class Maker:
    """Makes the sets of inputs of a shape, all with the same form and the same numbers beside the tensors."""

    def __init__(self, code: TargetCode, names: list[str], shape: str, dims: Dims, kind: str, device: str) -> None:
        """Args: target, its outputs' names, the shape, kind of inputs, and the judge's device."""
        self._code, self._names, self._device = code, names, device
        self._case = Case(shape, dims, kind, "tune")
        self._first: dict[str, Any] | None = None
        self.steps: list[Step] = []

    @property
    def place(self) -> str:
        """The shape in words."""
        return self._case.place

    def fresh(self, seed: int) -> Expected:
        """A set of inputs and its right answers, where no other process sees them.

        Raises:
            BadInput: the target cannot be computed, or its inputs have another form each time.
        """
        try:
            inputs = self._code.make_inputs(self._case.dims, self._case.kind, seed, self._device)
            inputs = self._like_the_first(inputs)
            outputs = self._code.reference(**inputs)
        except MODULE_FAULTS as error:
            raise BadInput(f"The target could not be computed at {self.place}: {raised(error)}") from error
        specs = [
            (name, str(output.dtype).removeprefix("torch."), tuple(output.shape))
            for name, output in zip(self._names, outputs, strict=True)
        ]
        return Expected(self._case, inputs, outputs, specs)

    def choose_steps(self, calls: int, draw: random.Random) -> None:
        """Choose an element for each of so many calls, over the inputs in turn; sets made later keep their values."""
        assert self._first is not None
        eligible = {name: places for name, value in self._first.items() if (places := _changeable(value, draw))}
        names = list(eligible)
        if not names:
            self.steps = [Step("", 0)] * calls
            return
        self.steps = [
            Step(names[number % len(names)], _of(eligible[names[number % len(names)]], number // len(names)))
            for number in range(calls)
        ]

    @property
    def changes(self) -> bool:
        """Whether contents change from call to call."""
        return bool(self.steps) and bool(self.steps[0].input)

    def write(self, shared: Shared, expected: Expected, *, rounds: int, call: int, delta: int) -> None:
        """Put a set where the other side works on it; its contents are the set's at that call of the last round."""
        shared.write(expected.inputs)
        places = {one.name: one for one in shared.placed}
        offsets: dict[tuple[str, int], int] = {}
        for number, step in enumerate(self.steps if self.changes else ()):
            ahead = rounds if number <= call else rounds - 1
            offsets[step.input, step.position] = offsets.get((step.input, step.position), 0) + delta * ahead
        for name in {name for name, _ in offsets}:
            own = [(position, offset) for (other, position), offset in offsets.items() if other == name]
            bits = shared.memory.raw(places[name]).view(INTEGERS[expected.inputs[name].itemsize])
            where, lower = (torch.tensor(column, device=bits.device) for column in zip(*own, strict=True))
            bits[where] -= lower.to(bits.dtype)

    def _like_the_first(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Inputs with the numbers of the first set, and its values of the elements that change."""
        first = self._first
        if first is None:
            self._first = inputs
            return inputs
        forms = [
            {name: (value.dtype, value.shape) for name, value in each.items() if isinstance(value, torch.Tensor)}
            for each in (first, inputs)
        ]
        if forms[0] != forms[1]:
            raise BadInput(f"The target's inputs differ in form from seed to seed at {self.place}.")
        inputs = {name: value if isinstance(value, torch.Tensor) else first[name] for name, value in inputs.items()}
        for step in self.steps if self.changes else ():
            inputs[step.input].view(-1)[step.position] = first[step.input].view(-1)[step.position]
        return inputs


def _changeable(value: Any, draw: random.Random) -> list[int]:
    """Elements of an input that may change by small steps: of the larger half of a sample, none of them tiny."""
    if not isinstance(value, torch.Tensor) or not value.is_floating_point() or value.itemsize not in INTEGERS:
        return []
    if not value.is_contiguous() or not value.numel():
        return []
    flat = value.view(-1)
    count = value.numel()
    sample = sorted(draw.sample(range(count), min(SAMPLED, count)))
    places = torch.tensor(sample, device=value.device)
    chosen = flat[places]
    sizes = chosen.abs()
    bits = sizes.view(INTEGERS[value.itemsize])
    fit = chosen.isfinite() & (bits >= LEAST_BITS) & (sizes >= sizes.double().median())
    found = places[fit].tolist()
    draw.shuffle(found)
    return list(found)


def _of(places: list[int], number: int) -> int:
    return places[number % len(places)]
