"""The judge's lines above a solution to a KernelBench-style problem: they make its model and call it.

This file's text is what the called process is given as `Subject.preamble`, so it stands alone: torch and the standard
library, imported inside, so that a solution finds no names that it did not import. It runs beside the solution and can
be forged by it; what it says can only speak against the solution. A host that says `cuda` runs on the CPU where the
inputs lie there.
"""

from collections.abc import Callable as _Callable
from collections.abc import Iterator as _Iterator
from typing import Any as _Any


class LibraryWork(RuntimeError):
    """torch did what the problem asks a kernel for."""


def judged_calls(
    *,
    init: list[_Any],
    order: list[tuple[str, _Any]],
    parameters: dict[str, str],
    seed: str,
    work: dict[str, str],
    limits: dict[str, int],
) -> _Callable[[_Any, dict[str, _Any]], tuple[_Any, ...]]:
    """What calls the solution: a function of its model's class and of the inputs by name, to a tuple of tensors.

    Args:
        init: what the class is made with.
        order: the arguments of `forward`: ("input", name) or ("value", what it is).
        parameters: names of inputs that are parameters and buffers of the problem's Model, with their names there.
        seed: name of the input that holds the seed which the model is made under.
        work: by family the names of the operators that do it.
        limits: by family the numbers that may pass through torch in one call.
    """
    import contextlib
    import copy

    import torch
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

    made: dict[str, _Any] = {}
    families = {name: family for family, names in work.items() for name in names.split()}

    class StandIn(TorchFunctionMode):  # type: ignore[misc]
        """The CPU answers to the name of `cuda:0`."""

        def __torch_function__(self, func: _Any, types: _Any, args: _Any = (), kwargs: _Any = None) -> _Any:
            if func == torch.Tensor.is_cuda.__get__:
                return True
            if func == torch.Tensor.device.__get__:
                return torch.device("cuda", 0)
            if func == torch.Tensor.get_device:
                return 0
            if func == torch.Tensor.cuda:
                return args[0]
            placed = {name: here(value) for name, value in (kwargs or {}).items()}
            return func(*(here(value) for value in args), **placed)

    def here(value: _Any) -> _Any:
        is_device = isinstance(value, torch.device) and value.type == "cuda"
        is_name = isinstance(value, str) and value.partition(":")[0] == "cuda"
        return torch.device("cpu") if is_device or is_name else value

    class Amounts(TorchDispatchMode):  # type: ignore[misc]
        """Counts the numbers that pass through operators which do a family of work."""

        def __init__(self) -> None:
            super().__init__()
            self.by_family: dict[str, int] = {}

        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            return False  # hiding this mode from torch's compiler would load all of it

        def __torch_dispatch__(self, func: _Any, types: _Any, args: _Any = (), kwargs: _Any = None) -> _Any:
            result = func(*args, **(kwargs or {}))
            name = func.name().partition("::")[2].partition(".")[0]
            family = families.get(name) or families.get(name.rstrip("_"))
            if family is not None:
                amount = sum(value.numel() for value in (*flat(args), *flat(result)))
                self.by_family[family] = self.by_family.get(family, 0) + amount
            return result

    def flat(value: _Any) -> _Iterator[_Any]:
        """The tensors of a nest of tuples, lists and dicts."""
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, tuple | list | dict):
            for part in value.values() if isinstance(value, dict) else value:
                yield from flat(part)

    @contextlib.contextmanager
    def on_the_cpu() -> _Iterator[None]:
        """Host code that asks `torch.cuda` for its one card gets along without."""
        answers: dict[str, _Any] = {
            "is_available": lambda: True,
            "device_count": lambda: 1,
            "synchronize": lambda device=None: None,
            "set_device": lambda device: None,
            "device": lambda device=None: contextlib.nullcontext(),
            "device_of": lambda tensor=None: contextlib.nullcontext(),
        }
        before = {name: getattr(torch.cuda, name) for name in answers}
        try:
            for name, answer in answers.items():
                setattr(torch.cuda, name, answer)
            with StandIn():
                yield
        finally:
            for name, answer in before.items():
                setattr(torch.cuda, name, answer)

    def build(kind: _Any, number: int, given: dict[str, _Any]) -> _Any:
        """The solution's model, made under the seed, with the given parameters by name."""
        # not torch.manual_seed: its first use loads torch's compiler
        generator = torch.default_generator
        before = generator.get_state()
        try:
            generator.manual_seed(number)
            built = kind(*copy.deepcopy(init))
        finally:
            generator.set_state(before)
        if not isinstance(built, torch.nn.Module):
            return built
        built = built.to(given[seed].device)
        own = dict(built.named_parameters()) | dict(built.named_buffers())
        for name, theirs in parameters.items():
            if theirs in own and own[theirs].shape == given[name].shape:
                own[theirs].data = given[name].to(own[theirs].dtype).clone()
        return built

    def call(kind: _Any, given: dict[str, _Any]) -> tuple[_Any, ...]:
        held = given[seed]
        is_shape_alone, is_cpu = held.is_meta, held.device.type == "cpu"
        number = 0 if is_shape_alone else int(held)
        arguments = [given[what] if of == "input" else copy.deepcopy(what) for of, what in order]
        amounts = Amounts()
        with contextlib.ExitStack() as stack:
            stack.enter_context(torch.no_grad())
            if not is_shape_alone:
                # the judge's own operators, and torch's where they do not do the work, are no matter
                stack.enter_context(_disable_current_modes())
            if is_cpu:
                stack.enter_context(on_the_cpu())
            if made.get("number") != number:
                made.update(number=number, model=build(kind, number, given))
            built = made["model"]
            if not is_shape_alone:
                stack.enter_context(amounts)
            answer = built(*arguments) if callable(built) else built.forward(*arguments)
        for family, amount in amounts.by_family.items():
            if amount > limits[family]:
                raise LibraryWork(f"torch did the {family}: {amount} numbers passed through its operators")
        return tuple(value if value.is_contiguous() else value.contiguous() for value in tensors_of(answer))

    def tensors_of(answer: _Any) -> list[_Any]:
        found = list(flat(answer))
        if not found:
            raise TypeError(f"forward gave a {type(answer).__name__} where a tensor was expected")
        return found

    return call
