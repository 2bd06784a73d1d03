"""Runs plays in a process of its own, since Triton's interpreter and its compiler cannot share one.

    python play_runner.py interpret|compile 'JSON list of [FILE, TARGET, list of dimensions]'

Prints a JSON list, an entry a file: for `interpret` what the target's comparison found wrong, for `compile` registers
and shared memory of each kernel's first configuration; for a play that raises, the exception's text. One process serves
all plays, since it takes longer to start than a play takes to run.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

KINDS = ("plain", "skewed", "ragged", "stressed")
TOLERANCE = {
    "moe_dispatch_384expert": {
        "rows": (0, 0),
        "offsets": (0, 0),
        "ids": (0, 0),
        "weights": (1e-5, 1e-6),
        "pairs": (0, 0),
    },
    # tighter than on a GPU: nothing but the plays' own roundings
    "mla_decode_fp8": {"out": (1e-2, 5e-2), "lse": (1e-3, 1e-2)},
}


def load(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def interpreting() -> Callable[[str, str, list[dict[str, int]]], Any]:
    """`interpret`, in a process that interprets from now on."""
    os.environ["TRITON_INTERPRET"] = "1"
    from kernelgen.ladder import interpreter

    interpreter.install()
    return interpret


def interpret(path: str, target: str, dims: list[dict[str, int]]) -> list[str]:
    """What is wrong: at the first shape with every kind of input, at the others, which take longer, with two."""
    reference = importlib.import_module(f"kernelgen.targets.{target}")
    entry = getattr(load(path), target)
    wrong = []
    for sizes in dims:
        for kind in KINDS if sizes is dims[0] else KINDS[-2:]:
            inputs = reference.make_inputs(sizes, kind, 7, "cpu")
            expected = reference.reference(**inputs)
            found = reference.compare(inputs, expected, entry(**inputs), TOLERANCE[target])
            wrong += [f"{sizes} {kind}: {sentence}" for sentence in found]
    return wrong


def compiling() -> Callable[[str, str, list[dict[str, int]]], Any]:
    """A function that compiles a play for Hopper, in a process that does so from now on."""
    from kernelgen.ladder import offline

    log = offline.install(90)

    def compile_for_hopper(path: str, target: str, dims: list[dict[str, int]]) -> dict[str, Any]:
        """Registers and shared memory of the first configuration of each kernel that is launched."""
        reference = importlib.import_module(f"kernelgen.targets.{target}")
        module = load(path)
        for kernel, configs in module.AUTOTUNE_CONFIGS.items():
            getattr(module, kernel).configs = configs[:1]
        for sizes in dims:
            getattr(module, target)(**reference.make_inputs(sizes, "plain", 7, "cpu"))
        # kernels of other plays have other names
        mine = [build for build in log.builds() if build.kernel in module.AUTOTUNE_CONFIGS]
        return {build.kernel: [build.registers, build.shared_bytes] for build in mine}

    return compile_for_hopper


def outcome(run: Callable[[str, str, list[dict[str, int]]], Any], case: Any) -> Any:
    """What a play gave, or how it failed: one that raises says nothing about the others."""
    try:
        return run(*case)
    except Exception:  # noqa: BLE001 - whatever a play raises is what the test shows
        return traceback.format_exc()[-2000:]


if __name__ == "__main__":
    mode, cases = sys.argv[1:]
    chosen = interpreting() if mode == "interpret" else compiling()
    print(json.dumps([outcome(chosen, case) for case in json.loads(cases)]))
