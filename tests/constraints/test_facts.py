"""What is told of a candidate before it compiles is what the compiler makes of it, and any text is answered."""

from __future__ import annotations

import importlib.resources
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from kernelgen.constraints.facts import facts_before_compiling
from kernelgen.records import AutotuneConfig
from tests.constraints.faulty_kernels import DTYPES, HEAD, product

ROOT = Path(__file__).resolve().parents[2]
KERNELS = [
    *sorted((ROOT / "kernelgen/targets/champions").glob("[a-z]*.py")),
    *sorted((ROOT / "kernelgen/playbook/plays").glob("*/*.py")),
]
COMPILE = """
import json, sys
from kernelgen.ladder import offline
log = offline.install(90)
import linecache
import torch
sizes = []
for name, (source, left, right) in json.load(sys.stdin).items():
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    space = {}
    exec(compile(source, name, "exec"), space)
    a, b = (torch.empty(4096, 4096, dtype=getattr(torch, d), device="meta") for d in (left, right))
    space["entry"](a, b)
    sizes.append(log.launches[-1].build.shared_bytes)
print(json.dumps(sizes))
"""
BF16, FP32, FP8 = "bfloat16", "float32", "float8_e4m3fn"
PRODUCTS = [
    ((64, 64, 64), "num_warps=4, num_stages=3", "y", BF16, BF16),
    ((16, 64, 64), "num_warps=4, num_stages=3", "y", BF16, BF16),
    ((64, 64, 64), "num_warps=4, num_stages=1", "y", BF16, BF16),
    ((64, 64, 64), "num_warps=2, num_stages=3", "y", BF16, BF16),
    ((128, 128, 64), "num_warps=8, num_stages=4", "y", BF16, BF16),
    ((64, 64, 64), "num_warps=4, num_stages=3", "y", FP32, FP32),
    ((64, 64, 64), "num_warps=4, num_stages=3", "y", FP8, FP8),
    ((16, 64, 64), "num_warps=4, num_stages=1", "y", FP8, FP8),
    ((64, 64, 64), "num_warps=4, num_stages=3", "y.to(tl.bfloat16)", BF16, FP8),
]
PARSE_LEVEL_S = 0.05
EXACT = 6
"""How many of the first of them stage nothing but what is counted."""


def settings(source: str, **given: Any) -> list[dict[str, Any]]:
    return [dict(one.values) for one in facts_before_compiling(source, **given) if one.kernel is not None]


def host(launch: str, before: str = "", decorator: str = "") -> str:
    return f"""{HEAD}WIDE = 256
{decorator}
@triton.jit
def fill(out, BLOCK: tl.constexpr, DEPTH: tl.constexpr = 32):
    tl.store(out + tl.arange(0, BLOCK), 1.0)


def entry(a, b):
    {before or "pass"}
    fill[(1,)]({launch})
    return a
"""


def test_staged_bytes_are_what_the_compiler_stages_and_never_more() -> None:
    sources = [product(tiles=t, options=o, right=r) for t, o, r, _, _ in PRODUCTS]
    given = {f"k{i}.py": (s, *p[3:]) for i, (s, p) in enumerate(zip(sources, PRODUCTS, strict=True))}
    done = subprocess.run(
        [sys.executable, "-c", COMPILE],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=True,
        timeout=200,
    )
    real = json.loads(done.stdout.splitlines()[-1])
    told = [
        settings(source, dtypes={"a": left, "b": right})[0]["staged_bytes"]
        for source, (*_, left, right) in zip(sources, PRODUCTS, strict=True)
    ]
    assert told[:EXACT] == real[:EXACT]
    assert all(0 < ours <= theirs for ours, theirs in zip(told, real, strict=True)), (told, real)
    unknown = [settings(source)[0]["staged_bytes"] for source in sources]
    assert all(ours <= theirs for ours, theirs in zip(unknown, real, strict=True))


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_no_fact_speaks_against_an_honest_kernel(path: Path) -> None:
    target = path.stem if path.parent.name == "champions" else path.parent.name
    config = yaml.safe_load((ROOT / "conf" / "target" / f"{target}.yaml").read_text())
    dtypes = {tensor["name"]: tensor["dtype"] for tensor in config["inputs"]}
    found = settings(path.read_text(), dtypes=dtypes)
    assert found, "its launches are read"
    for facts in found:
        assert facts["staged_bytes"] <= 232448
        assert [facts[n] for n in ("odd_extents", "mixed_dots", "shallow_dots", "bad_descriptors")] == [0, 0, 0, 0]
        assert facts["threads"] == 32 * facts["num_warps"]


@pytest.mark.parametrize(
    ("launch", "before", "blocks"),
    [
        ("a, 64", "", {"BLOCK": 64, "DEPTH": 32}),
        ("a, BLOCK=WIDE // 2", "", {"BLOCK": 128, "DEPTH": 32}),
        ("a, BLOCK=block", "block, depth = triton.next_power_of_2(700), 8", {"BLOCK": 1024, "DEPTH": 32}),
        ("a, **sizes", "sizes = dict(BLOCK=2**5, DEPTH=16)", {"BLOCK": 32, "DEPTH": 16}),
        ("a, BLOCK=a.shape[0]", "", {"DEPTH": 32}),
        ("a, BLOCK=block", "block = 64 if a.numel() > 9 else 32", {"DEPTH": 32}),
        ("a, BLOCK=block", "block = 64; block = 128", {"DEPTH": 32}),
    ],
)
def test_compile_time_values_are_read_where_the_text_tells_them_and_absent_where_not(
    launch: str, before: str, blocks: dict[str, int]
) -> None:
    (facts,) = settings(host(launch, before))
    assert facts["blocks"] == blocks
    assert (facts["num_warps"], facts["num_stages"]) == (4, 3)


def test_an_option_computed_at_run_time_is_absent() -> None:
    (facts,) = settings(host("a, BLOCK=64, num_warps=a.shape[0], **more"))
    assert "num_warps" not in facts
    assert "num_stages" not in facts
    assert "staged_bytes" not in facts


def test_configurations_are_read_from_a_table_a_list_or_a_comprehension() -> None:
    comprehension = (
        "@triton.autotune([triton.Config({'BLOCK': b}, num_warps=w) for b in (64, 128) for w in [2, 4] "
        "if b // w > 16], key=[])"
    )
    assert [(f["blocks"]["BLOCK"], f["num_warps"]) for f in settings(host("a", "", comprehension))] == [
        (64, 2),
        (128, 2),
        (128, 4),
    ]
    rows = [AutotuneConfig(kwargs={"BLOCK": 32}, num_warps=1), AutotuneConfig(kwargs={"BLOCK": 16}, num_warps=2)]
    tabled = host("a", "", '@triton.autotune(AUTOTUNE_CONFIGS["fill"], key=[])')
    given = facts_before_compiling(tabled, {"fill": rows})
    assert [one.config for one in given if one.kernel] == rows
    assert all(one.tuned for one in given if one.kernel)


def test_a_helper_is_followed_and_a_branch_not_taken_is_not() -> None:
    source = (
        product()
        .replace("x = tl.load(left", "x = fetch(left")
        .replace("@triton.jit", "@triton.jit\ndef fetch(place):\n    return tl.load(place)\n\n\n@triton.jit", 1)
    )
    (facts,) = settings(source, dtypes=DTYPES)
    assert facts["staged_bytes"] == 49152
    branched = product().replace(
        "    tl.store(out", "    if BLOCK_M > 64:\n        tl.dot(tl.zeros((16, 8), tl.float16), x)\n    tl.store(out"
    )
    assert settings(branched, dtypes=DTYPES)[0]["shallow_dots"] == 0
    assert settings(branched.replace("BLOCK_M=64", "BLOCK_M=128"), dtypes=DTYPES)[0]["shallow_dots"] == 1


HOSTILE = {
    "no Python": "def broken(:\n",
    "huge number": host("a, BLOCK=2**99999999999"),
    "huge sequence": host("a", "", "@triton.autotune([triton.Config({'BLOCK': b}) for b in range(10**15)], key=[])"),
    "huge product": host(
        "a", "", "@triton.autotune([b for a in range(4000) for b in range(4000) for c in range(4000)], key=[])"
    ),
    "recursive helper": product()
    .replace("x = tl.load", "x = fetch")
    .replace("@triton.jit", "@triton.jit\ndef fetch(p):\n    return fetch(fetch(p))\n\n\n@triton.jit", 1),
    "deep expression": host("a, BLOCK=" + "+".join(["1"] * 20_000)),
    "deep brackets": host("a, BLOCK=" + "(" * 150 + "1" + ")" * 150),
    "a NUL": product() + "\0",
    "CUDA": '#include <cuda_runtime.h>\nextern "C" int entry() { return 0; }\n',
}


@pytest.mark.parametrize("name", HOSTILE)
def test_any_text_is_answered_at_once(name: str) -> None:
    facts = facts_before_compiling(HOSTILE[name])
    assert facts[0].values["source"] == HOSTILE[name]


def test_the_facts_of_a_play_take_less_than_the_parse_level_may() -> None:
    source = importlib.resources.files("kernelgen.playbook").joinpath("plays/mla_decode_fp8/split_kv.py").read_text()
    facts_before_compiling(source)
    times = []
    for _ in range(5):
        began = time.process_time()
        facts_before_compiling(source)
        times.append(time.process_time() - began)
    assert min(times) < PARSE_LEVEL_S
