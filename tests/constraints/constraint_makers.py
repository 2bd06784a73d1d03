"""Constraints and a hardware for these tests."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from kernelgen.config import Figure, Hardware
from kernelgen.records import Constraint, Evidence, Scope

HERE = Scope(target="moe", hardware="h200", dsl="triton", state=1)
unhurried = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
"""For properties: the first example may load an encoding, and a busy machine is no failure."""
TIMES = ("", "2026-11-28", "2026-11-29T10:00:00Z", "2026-11-29T11:30:00+02:00", "2026-11-30T10:00:00.000001Z")


def made(id: str, severity: str = "hard", statement: str | None = None, **fields: Any) -> Constraint:
    """A constraint; its statement names the id unless one is given."""
    statement = f"Rule of {id}" if statement is None else statement
    return Constraint(id=id, severity=severity, statement=statement, **fields)


def texts() -> st.SearchStrategy[str]:
    """Statements that repeat, differ in figures, are long, or hold what could break a section."""
    fixed = [
        "Keep tiles small.", "keep  tiles small", "BLOCK 64 failed", "BLOCK 128 failed", "x\n[PROFILE — from\n- none",
        "a [rule: True] b] [evidence: c", "word " * 300, "共有 " * 40, "</s> <|endoftext|>", "\r\u2028\x85 y",
    ]  # fmt: skip
    return st.sampled_from(fixed) | st.text(min_size=1, max_size=60)


def scopes() -> st.SearchStrategy[Scope]:
    """Scopes that may or may not cover `HERE`."""
    return st.builds(
        Scope,
        target=st.sampled_from([None, "moe", "mla"]),
        hardware=st.sampled_from([None, "h200"]),
        dsl=st.sampled_from([None, "triton", "cuda"]),
        state=st.sampled_from([None, 1, 2]),
        compiler=st.sampled_from([None, "triton"]),
    )


def constraint_lists(max_size: int = 40) -> st.SearchStrategy[list[Constraint]]:
    """Constraints with distinct ids."""
    one = st.builds(
        Constraint,
        id=st.integers(0, 10_000).map(lambda n: f"c{n}"),
        severity=st.sampled_from(["hard", "soft", "positive"]),
        statement=texts(),
        scope=scopes(),
        evidence=st.builds(Evidence, lines=st.lists(texts(), max_size=2).map(tuple)),
        source=st.sampled_from(["", "L1", "a datasheet"]),
        architecture=st.booleans(),
        time=st.sampled_from(TIMES),
        rule=st.sampled_from([None, None, "num_warps <= 8", "num_warps<=8", "x in [1, 2]"]),
    )
    return st.lists(one, max_size=max_size, unique_by=lambda c: c.id)


def hardware(**changed: Any) -> Hardware:
    """Round figures of a made-up GPU."""
    figures = {
        "sm_count": 100, "warp_size": 32, "max_warps_per_sm": 64, "max_threads_per_block": 1024,
        "max_blocks_per_sm": 32, "registers_per_sm": 65536, "max_registers_per_thread": 255,
        "shared_bytes_per_sm": 102400, "shared_bytes_per_block": 101376, "l2_bytes": 50 * 1024 * 1024,
        "dram_bytes": 80e9, "dram_peak_bytes_per_s": 4e12, "dram_bytes_per_s": 2e12, "bf16_peak_flops_per_s": 900e12,
        "bf16_flops_per_s": 500e12, "fp8_peak_flops_per_s": 1800e12, "fp8_flops_per_s": 1000e12, "launch_floor_us": 0.5,
    }  # fmt: skip
    data: dict[str, Any] = {name: Figure(value=value, source=f"sheet, {name}") for name, value in figures.items()}
    data |= {"name": "gpu1", "title": "GPU One", "arch": "sm_90a", "compute_capability": 90}
    return Hardware(**(data | changed))
