"""What the prompt and the candidate's own test are told of a target: a part of its config, never its reference."""

from __future__ import annotations

from pathlib import Path

from kernelgen.candidates import TargetBinding
from kernelgen.config import Hardware, Target, TensorSpec
from kernelgen.records import HardwareBrief, TargetBrief


def hardware_brief(hardware: Hardware) -> HardwareBrief:
    """What the prompt tells of a hardware."""
    return HardwareBrief(name=hardware.name, title=hardware.title, arch=hardware.arch)


def target_brief(target: Target) -> TargetBrief:
    """What the prompt tells of a target."""
    return TargetBrief(
        name=target.name,
        title=target.title,
        summary=target.summary,
        signature=_signature(target),
        entry_point=target.entry_point,
        rules=target.rules,
        tolerance={n: f"rtol {t.rtol:g}, atol {t.atol:g} ({t.reason})" for n, t in target.tolerance.items()},
        tune=target.shapes.tune,
    )


def _signature(target: Target) -> str:
    names = ", ".join([*(tensor.name for tensor in target.inputs), *(scalar.name for scalar in target.scalars)])
    lines = [
        f"def {target.entry_point}({names}) -> tuple",
        "arguments, passed by keyword:",
        *(f"  {_tensor(tensor)}" for tensor in target.inputs),
        *(f"  {scalar.name}: {scalar.type}  # {scalar.doc}" for scalar in target.scalars),
        "returns, as a tuple of newly allocated contiguous tensors in this order:",
        *(f"  {_tensor(tensor)}" for tensor in target.outputs),
    ]
    return "\n".join(lines)


def _tensor(tensor: TensorSpec) -> str:
    return f"{tensor.name}: {tensor.dtype} [{', '.join(map(str, tensor.shape))}]  # {tensor.doc}"


def binding(target: Target, hardware: Hardware, folder: Path) -> TargetBinding:
    """What a candidate's own test needs of the target; `folder` holds its yaml."""
    local = target.module.endswith(".py")
    return TargetBinding(
        module=target.module,
        folder=str(folder) if local else None,
        smoke=target.shapes.smoke,
        tune=target.shapes.tune,
        kinds=target.input_kinds,
        tolerance={name: (t.rtol, t.atol) for name, t in target.tolerance.items()},
        compute_capability=hardware.compute_capability,
    )
