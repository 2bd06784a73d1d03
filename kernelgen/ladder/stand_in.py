"""A card that is not here, as far as host code asks for it: torch's device properties and Triton's active driver.

Wrappers ask how many multiprocessors there are, which device is current, what shared memory a block may have; on a
machine without a GPU these calls fail though the wrapper is right. For a process of its own that ends with its check:
nothing is put back. It launches nothing; `offline` and `interpreter` build on it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from kernelgen.errors import BadInput, HarnessError
from kernelgen.ladder.install import KERNELS_LINE

try:
    import torch
    from triton.backends.compiler import GPUTarget
    from triton.backends.driver import DriverBase
    from triton.runtime.autotuner import Autotuner
except ImportError as missing:
    raise HarnessError(f"{missing.name} is not installed: {KERNELS_LINE}") from missing

WARP_SIZE = 32
MAX_THREADS_PER_BLOCK = 1024
REGISTERS_PER_SM = 65536


@dataclass(frozen=True)
class Card:
    """What host code may ask about a card."""

    compute_capability: int
    """As Triton counts it: 90 for Hopper."""
    sm_count: int
    """Streaming multiprocessors of the full SXM part."""
    shared_bytes_per_block: int
    """Shared memory a block can have at most, opted in."""

    @property
    def capability(self) -> tuple[int, int]:
        """As torch counts it: (9, 0) for Hopper."""
        return divmod(self.compute_capability, 10)


# CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"; multiprocessors from the data sheets
CARDS = (
    Card(compute_capability=80, sm_count=108, shared_bytes_per_block=163 * 1024),
    Card(compute_capability=86, sm_count=84, shared_bytes_per_block=99 * 1024),
    Card(compute_capability=89, sm_count=142, shared_bytes_per_block=99 * 1024),
    Card(compute_capability=90, sm_count=132, shared_bytes_per_block=227 * 1024),
    Card(compute_capability=100, sm_count=148, shared_bytes_per_block=227 * 1024),
    Card(compute_capability=120, sm_count=188, shared_bytes_per_block=99 * 1024),
)


def card(compute_capability: int) -> Card:
    """The card of a compute capability.

    Raises:
        BadInput: no figures are known for it.
    """
    for known in CARDS:
        if known.compute_capability == compute_capability:
            return known
    names = ", ".join(str(known.compute_capability) for known in CARDS)
    raise BadInput(f"Compute capability {compute_capability} is not known; known: {names}.")


class StandInDriver(DriverBase):  # type: ignore[misc]
    """Triton's driver for a card that is not here; `utils` answers for its properties."""

    def __init__(self, stood_for: Card, torch_device: str) -> None:
        self._card = stood_for
        self._torch_device = torch_device
        self.utils: Any = SimpleNamespace(get_device_properties=lambda device: device_properties(stood_for))

    @classmethod
    def is_active(cls) -> bool:
        """Always: it needs nothing."""
        return True

    def get_current_target(self) -> GPUTarget:
        """The compiler's target."""
        return GPUTarget("cuda", self._card.compute_capability, WARP_SIZE)

    def get_current_device(self) -> int:
        """The only device there is."""
        return 0

    def set_current_device(self, device: int) -> None:
        """Nothing to switch to."""

    def get_current_stream(self, device: int | None = None) -> int:
        """CUDA's default stream."""
        return 0

    def get_device_capability(self, device: int | None = None) -> tuple[int, int]:
        """As torch counts it."""
        return self._card.capability

    def get_active_torch_device(self) -> Any:
        """Where host code that asks Triton for a device puts its tensors."""
        return torch.device(self._torch_device)

    def get_device_interface(self) -> Any:
        """torch's module of the device."""
        return torch.cuda

    def map_python_to_cpp_type(self, ty: str) -> str:
        """Types stay as they are: no launcher is compiled."""
        return ty

    def get_benchmarker(self) -> Callable[..., Any]:
        """There is nothing to time: each call once."""
        return call_once


def device_properties(stood_for: Card) -> dict[str, int]:
    """The properties that Triton's CUDA driver reports, as far as they are known."""
    return {
        "max_shared_mem": stood_for.shared_bytes_per_block,
        "max_num_regs": REGISTERS_PER_SM,
        "multiprocessor_count": stood_for.sm_count,
        "warpSize": WARP_SIZE,
    }


def call_once(kernel_call: Callable[[], Any], quantiles: Sequence[float] | None = None, **_: Any) -> Any:
    """In place of a benchmark: one call, and the same figure for every configuration."""
    kernel_call()
    return 1.0 if quantiles is None else [1.0] * len(quantiles)


def answer_for(stood_for: Card) -> None:
    """Make torch and Triton's autotuner answer as if the card were the current device of this process."""
    properties = SimpleNamespace(
        name=f"stand-in for compute capability {stood_for.compute_capability}",
        major=stood_for.capability[0],
        minor=stood_for.capability[1],
        multi_processor_count=stood_for.sm_count,
        warp_size=WARP_SIZE,
        regs_per_multiprocessor=REGISTERS_PER_SM,
        shared_memory_per_block_optin=stood_for.shared_bytes_per_block,
    )
    torch.cuda.get_device_properties = lambda device=None: properties
    torch.cuda.get_device_capability = lambda device=None: stood_for.capability
    torch.cuda.current_device = lambda: 0
    # a property wins over a benchmark that the candidate brings, which would ask for a real card
    Autotuner.do_bench = property(lambda self: call_once)
