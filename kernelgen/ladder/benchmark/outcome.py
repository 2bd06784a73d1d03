"""What a measuring found, as a result: outcome, reason, faults with the decisive one first, and the record."""

from __future__ import annotations

import time
from dataclasses import asdict, replace
from typing import Any, Literal

import torch

from kernelgen.ladder.benchmark import judgement
from kernelgen.ladder.benchmark.run import Found, Run
from kernelgen.ladder.benchmark.terms import Ceilings, recipe_id
from kernelgen.ladder.results import Fault, Outcome, Result

Level = Literal["L3", "L4"]
# faults that a person may find to be none
DOUBTS = (
    "benchmark.clocks",
    "benchmark.impossible",
    "benchmark.overlap",
    "benchmark.persisting",
    "benchmark.remembered",
)
CPU_NOTE = "through Triton's interpreter, by a CPU's clock: times say nothing of a GPU"


def result_of(
    level: Level,
    found: Found,
    run: Run,
    details: dict[str, Any],
    ceilings: Ceilings | None,
    started: float,
) -> Result:
    """What was found, as a result."""
    recipe, terms, on_gpu = run.recipe, run.terms, run.device != "cpu"
    identity = recipe_id(recipe, terms, device=run.device, mode=found.mode, memory=found.memory)
    details["recipe"] = {
        "id": identity,
        "mode": found.mode,
        "memory": found.memory,
        "terms": {**asdict(terms), "recipe": asdict(recipe)},
    }
    details["shapes"] = {one.shape.name: judgement.figures(one, ceilings) for one in found.shapes}
    for one in found.shapes:
        for doubt in judgement.doubts(one, recipe, ceilings, on_gpu=on_gpu):
            found.faults.setdefault(doubt.check, doubt)
    outcome, reason, faults = _outcome(level, found, run, details)
    notes = [*found.notes, *([] if on_gpu else [CPU_NOTE]), *_absent(ceilings, details)]
    if on_gpu:
        run.environment["gpu"] = torch.cuda.get_device_name()
    seconds = time.monotonic() - started
    return Result(level, outcome, reason, tuple(faults), tuple(notes), details, run.environment, seconds)


def _outcome(level: Level, found: Found, run: Run, details: dict[str, Any]) -> tuple[Outcome, str, list[Fault]]:
    """Outcome, reason and faults, the decisive one first."""
    if found.failing is not None and found.failing.role == "champion":
        fault = replace(found.failing.fault, check="benchmark.champion", detail=found.failing.fault.check)
        return "inconclusive", f"the champion cannot be measured: {fault.reason}", [fault]
    against = [found.failing.fault] if found.failing is not None else []
    against += [fault for check, fault in found.faults.items() if check not in DOUBTS]
    doubts = [fault for check, fault in found.faults.items() if check in DOUBTS]
    if against:
        return "failed", against[0].reason, [*against, *doubts]
    over_all, reason, not_faster = judgement.verdict(found.shapes, run.terms)
    details["geometric_mean"] = over_all.as_dict()
    beside = [not_faster] if not_faster is not None and run.recipe.decides and level == "L3" else []
    if doubts:
        return "suspect", doubts[0].reason, [*doubts, *beside]
    if not run.recipe.decides:
        return "inconclusive", f"nothing speaks against it; how fast it is, is not known: {CPU_NOTE}", []
    restless = judgement.not_quiet(found.shapes, run.recipe)
    if restless is not None:
        return "inconclusive", f"the machine was not quiet: {restless}", []
    if beside:
        return "failed", beside[0].reason, beside
    return "passed", reason if level == "L3" else f"measured: {reason.removeprefix('no difference, ')}", []


def _absent(ceilings: Ceilings | None, details: dict[str, Any]) -> list[str]:
    """What is missing in the record, in words."""
    said = [] if ceilings is not None else ["no ceilings were given: no fraction of a floor, no time is impossible"]
    absent = details["gpu"]["before"].get("absent")
    return [*said, *([f"clocks and temperature are not known: {absent}"] if absent else [])]
