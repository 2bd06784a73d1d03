"""Containment of the process that runs candidate code, by what the kernel offers, with the standard library alone.

Namespaces take away network and other processes, a private view and Landlock the files, a filter of system calls the
rest; limits bound what is left. `holds` says truthfully which of them work on this machine; where they do not suffice
for `mechanisms.PROMISES`, nothing counts as contained. No promise against faults of the kernel or of a GPU's driver.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from kernelgen.errors import HarnessError
from kernelgen.ladder.containment.limits import DEFAULT, Limits
from kernelgen.ladder.containment.mechanisms import broken, summary

__all__ = ["DEFAULT", "Limits", "broken", "clean_command", "holds", "summary"]

TIMEOUT_S = 60
# loads kernelgen from its own folder alone: nothing beside it, nothing from the working folder, can be imported
_START = """\
import importlib.util, runpy, sys
root, module, *arguments = sys.argv[1:]
sys.path[:] = [entry for entry in sys.path if entry not in ("", root)]
spec = importlib.util.spec_from_file_location(
    "kernelgen", root + "/kernelgen/__init__.py", submodule_search_locations=[root + "/kernelgen"]
)
sys.modules["kernelgen"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sys.modules["kernelgen"])
sys.argv[:] = [module, *arguments]
runpy.run_module(module, run_name="__main__", alter_sys=False)
"""


def clean_command(module: str, *arguments: str) -> list[str]:
    """The command that runs a module of kernelgen as `python -m`, isolated from folder, environment and user."""
    root = Path(__file__).resolve().parents[3]
    return [sys.executable, "-I", "-B", "-c", _START, str(root), module, *arguments]


def holds() -> dict[str, str]:
    """Each mechanism with `holds`, or why it does not hold here, found by trying it in a clean process.

    Raises:
        HarnessError: the trying itself failed.
    """
    done = subprocess.run(
        clean_command(f"{__name__}.__main__"), capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    try:
        record: dict[str, str] = json.loads(done.stdout)
    except ValueError as error:
        raise HarnessError(f"Finding out what contains a process failed: {done.stderr.strip()[-300:]}") from error
    return record
