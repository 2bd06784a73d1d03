"""Small profile files and the records an import needs, for the tests of this folder."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

from kernelgen.config import Target
from kernelgen.profile.importer import import_profile
from kernelgen.records import Profile
from tests.factories import champion, hardware

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "profiles"
MOE_RAW = EXAMPLES / "moe_dispatch_384expert.ncu_raw.csv"
MLA_RAW = EXAMPLES / "mla_decode_fp8.ncu_raw.csv"
MLA_DETAILS = EXAMPLES / "mla_decode_fp8.ncu_details.csv"
TRACE = EXAMPLES / "layer.torch_trace.json"
HATCHET = EXAMPLES / "layer.hatchet"

TIME = "gpu__time_duration.sum"
READ = "dram__bytes_read.sum"
WRITE = "dram__bytes_write.sum"
DRAM = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
SM = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
OCCUPANCY = "sm__warps_active.avg.pct_of_peak_sustained_active"
IDENTITY = [
    "ID",
    "Process ID",
    "Process Name",
    "Host Name",
    "Kernel Name",
    "Context",
    "Stream",
    "Block Size",
    "Grid Size",
    "Device",
    "CC",
]
DETAIL_COLUMNS = ["Section Name", "Metric Name", "Metric Unit", "Metric Value"]
RULE_COLUMNS = ["Rule Name", "Rule Type", "Rule Description", "Estimated Speedup Type", "Estimated Speedup"]

Metrics = dict[str, tuple[str, str]]


def quoted(rows: list[list[str]]) -> str:
    """Rows as ncu prints them: every field quoted."""
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    return out.getvalue()


def identity(index: int, name: str, capability: str = "9.0") -> list[str]:
    return [str(index), "77", "python3", "box", name, "1", "7", "(128, 1, 1)", "(1760, 1, 1)", "0", capability]


def raw_csv(*launches: tuple[str, Metrics], capability: str = "9.0") -> str:
    """A raw page; the units are the first launch's."""
    names = list(launches[0][1])
    rows = [IDENTITY + names, [""] * len(IDENTITY) + [launches[0][1][name][0] for name in names]]
    rows += [identity(i, name, capability) + [m[x][1] for x in names] for i, (name, m) in enumerate(launches)]
    return quoted(rows)


def details_csv(*rows: tuple[int, str, str, str, str, str]) -> str:
    """A details page of (launch, kernel, section, metric, unit, value) rows."""
    table = [IDENTITY + DETAIL_COLUMNS + RULE_COLUMNS]
    table += [[*identity(index, kernel), *figure, ""] for index, kernel, *figure in rows]
    return quoted(table)


def metrics(time_ns: str = "95,712", *, dram: str = "40.00", sm: str = "20.00", occupancy: str = "50.00") -> Metrics:
    """The metrics of one launch; 341,204,992 bytes read and none written."""
    return {
        TIME: ("ns", time_ns),
        READ: ("byte", "341,204,992"),
        WRITE: ("byte", "0"),
        DRAM: ("%", dram),
        SM: ("%", sm),
        OCCUPANCY: ("%", occupancy),
    }


def target(**changes: Any) -> Target:
    """A target with shapes t64 and t4096."""
    tensor = {"name": "x", "dtype": "bfloat16", "shape": ["T", 7168], "doc": "Rows."}
    values: dict[str, Any] = {
        "name": "moe_dispatch_384expert",
        "title": "sample",
        "summary": "A sample.",
        "entry_point": "moe_dispatch_384expert",
        "inputs": [tensor],
        "outputs": [tensor | {"name": "y"}],
        "shapes": {"smoke": {"tiny": {"T": 3}}, "tune": {"t64": {"T": 64}, "t4096": {"T": 4096}}, "heldout": {}},
        "profile_shape": "t4096",
        "input_kinds": ["plain"],
        "tolerance": {"y": {"rtol": 0, "atol": 0, "reason": "copied"}},
        "calls_per_step": 60,
        "module": "sample.py",
        "champion": "sample.py",
    }
    return Target(**(values | changes))


def load(path: Path, **changes: Any) -> tuple[Profile, str]:
    """Import with sample target, hardware and champion; 1e9 FLOPs over 43 MB, so a floor of 10 us."""
    values: dict[str, Any] = {
        "target": target(),
        "hardware": hardware(),
        "shape": "t4096",
        "flops": 1e9,
        "floor_bytes": 43e6,
        "champion": champion(),
    }
    return import_profile(path, **(values | changes))
