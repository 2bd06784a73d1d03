"""The doors for files that users bring: constraints, profiles, pull requests, parts, configs, programs, kernels."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from kernelgen import cli
from kernelgen.catalog import Catalog, read_yaml, shipped_conf, validated
from kernelgen.config import Approach, Frozen, Hardware, LmConfig, Policy, ProgramConfig, Target
from kernelgen.constraints import rules
from kernelgen.constraints.render import render_body
from kernelgen.constraints.select import select
from kernelgen.constraints.store import ConstraintFile, reconcile
from kernelgen.errors import BadInput
from kernelgen.eventlog.store import EventLog
from kernelgen.generation.inputs import read_parts, read_pull_request
from kernelgen.generation.region import ConstraintRows
from kernelgen.profile.importer import import_profile
from kernelgen.profile.listing import list_kernels
from kernelgen.prompt.program import load_program
from kernelgen.records import Scope
from tests import factories
from tests.fuzz.fuzz_bytes import mutated
from tests.fuzz.fuzz_property import Door

ROOT = Path(__file__).resolve().parents[2]
PROFILES = ROOT / "examples" / "profiles"
NAMED = "mla_decode_fp8"
CONFIG_SEEDS_LONGEST = 6000
"""Bytes of a config file that is taken."""
DETAILS_LINES = 130
COLUMNS = (
    "ID", "Kernel Name", "Device", "CC", "Grid Size", "Block Size",
    "dram__", "gpu__time", "sm__throughput", "sm__warps",
)  # fmt: skip
"""How the columns begin that edits should meet often."""
CONSTRAINTS = (
    b'{"severity": "hard", "statement": "Keep num_warps at 8.", "rule": "num_warps <= 8"}\n'
    b'{"id": "c_one", "severity": "soft", "statement": "Small tiles.", "time": "2026-11-30T18:14:20Z", '
    b'"scope": {"target": "mla_decode_fp8", "state": 1}, "evidence": {"lines": ["error: x"], "events": []}}\n'
    b'{"id": "r_one", "retracts": "c_one", "why": "mended", "time": "2026-11-30T18:14:21Z"}\n',
    b'{"id": "c_two", "severity": "positive", "statement": "Split the keys.", "architecture": true, '
    b'"rule": "not (block(\\"BLOCK_M\\") == 256 and num_stages > 3) or source_matches(r\\"tl\\\\.dot\\")"}\n',
)
DIFF = b"Repository: example/kernels\nNumber: 7\nLicence: MIT\n\n--- a/k.py\n+++ b/k.py\n@@ -1 +1 @@\n-A = 1\n+A = 2\n"
PARTS = b"targets: [mla_decode_fp8, moe_dispatch_384expert]\nreference: composed.py\n"
KERNEL = b"import torch\n\n\ndef mla_decode_fp8(**inputs):\n    return (inputs['q'],)\n"
GROUPS: dict[str, type[Frozen]] = {
    "target": Target,
    "hardware": Hardware,
    "state": Approach,
    "lm": LmConfig,
    "policy": Policy,
    "program": ProgramConfig,
}


def _written(name: str, case: bytes, folder: Path) -> None:
    (folder / name).write_bytes(case)


def _file_door(name: str, file: str, seeds: Sequence[bytes], enter: Callable[[Path], object]) -> Door:
    return Door(name, mutated(seeds), partial(_written, file), lambda _, folder: enter(folder / file))


def _constraints(path: Path) -> None:
    """Read, bring to a log, select, render, and check every rule, as a generation does."""
    with EventLog.open(path.parent.parent / "constraints.db") as log:
        # a log of its own for each case would cost more than all the rest
        lines = ConstraintFile(path).read()
        book = reconcile(ConstraintFile(path), _Fresh(log))
    render_body(select(book.active, Scope(target=NAMED, dsl="triton"), budget=500, encoding="o200k_base"))
    for line in lines:
        if rule := getattr(line.record, "rule", None):
            rules.parse(rule).check({"num_warps": 4, "blocks": {"BLOCK_M": 256}, "source": "a", "language": "python"})


class _Fresh(ConstraintRows):
    """A log that has nothing yet and keeps nothing."""

    def constraint_rows(self) -> list[Any]:
        return []

    def append_all(self, events: Sequence[Any]) -> None:
        return None


@cache
def _region() -> tuple[Target, Hardware]:
    catalog = Catalog([shipped_conf()])
    return catalog.target(NAMED)[0], catalog.hardware("h200")


def _profile(path: Path) -> None:
    target, hardware = _region()
    list_kernels(path)
    champion = factories.champion(target=NAMED, entry_point=NAMED)
    shape = target.profile_shape
    import_profile(path, target=target, hardware=hardware, shape=shape, flops=1e9, floor_bytes=1e6, champion=champion)


def _profile_seeds() -> list[bytes]:
    raw = (PROFILES / f"{NAMED}.ncu_raw.csv").read_bytes()
    details = (PROFILES / f"{NAMED}.ncu_details.csv").read_bytes()
    small = _few_columns(raw)
    return [
        small,
        small,
        raw,
        b"\n".join(details.split(b"\n")[:DETAILS_LINES]) + b"\n",
        (PROFILES / "layer.hatchet").read_bytes(),
    ]


def _few_columns(raw: bytes) -> bytes:
    """The raw page with names, units and the metrics that are read, so that edits meet them often."""
    import csv

    rows = list(csv.reader(io.StringIO(raw.decode())))
    kept = [at for at, name in enumerate(rows[0]) if name.startswith(COLUMNS)]
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(
        [row[at] for at in kept] for row in rows if row
    )
    return out.getvalue().encode()


def _parts(path: Path) -> None:
    path.with_name("composed.py").touch()
    try:
        read_parts(path, lambda name: factories.champion(target=name, origin="promoted") if len(name) < 40 else None)
    finally:
        path.with_name("composed.py").unlink()


def _config(path: Path) -> None:
    data = read_yaml(path)
    for group, noun in GROUPS.items():
        with contextlib.suppress(BadInput):
            validated(noun, data, group)
    validated(GROUPS[str(data.get("group", "target"))] if data.get("group") in GROUPS else Target, data, str(path))


def _config_seeds() -> list[bytes]:
    files = sorted(path for group in GROUPS for path in (ROOT / "conf" / group).glob("*.yaml"))
    return [data for path in files if len(data := path.read_bytes()) < CONFIG_SEEDS_LONGEST]


def _kernel(path: Path) -> None:
    """The whole command, since what it checks is private to it."""
    log = path.parent.parent / "kernels.db"
    EventLog.open(log).close()
    told = io.StringIO()
    with contextlib.redirect_stderr(told), contextlib.redirect_stdout(told):
        code = cli.main(["champion", "import", str(path), f"target={NAMED}", f"events={log}"])
    assert code in (0, 2), f"exit code {code}: {told.getvalue()}"
    if code:
        raise BadInput(told.getvalue().removesuffix("\n"))


def _program_seeds() -> list[bytes]:
    return [(ROOT / "conf" / "program" / "default.json").read_bytes()]


FILE_DOORS = (
    _file_door("constraint lines", "constraints.jsonl", CONSTRAINTS, _constraints),
    _file_door("profile files", "profile.csv", _profile_seeds(), _profile),
    _file_door("pull requests", "change.diff", [DIFF], read_pull_request),
    _file_door("parts files", "parts.yaml", [PARTS], _parts),
    _file_door("config files", "mine.yaml", _config_seeds(), _config),
    _file_door("prompt programs", "program.json", _program_seeds(), lambda path: load_program("mine", path)),
    _file_door("kernel files", "kernel.py", [KERNEL], _kernel),
)
assert not os.environ.get("KERNELGEN_CONF"), "the fuzzing suite reads the shipped configs"
