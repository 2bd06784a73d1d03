"""`kernelgen doctor`: what this machine can do, and the install line for what is missing.

Works where kernelgen's own packages are missing, which is one of the things it says: it imports none of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from kernelgen.doctor.asking import Told
from kernelgen.doctor.facts import Facts, of_itself
from kernelgen.doctor.gpus import Gpu
from kernelgen.doctor.levels import DSLS, LEVELS, Cell
from kernelgen.doctor.survey import Survey, look, record
from kernelgen.door.arguments import Grammar, parse
from kernelgen.door.console import bad, bold, emit, good, table, warn

GRAMMAR = Grammar()
LEVEL_NAMES = {"L0": "L0 parse", "L1": "L1 compile", "L2": "L2 correctness"}
HOW = {"parse": "yes", "compile": "yes, no GPU needed", "gpu": "on the GPU", "interpreter": "logic check on the CPU"}
LABEL_WIDTH = 11


def run(argv: Sequence[str]) -> int:
    """Print the survey; exit code 1 where generating on the playbook cannot run."""
    arguments = parse(argv, GRAMMAR)
    arguments.no_words()
    survey = look(arguments.place("events"), arguments.place("out"), arguments.config_dirs)
    emit(record(survey), text(survey), as_json=arguments.as_json)
    return 1 if survey.core_problems else 0


def text(survey: Survey) -> str:
    """The survey for a person."""
    facts = survey.facts
    lines = [bold("this machine can: ") + ", ".join(survey.can())]
    if survey.core_problems:
        lines.append(bad("it cannot generate: ") + "; ".join(survey.core_problems))
    lines += ["", _ladder(survey), ""]
    lines += [f"{label:<{LABEL_WIDTH}} {words}" for label, words in _sections(facts)]
    if survey.missing:
        lines += ["", bold("to have more")]
        lines += [f"  {what.what}, for {what.gives}: {what.install}" for what in survey.missing]
    if survey.findings:
        lines += ["", bold("to know")]
        lines += [f"  {finding.sentence}{_mend(finding.install)}" for finding in survey.findings]
    return "\n".join(lines)


def _mend(install: str | None) -> str:
    return f" Mend: {install}" if install else ""


def _ladder(survey: Survey) -> str:
    rows = [[LEVEL_NAMES[level], *(_cell(survey.table[level][dsl]) for dsl in DSLS)] for level in LEVELS]
    return table(["", *DSLS], rows)


def _cell(cell: Cell) -> str:
    return HOW[cell.by] if cell.by else f"no: needs {', '.join(cell.missing)}"


def _sections(facts: Facts) -> Iterator[tuple[str, str]]:
    """The lines under the table: label, words."""
    itself = of_itself()
    yield "core", f"kernelgen {itself['kernelgen']}, Python {itself['python']}, SQLite {itself['sqlite']}"
    yield "", itself["platform"]
    yield "", ", ".join(f"{package.name} {package.version or bad('missing')}" for package in facts.core.value or ())
    yield "dsls", ", ".join(_dsl(facts, name) for name in ("torch", "triton", "tilelang"))
    yield "compilers", ", ".join(_compilers(facts))
    yield from _gpus(facts)
    yield "ncu", _ncu(facts)
    yield "containment", _containment(facts)
    yield from _models(facts)
    yield "here", ", ".join(_here(facts))


def _dsl(facts: Facts, name: str) -> str:
    version = facts.version(name)
    if version is None:
        return f"no {name}"
    build = facts.torch_build.value if name == "torch" else None
    return f"{name} {version}{f' ({build[0]})' if build else ''}"


def _compilers(facts: Facts) -> Iterator[str]:
    for name, told in {"ptxas (Triton's)": facts.ptxas, "nvcc": facts.nvcc, "g++": facts.gxx}.items():
        yield f"{name} {told.value.version}" if told.value is not None else f"no {name} ({told.why_not})"


def _gpus(facts: Facts) -> Iterator[tuple[str, str]]:
    why_not, found = facts.no_gpu(), facts.gpus()
    if why_not is not None:
        yield "gpu", f"none that torch can use: {why_not}"
    for position, gpu in enumerate(found):
        yield ("gpu" if position == 0 and why_not is None else ""), _gpu(gpu)
    if found and facts.listed.why_not:
        yield "", f"no driver version and clocks: {facts.listed.why_not}"


def _gpu(gpu: Gpu) -> str:
    said = [gpu.name]
    said += [f"{gpu.memory_gib:g} GiB"] if gpu.memory_gib is not None else []
    capability = gpu.compute_capability
    said += [f"compute capability {capability // 10}.{capability % 10}"] if capability is not None else []
    said += [f"driver {gpu.driver}"] if gpu.driver else []
    said += [f"SM clock {gpu.sm_clock_mhz} of {gpu.max_sm_clock_mhz} MHz"] if gpu.sm_clock_mhz is not None else []
    said += [f"MIG {gpu.mig.lower()}"] if gpu.mig else []
    said += [f"hardware={gpu.hardware}" if gpu.hardware else warn("no hardware config fits it")]
    return ", ".join(said)


def _ncu(facts: Facts) -> str:
    if facts.ncu.value is None:
        words = f"none ({facts.ncu.why_not})"
    else:
        words = f"{facts.ncu.value.version}, counters: {facts.counters.value or facts.counters.why_not}"
    report = facts.version("ncu-report")
    return f"{words}; ncu-report {report}" if report else f"{words}; no ncu-report"


def _containment(facts: Facts) -> str:
    found: Told[dict[str, Any]] = facts.containment
    if found.value is None:
        return warn(f"could not be told: {found.why_not}")
    if found.value["broken"]:
        return bad(f"does not hold: {'; '.join(found.value['broken'])}")
    return f"{good('holds')}: {found.value['summary']}"


def _models(facts: Facts) -> Iterator[tuple[str, str]]:
    if facts.models.value is None:
        yield "models", f"could not be told: {facts.models.why_not}"
        return
    by_state: dict[str, list[str]] = {}
    for model in facts.models.value:
        noted = model.choice if model.state == "ready" else f"{model.choice} ({model.note})"
        by_state.setdefault(model.state, []).append(noted)
    for position, (state, named) in enumerate(by_state.items()):
        yield ("models" if position == 0 else ""), f"{state}: {', '.join(named)}"


def _here(facts: Facts) -> Iterator[str]:
    log = facts.log.value
    if log is None:
        yield f"event log could not be told: {facts.log.why_not}"
    elif log.problem is not None:
        yield f"{log.path}: {bad('not whole')}"
    elif log.events is None:
        yield f"no event log yet at {log.path}"
    else:
        yield f"{log.path}: {log.events} events, schema {log.schema}, ends where its head says"
    yield (
        f"{facts.free_gib.value:g} GiB free" if facts.free_gib.value is not None else f"disk: {facts.free_gib.why_not}"
    )
