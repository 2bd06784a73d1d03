"""The typed signature of the prompt, for DSPy: what goes in, what comes out.

Its instructions are the optimisable part of the prompt. The layout is not here: `adapter` has it, and each field's
description is the docstring of its record.
"""

from __future__ import annotations

from typing import Any

import dspy

from kernelgen.prompt.inputs import INPUTS
from kernelgen.prompt.texts import text
from kernelgen.records import AutotuneConfig, Id, KernelSource, Override, Reply

OUTPUTS: dict[str, Any] = {
    "hypothesis": str,
    "kernel": KernelSource,
    "autotune": dict[str, tuple[AutotuneConfig, ...]],
    "honoured": tuple[Id, ...],
    "overrides": tuple[Override, ...],
}
"""The signature's output fields and their types: a Reply's fields."""


def _fields() -> dict[str, tuple[Any, Any]]:
    fields: dict[str, tuple[Any, Any]] = {
        name: (kind, dspy.InputField(desc=(kind.__doc__ or "").split("\n")[0])) for name, kind in INPUTS.items()
    }
    for name, kind in OUTPUTS.items():
        fields[name] = (kind, dspy.OutputField(desc=Reply.model_fields[name].description))
    return fields


GenerateKernel = dspy.Signature(_fields(), text("instructions"), signature_name="GenerateKernel")
