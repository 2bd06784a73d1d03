"""Runs plays in a process of its own, since Triton's interpreter and its compiler cannot share one.

    python play_runner.py interpret|compile FILE TARGET 'JSON list of dimensions'

Prints JSON: for `interpret` what the target's comparison found wrong, for `compile` what each configuration uses.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
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
    "mla_decode_fp8": {"out": (1e-2, 5e-2), "lse": (1e-3, 1e-2)},
}


def load(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def interpret(path: str, target: str, dims: list[dict[str, int]]) -> list[str]:
    """What is wrong: at the first shape with every kind of input, at the others, which take longer, with two."""
    os.environ["TRITON_INTERPRET"] = "1"
    from kernelgen.ladder import interpreter

    interpreter.install()
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


def compile_for_hopper(path: str, target: str, dims: list[dict[str, int]]) -> dict[str, Any]:
    """Shared memory and registers of the first configuration of each kernel that is launched."""
    from kernelgen.ladder import offline

    log = offline.install(90)
    reference = importlib.import_module(f"kernelgen.targets.{target}")
    module = load(path)
    for kernel, configs in module.AUTOTUNE_CONFIGS.items():
        getattr(module, kernel).configs = configs[:1]
    for sizes in dims:
        getattr(module, target)(**reference.make_inputs(sizes, "plain", 7, "cpu"))
    return {build.kernel: [build.registers, build.shared_bytes] for build in log.builds()}


if __name__ == "__main__":
    mode, file, name, sizes = sys.argv[1:]
    run = interpret if mode == "interpret" else compile_for_hopper
    print(json.dumps(run(file, name, json.loads(sizes))))
