"""Builders of valid sample records: each call gives a small, consistent record, changed by keyword.

Import as `from tests.factories import ask`. The samples agree with one another: target `moe_dispatch_384expert`,
hardware `h200`, the naive champion, nothing measured. `approach(n)` reads the real `conf/state/n.yaml`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from kernelgen.config import Approach, Hardware
from kernelgen.ids import digest_text
from kernelgen.records import (
    Answer,
    Ask,
    Attempt,
    AutotuneConfig,
    Champion,
    Constraint,
    Demonstration,
    HardwareBrief,
    KernelSource,
    Launch,
    LimitingFactor,
    Measured,
    Part,
    Parts,
    Position,
    Profile,
    Program,
    PullRequest,
    Reply,
    SelectedConstraint,
    Selection,
    TargetBrief,
    Usage,
)

ROOT = Path(__file__).resolve().parent.parent
TARGET = "moe_dispatch_384expert"
HARDWARE = "h200"
CHAMPION_SOURCE = '''"""Naive dispatch: one program a pair."""
import triton
import triton.language as tl


@triton.jit
def gather_kernel(src, dst, H: tl.constexpr, BLOCK_H: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_H)
    tl.store(dst + row * H + cols, tl.load(src + row * H + cols, mask=cols < H), mask=cols < H)


def moe_dispatch_384expert(hidden, logits, bias):
    settings = {"BLOCK_H": 1024}
    return settings
'''
CUDA_SOURCE = """#include <cuda_runtime.h>
#include <cstdint>

extern "C" int moe_dispatch_384expert(const void* hidden, const float* logits, const float* bias, int64_t T,
                                      void* rows, int* offsets, void* stream) {
    return static_cast<int>(cudaGetLastError());
}
"""


def _make(cls: type, values: dict[str, Any], changes: dict[str, Any]) -> Any:
    return cls(**{**values, **changes})


def _figure(value: float) -> dict[str, Any]:
    return {"value": value, "source": "sample"}


def hardware(**changes: Any) -> Hardware:
    """The whole hardware config of a sample H200."""
    figures = {
        "sm_count": 132, "warp_size": 32, "max_warps_per_sm": 64, "max_threads_per_block": 1024,
        "max_blocks_per_sm": 32, "registers_per_sm": 65536, "max_registers_per_thread": 255,
        "shared_bytes_per_sm": 233472, "shared_bytes_per_block": 232448, "l2_bytes": 62914560,
        "dram_bytes": 150754820096, "dram_peak_bytes_per_s": 4.8e12, "dram_bytes_per_s": 4.3e12,
        "bf16_peak_flops_per_s": 989e12, "bf16_flops_per_s": 790e12, "fp8_peak_flops_per_s": 1979e12,
        "fp8_flops_per_s": 1500e12, "launch_floor_us": 2.0,
    }  # fmt: skip
    values: dict[str, Any] = {"name": HARDWARE, "title": "NVIDIA H200 SXM", "arch": "sm_90a", "compute_capability": 90}
    values |= {name: _figure(value) for name, value in figures.items()}
    return _make(Hardware, values, changes)


def hardware_brief(**changes: Any) -> HardwareBrief:
    """The part of it that the prompt tells."""
    return _make(HardwareBrief, {"name": HARDWARE, "title": "NVIDIA H200 SXM", "arch": "sm_90a"}, changes)


def target_brief(**changes: Any) -> TargetBrief:
    """The prompt's part of a target with two inputs' worth of rules and one timed shape."""
    values = {
        "name": TARGET,
        "title": "MoE dispatch, 384 experts",
        "summary": "Routes each of T tokens to 8 of 384 experts and gathers its row in expert order.",
        "signature": f"def {TARGET}(hidden, logits, bias) -> tuple\n  hidden: (T, 7168) bfloat16\n"
        "  logits: (T, 384) float32\n  bias: (384,) float32",
        "entry_point": TARGET,
        "rules": ("Any order within an expert is right.", "T may be any positive number."),
        "tolerance": {"weights": "rtol 1e-05, atol 1e-06 (fp32 sigmoid)", "rows": "exact (copied)"},
        "tune": {"t64": {"T": 64}, "t4096": {"T": 4096}},
    }
    return _make(TargetBrief, values, changes)


def launch(**changes: Any) -> Launch:
    """One launch of 12.5 us."""
    values = {"name": "index_select", "time_us": 12.5, "dram_bytes": 9.0e6, "grid": "(512, 1, 1)", "block": "256"}
    return _make(Launch, values, changes)


def profile(**changes: Any) -> Profile:
    """A profile of the sample champion itself at t64; occupancy was not measured."""
    values = {
        "id": "p20261130t181420123456_9f3ac2d1b06e",
        "target": TARGET,
        "hardware": HARDWARE,
        "shape": "t64",
        "dims": {"T": 64},
        "subject": "champion naive: route_kernel, gather_kernel",
        "subject_source_digest": digest_text(CHAMPION_SOURCE),
        "source_file": "dispatch.raw.csv",
        "source_digest": digest_text("raw"),
        "format": "ncu raw csv",
        "device": "NVIDIA H200",
        "launches": (launch(), launch(name="topk_kernel", time_us=30.0, dram_bytes=None)),
        "dominant": 1,
        "time_us": 42.5,
        "dram_bytes": 9.0e6,
        "flops": 1.0e6,
        "floor_bytes": 8.4e6,
        "floor_us": 2.0,
        "floor_by": "dram bytes",
        "dram_percent": 4.9,
        "sm_percent": 2.1,
        "occupancy_percent": None,
        "intensity": 0.12,
        "ridge": 183.7,
        "bottleneck": "latency_bound",
        "limiting_factor": LimitingFactor(
            name="launches", metric="gpu__time_duration.sum", value=42.5, unit="us",
            sentence="Two launches take 42.5 us while the bytes need 2.0 us.",
        ),
        "target_metric": "time of the region: 42.5 us now, floor 2.0 us",
        "raw": digest_text("raw metrics"),
    }  # fmt: skip
    return _make(Profile, values, changes)


def measured(**changes: Any) -> Measured:
    """Figures at t64, occupancy not measured."""
    values = {
        "shape": "t64", "time_us": 42.5, "tflops": 0.02, "gbytes_per_s": 197.6, "occupancy_percent": None,
        "source": "v20261130t181420123456_9f3ac2d1b06e",
    }  # fmt: skip
    return _make(Measured, values, changes)


def champion(**changes: Any) -> Champion:
    """The naive champion, nothing measured."""
    values = {
        "id": "naive", "target": TARGET, "hardware": HARDWARE, "origin": "naive", "language": "python",
        "entry_point": TARGET, "source": CHAMPION_SOURCE,
    }  # fmt: skip
    return _make(Champion, values, changes)


def constraint(**changes: Any) -> Constraint:
    """A hard architecture fact."""
    values = {
        "id": "h200_shared_bytes_per_block",
        "severity": "hard",
        "statement": "A block can use at most 232448 bytes of shared memory.",
        "source": "sample datasheet",
        "architecture": True,
        "rule": "shared_bytes <= 232448",
    }
    return _make(Constraint, values, changes)


def selected(**changes: Any) -> SelectedConstraint:
    """The same as an entry of the prompt."""
    values = {
        "ids": ("h200_shared_bytes_per_block",),
        "severity": "hard",
        "statement": "A block can use at most 232448 bytes of shared memory.",
        "evidence": "sample datasheet",
        "rule": "shared_bytes <= 232448",
        "tokens": 40,
    }
    return _make(SelectedConstraint, values, changes)


def selection(**changes: Any) -> Selection:
    """One entry of each severity, one id left out."""
    soft = selected(ids=("c_num_warps_16",), severity="soft", statement="num_warps of 16 was slower.", rule=None)
    positive = selected(
        ids=("c_fused_scan",), severity="positive", statement="One fused launch won.", rule=None, evidence=""
    )
    values = {
        "chosen": (selected(), soft, positive), "left_out": ("c_left_out",), "considered": 4, "tokens": 120,
        "budget": 2000, "encoding": "o200k_base",
    }  # fmt: skip
    return _make(Selection, values, changes)


def attempt(**changes: Any) -> Attempt:
    """A generation at state 0 that failed to compile."""
    values = {
        "iteration_id": "g20261130t181420123456_9f3ac2d1b06e",
        "state": 0,
        "outcome": "failed",
        "level": "L1",
        "reason": "out of shared memory: 262144 bytes of 232448",
        "configs": '{"gather_kernel":[{"kwargs":{"BLOCK_H":8192},"num_stages":3,"num_warps":4}]}',
    }
    return _make(Attempt, values, changes)


def position(**changes: Any) -> Position:
    """At state 1 by the vector, after one failed attempt at state 0."""
    values = {
        "target": TARGET, "hardware": HARDWARE, "state": 1, "chosen_by": "vector", "failures": {"0": 1},
        "attempts": (attempt(),), "attempts_total": 1, "frozen": None,
    }  # fmt: skip
    return _make(Position, values, changes)


def approach(number: int, **changes: Any) -> Approach:
    """The state as `conf/state/` has it."""
    text = (ROOT / "conf" / "state" / f"{number}.yaml").read_text(encoding="utf-8")
    return _make(Approach, yaml.safe_load(text), changes)


def pull_request(**changes: Any) -> PullRequest:
    """A pull request with a diff of one line."""
    diff = "--- a/kernel.py\n+++ b/kernel.py\n@@ -1 +1 @@\n-BLOCK = 64\n+BLOCK = 128\n"
    values = {"repository": "example/kernels", "number": 7, "licence": "Apache-2.0", "diff": diff}
    return _make(PullRequest, values, changes)


def parts(**changes: Any) -> Parts:
    """Two parts and a composed reference."""
    values = {
        "champions": (
            Part(target=TARGET, champion="naive", language="python", source=CHAMPION_SOURCE),
            Part(
                target="mla_decode_fp8",
                champion="naive",
                language="python",
                source="def mla_decode_fp8():\n    return ()\n",
            ),
        ),
        "reference": "def reference(**inputs):\n    return ()\n",
    }
    return _make(Parts, values, changes)


def ask(state: int = 1, **changes: Any) -> Ask:
    """A whole request at a state, with the further inputs that the state needs."""
    values = {
        "target": target_brief(),
        "hardware": hardware_brief(),
        "approach": approach(state),
        "selection": selection(),
        "profile": profile(),
        "champion": champion(),
        "position": position(state=state),
        "pr": pull_request() if state == 4 else None,
        "parts": parts() if state == 5 else None,
    }
    return _make(Ask, values, changes)


def program(**changes: Any) -> Program:
    """A program with short instructions and no demonstrations."""
    values = {"name": "default", "instructions": "Correct first, then fast.", "demonstrations": ()}
    return _make(Program, values, changes)


def demonstration(**changes: Any) -> Demonstration:
    """An earlier message pair."""
    values = {"user": "An earlier example: a copy kernel on an A100.", "assistant": "It was answered well."}
    return _make(Demonstration, values, changes)


def reply(**changes: Any) -> Reply:
    """A Triton reply that honours the hard constraint and overrides the soft one."""
    values = {
        "hypothesis": "The champion is bound by launches; one fused launch removes most of the 42.5 us.",
        "kernel": KernelSource(
            language="python",
            code=CHAMPION_SOURCE.replace(
                "@triton.jit", '@triton.autotune(configs=AUTOTUNE_CONFIGS["gather_kernel"], key=["H"])\n@triton.jit'
            ),
            entry_point=TARGET,
        ),
        "autotune": {
            "gather_kernel": (
                AutotuneConfig(kwargs={"BLOCK_H": 8192}, num_warps=8, num_stages=2),
                AutotuneConfig(kwargs={"BLOCK_H": 16384}, num_warps=16),
            )
        },
        "honoured": ("h200_shared_bytes_per_block",),
        "overrides": ({"id": "c_num_warps_16", "reason": "The rows are 16384 wide here."},),
    }
    return _make(Reply, values, changes)


def cuda_reply(**changes: Any) -> Reply:
    """A CUDA C++ reply, for state 3."""
    kernel = KernelSource(language="cuda", code=CUDA_SOURCE, entry_point=TARGET)
    values = {"hypothesis": "One persistent kernel saves the launches.", "kernel": kernel}
    return _make(Reply, values, changes)


def usage(**changes: Any) -> Usage:
    """1000 tokens in, 200 out, price unknown."""
    return _make(Usage, {"input_tokens": 1000, "output_tokens": 200, "cost_usd": None, "seconds": 0.5}, changes)


def answer(text: str, **changes: Any) -> Answer:
    """A raw answer that ended by itself."""
    return _make(Answer, {"text": text, "model": "sample", "finish_reason": "stop", "usage": usage()}, changes)
