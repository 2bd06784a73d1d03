"""The kinds of servers: what each has imported before it forks a session."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """What a kind of server has ready for its sessions."""

    modules: tuple[str, ...]
    """Imported before the first fork."""
    versions: tuple[str, ...]
    """Packages whose versions belong in the environment record."""
    variables: tuple[tuple[str, str], ...] = ()
    """Set before the import."""
    gpu: bool = False
    """Whether its sessions see the GPU."""


KINDS = {
    "plain": Kind(("torch",), ("torch",)),
    # shapes without values need torch's symbolic shapes, which are slow to import
    "compiler": Kind(
        ("torch", "torch.fx.experimental.symbolic_shapes", "triton.compiler", "kernelgen.ladder.offline"),
        ("torch", "triton"),
    ),
    "interpreter": Kind(
        ("torch", "triton", "kernelgen.ladder.interpreter"), ("torch", "triton", "numpy"), (("TRITON_INTERPRET", "1"),)
    ),
    "tilelang": Kind(("torch", "tilelang"), ("torch", "tilelang"), gpu=True),
    "gpu": Kind(("torch", "triton.compiler"), ("torch", "triton"), gpu=True),
}
