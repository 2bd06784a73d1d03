"""One job in a process of its own: `python -m kernelgen.ladder.work.one ORDER`, started by the worker alone.

The references run here, so a sticky CUDA error, a crash of the driver or an exhausted memory ends this process and not
the run. Each level is told over a descriptor before it starts and when it is known: what was told stands.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelgen.errors import KernelgenError
from kernelgen.ladder import compile as compiling
from kernelgen.ladder.containment.child import die_with
from kernelgen.ladder.servers import Servers
from kernelgen.ladder.work.jobs import WorkLevel, read_work
from kernelgen.ladder.work.levels import Bench, climb

MODULES = "modules"
"""Folder of a bundle that holds targets' packages, for those that are named by a dotted name."""


@dataclass(frozen=True)
class Order:
    """What the worker asks for."""

    folder: str
    """The bundle's folder."""
    job: int
    """The job's number."""
    contained: bool
    """Whether candidates are contained."""
    telling: int
    """The descriptor to tell over."""
    parent: int
    """The worker's pid."""


def main(arguments: list[str]) -> int:
    """Judge one job and tell every level."""
    order = Order(**json.loads(arguments[0]))
    die_with(order.parent)
    folder = Path(order.folder)
    sys.path.append(str(folder / MODULES))
    teller = _Teller(order.telling)
    try:
        _judge(order, folder, teller)
    except KernelgenError as error:
        teller.tell({"error": str(error)})
    else:
        teller.tell({"done": True})
    return 0


def _judge(order: Order, folder: Path, teller: _Teller) -> None:
    work = read_work(folder, place=folder)
    job = next(job for job in work.jobs if job.number == order.job)
    with Servers(contained=order.contained) as servers:
        # servers import while this process does, and while the first level is judged
        servers.get(compiling.KINDS[job.subject.dsl])
        import torch

        from kernelgen.ladder.correctness.level import server_kind

        device = "cuda" if torch.cuda.is_available() else "cpu"
        if work.settings.level != "L1" and device == "cuda":
            servers.get(server_kind(job.subject, device))
        for result in climb(job, Bench(work.settings, servers.get, device), teller.starting):
            teller.tell({"result": result.as_dict()})
            if device == "cuda":
                torch.cuda.empty_cache()  # what a level held is the next one's, and the candidate's


class _Teller:
    """Tells the worker."""

    def __init__(self, descriptor: int) -> None:
        os.set_inheritable(descriptor, False)
        self._file = os.fdopen(descriptor, "w", encoding="utf-8")

    def starting(self, level: WorkLevel) -> None:
        """A level starts."""
        self.tell({"starting": level})

    def tell(self, record: dict[str, Any]) -> None:
        """One line."""
        self._file.write(json.dumps(record) + "\n")
        self._file.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
