"""`python -m tests.fuzz`: every door, or those whose names are given, with KERNELGEN_FUZZ_CASES cases; prints a table.

Exit code 1 when a door breaks its promise; hypothesis tells the smallest case that does.
"""

from __future__ import annotations

import sys
import tempfile
import time
import traceback
from pathlib import Path

from tests.fuzz.fuzz_files import FILE_DOORS
from tests.fuzz.fuzz_logs import LOG_DOORS
from tests.fuzz.fuzz_property import Door, Hang, fuzz
from tests.fuzz.fuzz_texts import TEXT_DOORS

DOORS: tuple[Door, ...] = (*FILE_DOORS, *TEXT_DOORS, *LOG_DOORS)


def main(names: list[str]) -> int:
    """Fuzz the doors named, or all."""
    broken = 0
    print(f"{'door':<24} {'cases':>7} {'seconds':>8}")
    for door in DOORS:
        if names and door.name not in names:
            continue
        started = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="kernelgen-fuzz-") as folder:
            try:
                told = str(fuzz(door, Path(folder)))
            except (Exception, Hang):  # noqa: BLE001  the table goes on after a broken door, whatever it raised
                broken, told = broken + 1, "BROKEN"
                traceback.print_exc()
        print(f"{door.name:<24} {told:>7} {time.monotonic() - started:>8.1f}", flush=True)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
