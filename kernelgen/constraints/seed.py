"""Phase 1: the architecture facts of a hardware, computed from the figures of its config.

Each is a hard constraint that names its source, holds on that hardware alone, and carries a rule where a program can
check it. Ids are `{hardware}_{fact}` and stay the same, so that seeding again finds what is there. The facts a config
lists by itself come after the computed ones. Residency counts the registers and the shared memory of a block, and what
the system reserves of it a block (CUDA C++ Programming Guide); granularities of allocation are left aside.
"""

from __future__ import annotations

from typing import NamedTuple

from kernelgen.config import ArchitectureFact, Dsl, Figure, Hardware
from kernelgen.constraints import rules
from kernelgen.errors import ConfigError, ConstraintError
from kernelgen.records import Constraint, Scope

KIB = 1024
MIB = 1024 * KIB


class _Fact(NamedTuple):
    """A fact before it is a constraint."""

    name: str
    statement: str
    source: str
    rule: str | None = None
    dsl: Dsl | None = None


def architecture_facts(hardware: Hardware, time: str) -> list[Constraint]:
    """The facts, computed ones first; `time` (ISO 8601 UTC) is theirs.

    Raises ConfigError where a listed fact has the name of a computed one, ConstraintError where its rule is not one.
    """
    computed = [*_limits(hardware), *_residency(hardware), *_rates(hardware)]
    names = {fact.name for fact in computed}
    if taken := [fact.id for fact in hardware.facts if fact.id in names]:
        raise ConfigError(f"hardware {hardware.name}: the fact '{taken[0]}' is computed from the figures; rename it")
    listed = [_listed(hardware, fact) for fact in hardware.facts]
    return [
        Constraint(
            id=f"{hardware.name}_{fact.name}",
            severity="hard",
            statement=fact.statement,
            scope=Scope(hardware=hardware.name, dsl=fact.dsl),
            source=fact.source,
            architecture=True,
            time=time,
            rule=fact.rule,
        )
        for fact in [*computed, *listed]
    ]


def _listed(hardware: Hardware, fact: ArchitectureFact) -> _Fact:
    if fact.rule is not None:
        try:
            rules.parse(fact.rule)
        except ConstraintError as error:
            raise ConstraintError(f"hardware {hardware.name}, fact '{fact.id}': {error}") from None
    return _Fact(fact.id, fact.statement, fact.source, fact.rule, fact.dsl)


def _sources(*figures: Figure) -> str:
    return "; ".join(dict.fromkeys(figure.source for figure in figures))


def _limits(hardware: Hardware) -> list[_Fact]:
    """What a block or a thread can have at most."""
    shared, threads = hardware.shared_bytes_per_block, hardware.max_threads_per_block
    registers, file = hardware.max_registers_per_thread, hardware.registers_per_sm
    warps = int(threads.value // hardware.warp_size.value)
    return [
        _Fact(
            "shared_bytes_per_block",
            f"A block can use at most {shared.value} bytes of shared memory ({shared.value / KIB:g} KiB, opted in).",
            _sources(shared),
            f"shared_bytes <= {shared.value}",
        ),
        _Fact(
            "threads_per_block",
            f"A block can have at most {threads.value} threads, {warps} warps.",
            _sources(threads, hardware.warp_size),
            f"threads <= {threads.value} and num_warps <= {warps}",
        ),
        _Fact(
            "registers_per_thread",
            f"A thread can have at most {registers.value} registers; the rest spills to local memory.",
            _sources(registers),
            f"registers <= {registers.value}",
        ),
        _Fact(
            "registers_per_block",
            f"A block's registers must fit its SM: registers a thread times threads is at most {file.value}.",
            _sources(file),
            f"registers * threads <= {file.value}",
        ),
    ]


def _residency(hardware: Hardware) -> list[_Fact]:
    """What lets an SM hold more than one block, and the grid fill the GPU."""
    warps, blocks, sms = hardware.max_warps_per_sm, hardware.max_blocks_per_sm, hardware.sm_count
    shared_sm, shared_block = hardware.shared_bytes_per_sm, hardware.shared_bytes_per_block
    threads = int(warps.value * hardware.warp_size.value)
    full_registers = int(hardware.registers_per_sm.value // threads)
    reserved = int(shared_sm.value - shared_block.value)
    halves, quarters = (int(shared_sm.value // share) - reserved for share in (2, 4))
    return [
        _Fact(
            "full_occupancy",
            f"Full occupancy, {warps.value} warps an SM, needs at most {full_registers} registers a thread, "
            f"and blocks of at least {threads // int(blocks.value)} threads.",
            _sources(warps, hardware.registers_per_sm, blocks),
        ),
        _Fact(
            "shared_bytes_residency",
            f"For 2 blocks an SM keep shared memory to {halves} bytes a block, for 4 to {quarters}.",
            _sources(shared_sm, shared_block),
        ),
        _Fact(
            "waves",
            f"{sms.value} SMs: choose a grid just under a multiple of {sms.value} times the resident blocks, or make "
            "it persistent; one block more costs a whole wave.",
            _sources(sms),
        ),
    ]


def _rates(hardware: Hardware) -> list[_Fact]:
    """What memory, tensor cores and launches allow."""
    bandwidth, l2, launch = hardware.dram_bytes_per_s, hardware.l2_bytes, hardware.launch_floor_us
    bf16, fp8 = hardware.bf16_flops_per_s, hardware.fp8_flops_per_s
    ridges = f"{bf16.value / bandwidth.value:.0f} FLOPs a byte in bf16"
    if fp8 is not None:
        ridges += f" or {fp8.value / bandwidth.value:.0f} in fp8"
    return [
        _Fact(
            "ridge",
            f"Below {ridges} a kernel is bound by memory at {bandwidth.value / 1e12:.2f} TB/s: move fewer bytes first.",
            _sources(bandwidth, bf16, *([fp8] if fp8 is not None else [])),
        ),
        _Fact(
            "l2_bytes",
            f"The L2 cache holds {l2.value / MIB:g} MiB: order blocks so that shared data is read again within that.",
            _sources(l2),
        ),
        _Fact(
            "launch",
            f"A launch takes at least {launch.value:g} us: fuse kernels that take only a few times that.",
            _sources(launch),
        ),
    ]
