"""`kernelgen bundle`: candidates, champion, targets and worker in a folder that a machine with a GPU judges alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kernelgen.door.arguments import Grammar, parse
from kernelgen.door.console import bold, complain, emit, good
from kernelgen.door.judge import CLOCKS, one_of, policy_of
from kernelgen.door.regions import choice, hardware_of
from kernelgen.errors import BadInput
from kernelgen.eventlog.store import EventLog
from kernelgen.judging.bundle import Bundled, bundle, level_of_work
from kernelgen.judging.session import session
from kernelgen.judging.subjects import Place, find

GRAMMAR = Grammar(keys=("level", "all", "clock"), groups=("target", "hardware", "policy"))
EXAMPLE = "kernelgen bundle g2026 out=for-the-gpu level=L4"
SWITCH = {"true": True, "false": False}


def run(argv: Sequence[str]) -> int:
    """Bundle every candidate named; exit code 1 when one is kept back."""
    arguments = parse(argv, GRAMMAR)
    if not arguments.words:
        raise BadInput(f"kernelgen bundle needs a candidate's ID or a file, as in `{EXAMPLE}`.")
    out = Path(arguments.need("out", EXAMPLE)).absolute()
    level = level_of_work(arguments.keys.get("level", "L4"))
    all_of_them = SWITCH[one_of(arguments, "all", SWITCH, "false")]
    clock = CLOCKS[one_of(arguments, "clock", CLOCKS, "gpu")]
    hardware, catalog = hardware_of(arguments)
    policy, constraints = policy_of(arguments), arguments.place("constraints")
    with EventLog.open(arguments.place("events")) as log:
        place = Place(log, catalog, hardware, choice(arguments, "target"))
        candidates = [find(word, place) for word in arguments.words]
        with session(log, constraints, catalog, policy) as judging:
            made = bundle(candidates, out, level, judging, all_of_them=all_of_them, clock=clock)
    for one in made.left_out:
        complain(f"kept back {one.told}: {one.why}")
    emit(_record(made), _text(made), as_json=arguments.as_json)
    return 1 if made.left_out else 0


def _record(made: Bundled) -> dict[str, Any]:
    return {
        "bundle": made.id,
        "folder": str(made.folder),
        "is_new": made.is_new,
        "jobs": [
            {
                "number": job.number,
                "iteration_id": job.iteration_id,
                "target": job.subject.goal.name,
                "hardware": job.hardware,
                "champion": None if job.champion is None else job.champion.id,
                "seeds": job.seeds,
            }
            for job in made.jobs
        ],
        "kept_back": [
            {"candidate": one.told, "iteration_id": one.iteration_id, "why": one.why, "verdict": one.verdict}
            for one in made.left_out
        ],
    }


def _text(made: Bundled) -> str:
    count = f"{len(made.jobs)} candidate{'' if len(made.jobs) == 1 else 's'}"
    head = f"{good('bundled')} {count} in {made.folder}" if made.is_new else f"{made.folder} holds this bundle already"
    lines = [head, f"  {bold(made.id)}"]
    lines += [f"  {job.number}  {job.iteration_id}: {job.subject.goal.name} on {job.hardware}" for job in made.jobs]
    return "\n".join([*lines, "  there: cd FOLDER && python -m kernelgen_worker out=verdicts.jsonl"])
