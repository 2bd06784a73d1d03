"""How long it takes to load 100,000 constraints and to select from them, in two shapes.

`scoped`: learned over 4 targets, 4 GPUs, 3 DSLs and 6 states, so that a request meets a part of them.
`unscoped`: every one holds everywhere, the worst case. Nothing in either is merged.
"""

from __future__ import annotations

import json
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from kernelgen.config import Dsl
from kernelgen.constraints.book import ConstraintBook
from kernelgen.constraints.lines import line_text
from kernelgen.constraints.store import ConstraintFile
from kernelgen.records import Constraint, Evidence, Scope

COUNT = 100_000
SELECTIONS = 5
BUDGET = 2000
ENCODING = "o200k_base"
TARGETS = ("moe_dispatch_384expert", "mla_decode_fp8", "combine", "gate")
GPUS = ("h200", "h100", "b200", "a100")
DSLS: tuple[Dsl, ...] = ("triton", "tilelang", "cuda")
HERE = Scope(target="moe_dispatch_384expert", hardware="h200", dsl="triton", state=1)


def run() -> dict[str, dict[str, float]]:
    """Seconds by shape: `load` reads and checks the file, `index` sorts it, `select` is the slowest of five."""
    return {"scoped": _measure(_anywhere), "unscoped": _measure(lambda random: Scope())}


def _anywhere(source: random.Random) -> Scope:
    return Scope(
        target=source.choice((None, *TARGETS)),
        hardware=source.choice((None, *GPUS)),
        dsl=source.choice((None, *DSLS)),
        state=source.choice((None, *range(6))),
    )


def _constraint(number: int, source: random.Random, scope: Scope) -> Constraint:
    warps, rows = source.choice((1, 2, 4, 8)), source.choice((16, 32, 64, 128))
    return Constraint(
        id=f"c20261130t{number:012}_{source.getrandbits(48):012x}",
        severity=source.choice(("hard", "soft", "positive")),
        statement=f"In kernel_{number:x} use {warps} warps for tiles of {rows} rows, or the loop's loads are exposed.",
        scope=scope,
        evidence=Evidence(events=(f"e{number}",), lines=(f"ptxas info: used {source.randrange(256)} registers",)),
        source="L1",
        time=f"2026-11-30T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}.{number:06}Z",
        rule=f'not (num_warps == {warps} and block("BLOCK_M") == {rows})' if number % 2 else None,
    )


def _measure(scope_of: Callable[[random.Random], Scope]) -> dict[str, float]:
    source = random.Random(0)
    with tempfile.TemporaryDirectory() as folder:
        file = ConstraintFile(Path(folder) / "constraints.jsonl")
        lines = (line_text(_constraint(number, source, scope_of(source))) for number in range(COUNT))
        file.path.write_text("\n".join(lines) + "\n")
        begun = time.perf_counter()
        book = ConstraintBook(line.record for line in file.read())
        loaded = time.perf_counter()
        index = book.index()
        indexed = time.perf_counter()
        # the first selection loads the encoding, which a process does once
        index.select(HERE, budget=BUDGET, encoding=ENCODING)
        selecting = []
        for _ in range(SELECTIONS):
            start = time.perf_counter()
            considered = index.select(HERE, budget=BUDGET, encoding=ENCODING).considered
            selecting.append(time.perf_counter() - start)
    return {
        "constraints": COUNT,
        "hold_here": considered,
        "load_s": round(loaded - begun, 3),
        "index_s": round(indexed - loaded, 3),
        "select_s": round(max(selecting), 3),
    }


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
