"""Runs one call of a kernel under a profiler: the program that `kernelgen profile run` starts, for who has a GPU alone.

    python -m kernelgen.ladder.profiling moe_dispatch_384expert T=64 --with torch --out trace.json

profiles a target's naive champion; `--order FILE` any kernel, as `Order` says. Needs torch, the DSL and a GPU. The call
is warmed up first, autotuning included, so that the file holds exactly one. `--with ncu` marks the call for
`ncu --profile-from-start off` and writes nothing. What a profile says is the kernel's own process' word: it decides
no verdict.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kernelgen.errors import BadInput, KernelgenError
from kernelgen.targets.code import champion_source, load_code
from kernelgen.targets.extents import extent
from kernelgen.targets.findings import Spec

WARM_UP_CALLS = 3
SEED = 0
KIND = "plain"
CHAMPIONS = "kernelgen.targets.champions"
NO_GPU = "there is no NVIDIA GPU here that torch can use"


@dataclass(frozen=True)
class Order:
    """What is called."""

    module: str
    """The target's module."""
    folder: str | None
    """Folder of a target's own file; None for a dotted name."""
    source: str
    """The kernel's text."""
    language: str
    """python or cuda."""
    entry_point: str
    """The function to call."""
    dims: dict[str, int]
    """Dimensions of the shape."""
    kind: str
    """Kind of inputs."""
    outputs: tuple[Spec, ...] = ()
    """Name, dtype and shape of each output: a CUDA launcher is given them."""

    def as_text(self) -> str:
        """As `--order` reads it."""
        return json.dumps(asdict(self))


def main(arguments: Sequence[str]) -> int:
    """Warm up, then run the one call that is recorded; exit code 2 where it cannot be."""
    try:
        given = _parser().parse_args(arguments)
        with tempfile.TemporaryDirectory(prefix="kernelgen-") as folder:
            call = called(_order(given), Path(folder))
            for _ in range(WARM_UP_CALLS):
                call()
            RECORDERS[given.recorder](call, given.out)
    except KernelgenError as error:
        print(f"profiling: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def called(order: Order, folder: Path) -> Callable[[], object]:
    """One call of the kernel on inputs that are made once, without arguments; its file is written into `folder`.

    Raises BadInput where there is no GPU, or the kernel has no such entry point.
    """
    import torch

    if not torch.cuda.is_available():
        raise BadInput(f"{NO_GPU}: take the profile where there is one.")
    code = load_code(order.module, Path(order.folder) if order.folder else None)
    inputs = code.make_inputs(order.dims, order.kind, SEED, "cuda")
    if order.language == "cuda":
        return _launcher(order, inputs, folder)
    entry = getattr(_module(order, folder), order.entry_point, None)
    if entry is None:
        raise BadInput(f"The kernel defines no {order.entry_point}.")

    def call() -> object:
        answer = entry(**inputs)
        torch.cuda.synchronize()
        return answer

    return call


def under_ncu(call: Callable[[], object], out: str) -> None:
    """Mark the call for ncu, which writes the file itself."""
    import torch

    torch.cuda.profiler.start()
    call()
    torch.cuda.profiler.stop()


def under_torch(call: Callable[[], object], out: str) -> None:
    """Write a Chrome trace."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as prof:
        call()
    prof.export_chrome_trace(out)


def under_proton(call: Callable[[], object], out: str) -> None:
    """Write a hatchet file; Proton adds the ending itself."""
    import triton.profiler as proton

    proton.start(out.removesuffix(".hatchet"), backend="cupti")
    call()
    proton.finalize()


RECORDERS: dict[str, Callable[[Callable[[], object], str], None]] = {
    "ncu": under_ncu,
    "torch": under_torch,
    "proton": under_proton,
}


def naive_order(target: str, dims: dict[str, int]) -> Order:
    """The naive champion of one of kernelgen's own targets. Raises ConfigError where there is no such target."""
    source = champion_source(f"{CHAMPIONS}:{target}.py", Path())
    return Order(f"kernelgen.targets.{target}", None, source, "python", target, dims, KIND)


def _order(given: argparse.Namespace) -> Order:
    """What the command line asks for. Raises BadInput."""
    if given.order is None:
        if given.target is None:
            raise BadInput("Name a target and its dimensions, as in `moe_dispatch_384expert T=64`, or --order FILE.")
        try:
            dims = {name: int(value) for name, _, value in (pair.partition("=") for pair in given.dims)}
        except ValueError as error:
            raise BadInput(f"Dimensions are NAME=EXTENT, as in T=64: {error}") from error
        return naive_order(given.target, dims)
    try:
        record = json.loads(Path(given.order).read_text(encoding="utf-8"))
        outputs = tuple((name, dtype, list(shape)) for name, dtype, shape in record["outputs"])
        return Order(**{**record, "outputs": outputs})
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{given.order} is no order to profile a kernel: {error}") from error


def _module(order: Order, folder: Path) -> Any:
    """The kernel's module: Triton reads its functions' text from the file."""
    path = folder / "profiled_kernel.py"
    path.write_text(order.source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise BadInput(f"{path} is no Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # where dataclasses and pickle look for it
    spec.loader.exec_module(module)
    return module


def _launcher(order: Order, inputs: dict[str, Any], folder: Path) -> Callable[[], object]:
    """A CUDA launcher on these inputs and on outputs of its own."""
    import torch

    from kernelgen.ladder import cuda

    path = folder / "profiled_kernel.cu"
    path.write_text(order.source, encoding="utf-8")
    launch = cuda.load(path, order.entry_point)
    tensors = [value for value in inputs.values() if isinstance(value, torch.Tensor)]
    scalars = [value for value in inputs.values() if not isinstance(value, torch.Tensor)]
    dims = [value for _, value in sorted(order.dims.items())]  # a launcher takes them by name
    outputs = [
        torch.empty([extent(one, order.dims) for one in shape], dtype=getattr(torch, dtype), device="cuda")
        for _, dtype, shape in order.outputs
    ]

    def call() -> object:
        launch(*tensors, *scalars, *dims, *outputs)
        torch.cuda.synchronize()
        return outputs

    return call


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m kernelgen.ladder.profiling")
    parser.add_argument("target", nargs="?", help="one of kernelgen's own targets: its naive champion")
    parser.add_argument("dims", nargs="*", help="NAME=EXTENT of the shape, as in T=64")
    parser.add_argument("--order", help="a JSON file that says what to call instead")
    parser.add_argument("--with", dest="recorder", choices=sorted(RECORDERS), required=True)
    parser.add_argument("--out", default="")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
