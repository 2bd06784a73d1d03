"""Asks everything at once, and puts the answers into one record with stable keys."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kernelgen.catalog import Catalog, shipped_conf
from kernelgen.doctor import combinations, compilers, gpus, levels, models, ncu, packages, places
from kernelgen.doctor.asking import Question, Told, ask_child
from kernelgen.doctor.combinations import Finding
from kernelgen.doctor.facts import Facts, of_itself
from kernelgen.doctor.needs import Missing, missing

PROBE_S = 4.0
"""Limit of what is asked beside importing the core's packages; no tool has a longer one."""
IMPORT_S = 15.0
"""Limit of importing the core's packages, which is slow only where generating would be."""
CONTAINMENT_S = 4.0
GRACE_S = 1.0
"""For a process that passed its limit to be killed and reaped before this one ends."""
FORM = 1
"""Number of the record's form: it changes when a key does."""


@dataclass(frozen=True)
class Survey:
    """What this machine can do, and why not more."""

    facts: Facts
    """All that was found out."""
    table: dict[levels.Level, dict[levels.Dsl, levels.Cell]]
    """What each level can judge."""
    missing: list[Missing]
    """What would give more, and how it is installed."""
    findings: list[Finding]
    """What is known to go wrong."""
    seconds: float
    """How long finding out took."""

    @property
    def core_problems(self) -> list[str]:
        """What keeps generating from running; empty where it can."""
        return self.facts.core_problems()

    def can(self) -> list[str]:
        """What this machine can do, in phrases."""
        return [*([] if self.core_problems else ["generate"]), *levels.abilities(self.table)]


def look(events: Path, out: Path, config_dirs: Sequence[Path]) -> Survey:
    """Find out what this machine can do.

    Args:
        events: where the event log is, or would be.
        out: where candidates go.
        config_dirs: the user's config folders, beside the shipped one.
    """
    started = time.monotonic()
    facts = _ask(events, out, config_dirs, started)
    table = levels.table(facts.have())
    seconds = round(time.monotonic() - started, 2)
    return Survey(facts, table, missing(facts, table), combinations.findings(facts), seconds)


def _ask(events: Path, out: Path, config_dirs: Sequence[Path], started: float) -> Facts:
    def choices() -> Catalog:
        return Catalog([shipped_conf(), *config_dirs])

    # what starts a process first: it runs while the rest is asked
    asked: dict[str, Callable[[], Any]] = {
        "imported": _import_core,
        "containment": lambda: ask_child("containment", timeout_s=CONTAINMENT_S),
        "driver": gpus.driver,
        "listed": gpus.listed,
        "ncu": ncu.ncu,
        "ptxas": compilers.ptxas,
        "binary_tools": compilers.binary_tools,
        "nvcc": compilers.nvcc,
        "gxx": compilers.gxx,
        "c_compiler": compilers.c_compiler,
        "models": lambda: models.models(choices()),
        "log": lambda: places.event_log(events),
        "free_gib": lambda: places.free_gib(out),
        "hardware": lambda: gpus.known(choices()),
        "counters": ncu.counters,
        "core": packages.core,
        "optional": packages.optional,
        "unmet": lambda: packages.unmet(("torch", "triton", "tilelang", "dspy", "hydra-core")),
        "torch_build": packages.torch_build,
    }
    questions: dict[str, Question[Any]] = {name: Question(ask) for name, ask in asked.items()}
    limits = {name: GRACE_S + (IMPORT_S if name == "imported" else PROBE_S) for name in asked}
    answers: dict[str, Told[Any]] = {
        name: question.answer(started + limits[name]) for name, question in questions.items()
    }
    return Facts(**answers)


def _import_core() -> dict[str, Any]:
    from kernelgen.tokens import CACHE_DIR_VARIABLE

    # dspy would fetch litellm's price list; and the user's own token files count
    variables = {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    variables |= {name: os.environ[name] for name in (CACHE_DIR_VARIABLE, "KERNELGEN_CONF") if name in os.environ}
    return ask_child("core", timeout_s=IMPORT_S, variables=variables)


def record(survey: Survey) -> dict[str, Any]:
    """The survey as one record, for programs and bug reports."""
    facts = survey.facts
    tools = {"ptxas": facts.ptxas, "nvcc": facts.nvcc, "g++": facts.gxx, "c": facts.c_compiler}
    build, _ = facts.torch_build.value or (None, None)
    return {
        "form": FORM,
        "can": survey.can(),
        "core": {
            "ok": not survey.core_problems,
            "problems": survey.core_problems,
            **of_itself(),
            "packages": [asdict(package) for package in facts.core.value or ()],
        },
        "packages": facts.optional.value or {},
        "torch_build": build,
        "compilers": {name: _told(told) for name, told in tools.items()},
        "gpu": {
            "found": [asdict(gpu) for gpu in facts.gpus()],
            "usable": facts.no_gpu() is None,
            "why_not": facts.no_gpu(),
            "driver_cuda": None if facts.driver.value is None else facts.driver.value.cuda,
            "nvidia_smi": facts.listed.why_not,
        },
        "ncu": {**_told(facts.ncu), "counters": facts.counters.value or facts.counters.why_not},
        "containment": {"holds": facts.contained(), **_told(facts.containment)},
        "ladder": {level: {dsl: asdict(cell) for dsl, cell in row.items()} for level, row in survey.table.items()},
        "models": [asdict(model) for model in facts.models.value or ()],
        "models_why_not": facts.models.why_not,
        "here": {"free_gib": facts.free_gib.value, "log": _told(facts.log)},
        "missing": [asdict(what) for what in survey.missing],
        "findings": [asdict(finding) for finding in survey.findings],
        "seconds": survey.seconds,
    }


def _told(told: Told[Any]) -> dict[str, Any]:
    """An answer as a record, or why there is none, under the same keys always."""
    value = told.value
    known = value if isinstance(value, dict) or value is None else asdict(value)
    return {"told": known, "why_not": told.why_not}
