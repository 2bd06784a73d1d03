"""What has to be imported or loaded to be known: `python -m kernelgen.doctor.children KIND [ARGUMENT] RECORD`.

The record is JSON and is written again after each step, so that what was found before a hang is known.

    core         imports what generating needs, counts a token offline, types a shipped config
    cuda         opens NVIDIA's driver as torch would: devices, and the CUDA version it takes
    containment  asks the ladder which means of containing a candidate hold here
    log          opens an event log for reading, and compares its end with its head
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from kernelgen.doctor.packages import CORE
from kernelgen.ladder.reasons import Attempt

Record = dict[str, Any]
NO_FILE = Path()
"""Whose lines a failure is told with: nobody's."""
DRIVER = "libcuda.so.1"
NAME_BYTES = 256
CAPABILITY_MAJOR, CAPABILITY_MINOR = 75, 76
"""Numbers of CUdevice_attribute."""


def main(argv: list[str]) -> int:
    """Find out what KIND asks for; the record grows on the way."""
    kind, *arguments, record = argv
    path = Path(record)
    for found in KINDS[kind](*arguments):
        half = path.with_suffix(".half")
        half.write_text(json.dumps(found), encoding="utf-8")
        os.replace(half, path)
    return 0


def core() -> Iterator[Record]:
    """By import name, None or why it does not import; then the same for what is done with them."""
    found: Record = {"imports": {}, "does": {}}
    for module in CORE.values():
        with Attempt(NO_FILE) as importing:
            importlib.import_module(module)
        found["imports"][module] = importing.failure
        yield found
    if any(found["imports"].values()):
        return
    for name, does in (("configs", _types_a_config), ("tokens", _counts_a_token)):
        with Attempt(NO_FILE) as doing:
            does()
        # what kernelgen says is a sentence already
        found["does"][name] = None if doing.error is None else str(doing.error)
        yield found


def _types_a_config() -> None:
    from kernelgen.catalog import Catalog, shipped_conf

    Catalog([shipped_conf()]).hardware("h200")


def _counts_a_token() -> None:
    from kernelgen import tokens

    tokens.count("kernel")


def cuda() -> Iterator[Record]:
    """The driver's CUDA version and devices, or the problem; CUDA_VISIBLE_DEVICES counts."""
    found: Record = {"cuda": None, "devices": [], "problem": None}
    try:
        driver = ctypes.CDLL(DRIVER)
    except OSError:
        yield {**found, "problem": f"there is no NVIDIA driver ({DRIVER})"}
        return
    version, count = ctypes.c_int(), ctypes.c_int()
    driver.cuDriverGetVersion(ctypes.byref(version))
    found["cuda"] = [version.value // 1000, version.value % 1000 // 10]
    code = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count))
    if code:
        yield {**found, "problem": f"the driver answers: {_words(driver, code)}"}
        return
    found["devices"] = [_device(driver, ordinal) for ordinal in range(count.value)]
    yield found


def _device(driver: ctypes.CDLL, ordinal: int) -> Record:
    device, size, value = ctypes.c_int(), ctypes.c_size_t(), ctypes.c_int()
    name = ctypes.create_string_buffer(NAME_BYTES)
    driver.cuDeviceGet(ctypes.byref(device), ordinal)
    driver.cuDeviceGetName(name, NAME_BYTES, device)
    driver.cuDeviceTotalMem_v2(ctypes.byref(size), device)
    capability = []
    for attribute in (CAPABILITY_MAJOR, CAPABILITY_MINOR):
        driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
        capability.append(value.value)
    return {"name": name.value.decode("utf-8", "replace"), "bytes": size.value, "capability": capability}


def _words(driver: ctypes.CDLL, code: int) -> str:
    text = ctypes.c_char_p()
    driver.cuGetErrorString(code, ctypes.byref(text))
    return f"{text.value.decode()} (CUDA error {code})" if text.value else f"CUDA error {code}"


def containment() -> Iterator[Record]:
    """By mechanism, `holds` or why not; the promises that are not kept; and all of it in a line."""
    from kernelgen.ladder.containment import broken, holds, summary

    record = holds()
    yield {"mechanisms": record, "broken": broken(record), "summary": summary(record)}


def log(name: str) -> Iterator[Record]:
    """Events, schema, and what is wrong with the log at a path."""
    from kernelgen.errors import LogError
    from kernelgen.eventlog import migrations, opening
    from kernelgen.eventlog.connection import sentences
    from kernelgen.eventlog.head import read_head

    path = Path(name)
    try:
        mark = read_head(path)  # before the database: the head never runs ahead of it
        if mark is not None and not path.exists():
            raise LogError(f"it is gone, and its head counts {mark.seq} events; put back a copy")
        db = opening.open_for_reading(path)
        try:
            with sentences(path):
                last, schema = opening.tail(db), migrations.applied(db, path)
                wrong = opening.disagreement(db, mark, last)
        finally:
            db.close()
    except LogError as error:
        yield {"events": None, "schema": None, "problem": str(error)}
        return
    yield {"events": last.seq, "schema": schema, "problem": None if wrong is None else f"it {wrong}"}


KINDS: dict[str, Callable[..., Iterator[Record]]] = {
    "core": core,
    "cuda": cuda,
    "containment": containment,
    "log": log,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
