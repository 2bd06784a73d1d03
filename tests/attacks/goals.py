"""The corpus' own small targets as the ladder takes them, and their honest kernels as text.

`targets/NAME.py` is a target's Python as a user would write it, `honest/NAME.py` a candidate for it. Shapes are tiny:
every cheat and every twin runs through Triton's interpreter many times.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from kernelgen.ladder.subject import Goal, Shapes
from tests.attacks.source import Source

FOLDER = Path(__file__).parent
HOPPER = {"arch": "sm_90a", "compute_capability": 90, "shared_bytes_per_block": 232_448}


def honest(target: str) -> Source:
    """The whole honest candidate of a target."""
    return Source((FOLDER / "honest" / f"{target}.py").read_text(encoding="utf-8"))


def kernel(target: str) -> Source:
    """The honest candidate up to its host wrapper: imports and kernels."""
    return Source(honest(target).partition(f"def {target}(")[0])


def _goal(
    name: str,
    inputs: tuple[tuple[str, str, list[str | int]], ...],
    outputs: tuple[tuple[str, str, list[str | int]], ...],
    shapes: tuple[Shapes, Shapes, Shapes, Shapes],
    kinds: tuple[str, ...],
    tolerance: dict[str, tuple[float, float]],
    **more: Any,
) -> Goal:
    smoke, edge, tune, heldout = shapes
    stated: dict[str, Any] = {"scalars": {}, "exact_kinds": (), "deterministic": True, "instructions": (), **HOPPER}
    return Goal(
        name=name,
        module=f"{name}.py",
        folder=str(FOLDER / "targets"),
        inputs=inputs,
        outputs=outputs,
        smoke=smoke,
        edge=edge,
        tune=tune,
        heldout=heldout,
        kinds=kinds,
        tolerance=tolerance,
        **{**stated, **more},
    )


SCALE_ADD = _goal(
    "scale_add",
    (("x", "float32", ["n"]), ("y", "float32", ["n"])),
    (("out", "float32", ["n"]),),
    ({"n1000": {"n": 1000}}, {"n1": {"n": 1}, "n1025": {"n": 1025}}, {"n2048": {"n": 2048}}, {"n1536": {"n": 1536}}),
    ("plain", "integers", "mixed"),
    {"out": (1e-6, 1e-6)},
    scalars={"alpha": "float"},
    exact_kinds=("integers",),
)

# where a GPU's time counts
LARGE_SCALE_ADD = replace(SCALE_ADD, tune={"n2_26": {"n": 1 << 26}})

ROW_SOFTMAX = _goal(
    "row_softmax",
    (("x", "float32", ["R", "C"]),),
    (("out", "float32", ["R", "C"]),),
    (
        {"r5_c100": {"R": 5, "C": 100}},
        {"r1_c1": {"R": 1, "C": 1}, "r7_c129": {"R": 7, "C": 129}},
        {"r16_c256": {"R": 16, "C": 256}, "r4_c8192": {"R": 4, "C": 8192}},
        {"r12_c200": {"R": 12, "C": 200}},
    ),
    ("plain", "late_spike", "mixed"),
    {"out": (5e-5, 1e-9)},
)

MATMUL = _goal(
    "matmul",
    (("a", "float16", ["M", "K"]), ("b", "float16", ["K", "N"])),
    (("out", "float32", ["M", "N"]),),
    (
        {"m48_n40_k64": {"M": 48, "N": 40, "K": 64}},
        {"m1_n1_k2": {"M": 1, "N": 1, "K": 2}, "m65_n33_k34": {"M": 65, "N": 33, "K": 34}},
        {"m128_n128_k128": {"M": 128, "N": 128, "K": 128}},
        {"m96_n128_k160": {"M": 96, "N": 128, "K": 160}},
    ),
    ("plain", "integers", "mixed"),
    {"out": (0.0, 1e-5)},
    exact_kinds=("integers",),
    instructions=("HGMMA", "HMMA"),
)

MATMUL_FP8 = _goal(
    "matmul_fp8",
    (("a", "float8_e4m3fn", ["M", "K"]), ("b", "float8_e4m3fn", ["N", "K"])),
    (("out", "float32", ["M", "N"]),),
    (
        {"m48_n40_k64": {"M": 48, "N": 40, "K": 64}},
        {"m65_n33_k80": {"M": 65, "N": 33, "K": 80}},
        {"m128_n128_k128": {"M": 128, "N": 128, "K": 128}},
        {"m96_n128_k192": {"M": 96, "N": 128, "K": 192}},
    ),
    ("plain", "integers"),
    # fp8 products are summed with some 14 bits on sm_90
    {"out": (0.0, 2e-4)},
    exact_kinds=("integers",),
    instructions=("QGMMA",),
)

HISTOGRAM = _goal(
    "histogram",
    (("values", "int32", ["n"]),),
    (("counts", "int32", ["bins"]),),
    (
        {"n1000_b64": {"n": 1000, "bins": 64}},
        {"n1_b2": {"n": 1, "bins": 2}, "n513_b37": {"n": 513, "bins": 37}},
        {"n2048_b64": {"n": 2048, "bins": 64}},
        {"n1536_b128": {"n": 1536, "bins": 128}},
    ),
    ("plain", "skewed", "edges"),
    {"counts": (0.0, 0.0)},
    scalars={"bins": "int"},
)

SEGMENT_SUM = _goal(
    "segment_sum",
    (("values", "float32", ["B*L", "D"]), ("offsets", "int32", ["B+1"])),
    (("out", "float32", ["B", "D"]),),
    (
        {"b8_l4_d32": {"B": 8, "L": 4, "D": 32}},
        {"b1_l1_d1": {"B": 1, "L": 1, "D": 1}, "b5_l3_d33": {"B": 5, "L": 3, "D": 33}},
        {"b16_l8_d64": {"B": 16, "L": 8, "D": 64}},
        {"b12_l10_d48": {"B": 12, "L": 10, "D": 48}},
    ),
    ("plain", "skewed", "ragged"),
    {"out": (1e-6, 1e-6)},
    exact_kinds=("plain", "skewed", "ragged"),
)

ROW_STATS = _goal(
    "row_stats",
    (("x", "float32", ["R", "C"]),),
    (("mean", "float32", ["R"]), ("variance", "float32", ["R"])),
    (
        {"r5_c100": {"R": 5, "C": 100}},
        {"r1_c2": {"R": 1, "C": 2}, "r7_c129": {"R": 7, "C": 129}},
        {"r16_c256": {"R": 16, "C": 256}},
        {"r12_c200": {"R": 12, "C": 200}},
    ),
    ("plain", "shifted"),
    {"mean": (1e-5, 1e-6), "variance": (1e-3, 1e-6)},
)

DECAY_SUM = _goal(
    "decay_sum",
    (("x", "float32", ["R", "T"]),),
    (("out", "float32", ["R", "T"]),),
    (
        {"r3_t80": {"R": 3, "T": 80}},
        {"r1_t1": {"R": 1, "T": 1}, "r33_t65": {"R": 33, "T": 65}},
        {"r32_t96": {"R": 32, "T": 96}},
        {"r20_t90": {"R": 20, "T": 90}},
    ),
    ("plain", "early_spike"),
    {"out": (1e-6, 1e-5)},
    scalars={"decay": "float"},
)

WEAK_SOFTMAX = _goal(
    "weak_softmax",
    (("x", "float32", ["R", "C"]),),
    (("out", "float32", ["R", "C"]),),
    (
        {"r2_c8192": {"R": 2, "C": 8192}},
        {"r1_c8192": {"R": 1, "C": 8192}},
        {"r4_c8192": {"R": 4, "C": 8192}},
        {"r3_c8192": {"R": 3, "C": 8192}},
    ),
    ("plain",),
    {"out": (1e-2, 1e-2)},
)
