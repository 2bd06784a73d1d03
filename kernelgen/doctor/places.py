"""The working folder: room on its disk, and the event log in it, as far as that is cheap to say."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from kernelgen.doctor.asking import NotTold, ask_child
from kernelgen.doctor.privacy import shown as shown_text
from kernelgen.doctor.privacy import shown_path

GIB = 1 << 30
LOG_S = 4.0


@dataclass(frozen=True)
class Log:
    """The event log here."""

    path: str
    """Where it lies, as seen from the working folder."""
    events: int | None
    """How many events it holds; None where there is none yet."""
    schema: int | None
    """Its schema's number; None likewise."""
    whole: bool | None
    """Whether it ends where its head says; None likewise. `kernelgen log verify` reads all of it."""
    problem: str | None
    """What is wrong with it."""


def free_gib(folder: Path) -> float:
    """Room on the disk of the nearest folder that exists, in GiB."""
    while not folder.exists():
        folder = folder.parent
    return round(shutil.disk_usage(folder).free / GIB, 1)


def event_log(path: Path) -> Log:
    """The log at `path`, where there is one; read in a process of its own, which a lock may keep waiting."""
    shown = shown_path(path)
    if not path.exists() and not path.with_name(path.name + ".head").exists():
        return Log(shown, None, None, None, None)
    found = ask_child("log", [str(path)], timeout_s=LOG_S)
    if "problem" not in found:
        raise NotTold(str(found.get("failure")))
    problem = found["problem"]
    # said of the path as it is shown: what is above the working folder is nobody's business
    problem = problem and problem.replace(str(path), shown).replace(shown_text(str(path)), shown)
    return Log(shown, found["events"], found["schema"], problem is None, problem)
