"""The levels L3 and L4 as a whole: what can be measured here, the measuring, and the result that comes of it."""

from __future__ import annotations

import secrets
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch

from kernelgen.ladder.benchmark.contents import SEEDS
from kernelgen.ladder.benchmark.outcome import Level, result_of
from kernelgen.ladder.benchmark.run import Run
from kernelgen.ladder.benchmark.said import Role
from kernelgen.ladder.benchmark.surroundings import gpu_now, role_digest
from kernelgen.ladder.benchmark.terms import Ceilings, Terms3
from kernelgen.ladder.correctness.level import _build, _missing
from kernelgen.ladder.results import Fault, Outcome, Result
from kernelgen.ladder.server import Server
from kernelgen.ladder.subject import Shapes, Subject
from kernelgen.targets.code import load_code

BUILD_S = 120.0


def benchmark(
    subject: Subject,
    champion: Subject,
    shapes: Shapes,
    level: Level,
    *,
    server_for: Callable[[str], Server],
    device: str | None,
    terms: Terms3,
    seed: int | None,
    ceilings: Ceilings | None,
) -> Result:
    """See `measure` and `confirm`."""
    started = time.monotonic()
    terms.check()
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    missing = _missing(subject, device) or _missing(champion, device)
    if missing is None and not shapes:
        missing = "the target has no shapes for this level"
    if missing is not None:
        return Result(level, "inconclusive", missing)
    seed = secrets.randbelow(SEEDS) if seed is None else seed
    goal = subject.goal
    code = load_code(goal.module, Path(goal.folder) if goal.folder else None)
    before = gpu_now(torch.cuda.current_device()) if device != "cpu" else {}
    with ExitStack() as stack:
        sides: dict[Role, Subject] = {"candidate": subject, "champion": champion}
        libraries: dict[Role, Path] = {}
        for role, side in sides.items():
            if side.dsl == "cuda":
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kernelgen-")))
                built = _build(side, folder, BUILD_S)
                if isinstance(built, Fault):
                    outcome: Outcome = "failed" if role == "candidate" else "inconclusive"
                    return Result(level, outcome, f"the {role}: {built.reason}", (built,))
                libraries[role] = built
        run = Run(sides, libraries, code, shapes, server_for, device, terms, seed)
        found = run.measured()
    details: dict[str, Any] = {
        "seed": seed,
        "device": device,
        "roles": {role: role_digest(side) for role, side in sides.items()},
        "builds": found.builds,
        "gpu": {"before": before, "after": gpu_now(torch.cuda.current_device()) if device != "cpu" else {}},
    }
    return result_of(level, found, run, details, ceilings, started)
