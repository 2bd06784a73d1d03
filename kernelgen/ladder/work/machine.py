"""The machine that judges, in words: GPU, driver, clocks and heat at this moment, versions, what contains candidates.

nvidia-smi is asked rather than a library: the worker's own process must not hold a CUDA context that a candidate's
fault could poison.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version

from kernelgen import __version__

SMI = "nvidia-smi"
SMI_S = 20.0
FIELDS = {
    "gpu": "name",
    "driver": "driver_version",
    "sm_clock_max_mhz": "clocks.max.sm",
    "memory_clock_max_mhz": "clocks.max.mem",
    "power_limit_w": "power.limit",
    "mig": "mig.mode.current",
}
"""What stays as it is, by the name it has in a description, and nvidia-smi's name of it."""
READ = {
    "sm_clock_mhz": "clocks.sm",
    "memory_clock_mhz": "clocks.mem",
    "temperature_c": "temperature.gpu",
    "power_w": "power.draw",
}
"""What changes while kernels run."""
PACKAGES = ("torch", "triton", "tilelang", "numpy")


def described(holds: Mapping[str, str]) -> dict[str, str]:
    """The machine and its versions; `holds` says what contains candidates, as `containment` in a line."""
    found = {name: _version(name) for name in PACKAGES}
    return {
        **{name: said for name, said in found.items() if said is not None},
        **_asked(FIELDS),
        "kernelgen": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        **holds,
    }


def reading() -> dict[str, str]:
    """Clocks, heat and power at this moment; empty without a GPU."""
    return _asked(READ)


def _asked(fields: Mapping[str, str]) -> dict[str, str]:
    """What nvidia-smi says of the first GPU in view; empty where it says nothing."""
    path = shutil.which(SMI)
    if path is None:
        return {}
    which = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0].strip() or "0"
    command = [path, f"--id={which}", f"--query-gpu={','.join(fields.values())}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SMI_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return {}
    cells = [cell.strip() for cell in done.stdout.strip().split(",")]
    if done.returncode != 0 or len(cells) != len(fields):
        return {}
    return {name: cell for name, cell in zip(fields, cells, strict=True) if cell and not cell.startswith("[")}


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
