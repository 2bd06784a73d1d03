"""`kernelgen generate`: one generation, or a sweep of them through Hydra's multirun.

A single job is composed and run here. A sweep is Hydra's own `main`, so that its launchers and experiment files work as
its users know them; every job then runs `job`, in this process or in a launcher's.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from kernelgen import lm
from kernelgen.catalog import Catalog, read_yaml, shipped_conf
from kernelgen.door import compose
from kernelgen.door.console import bad, complain, emit, good, warn
from kernelgen.errors import BadInput, KernelgenError
from kernelgen.eventlog.store import EventLog
from kernelgen.generation.models import open_model
from kernelgen.generation.prepare import prepare
from kernelgen.generation.recover import recover
from kernelgen.generation.run import Outcome
from kernelgen.generation.several import run_all
from kernelgen.generation.workspace import Resolved

_JSON = "KERNELGEN_JSON"
"""Tells the jobs of a sweep, also those in other processes, that the output is read by a program."""
FAILED = "failed-"
"""Begins the names of the marks that failed jobs leave."""
HYPOTHESIS_SHOWN = 200


def run(argv: Sequence[str]) -> int:
    """Run what `kernelgen generate` was given; returns the exit code."""
    multirun, as_json, folders, overrides = _split(argv)
    if multirun or _experiment_sweeps(overrides, folders):
        return _sweep(overrides, folders, as_json=as_json)
    resolved = compose.compose(overrides, folders)
    return generate(resolved, as_json=as_json)


def _split(argv: Sequence[str]) -> tuple[bool, bool, list[Path], list[str]]:
    multirun = as_json = False
    folders: list[Path] = []
    overrides: list[str] = []
    rest = list(argv[1:])
    while rest:
        token = rest.pop(0)
        if token in ("-m", "--multirun"):
            multirun = True
        elif token == "--json":
            as_json = True
        elif token == "--config-dir" or token.startswith("--config-dir="):
            _, given, value = token.partition("=")
            if not given and not rest:
                raise BadInput("--config-dir needs a folder after it.")
            folders.append(Path(value if given else rest.pop(0)))
        elif token.startswith("-"):
            raise BadInput(f"kernelgen generate has no flag {token}; it takes -m, --json and --config-dir.")
        else:
            overrides.append(token)
    return multirun, as_json, folders, overrides


def _experiment_sweeps(overrides: Sequence[str], folders: Sequence[Path]) -> bool:
    """Whether an experiment file asks for multirun itself."""
    name = next((o.partition("=")[2] for o in overrides if o.partition("=")[0].lstrip("+") == "experiment"), None)
    if name in (None, "null"):
        return False
    data = read_yaml(compose.catalog(folders).locate("experiment", str(name)).path)
    hydra = data.get("hydra")
    return isinstance(hydra, dict) and hydra.get("mode") == "MULTIRUN"


def generate(resolved: Resolved, *, as_json: bool) -> int:
    """One prompt from composed configs: finish what was killed, prepare, ask, write, tell; returns the exit code."""
    place = resolved.workspace
    lm.check(resolved.config.lm)  # first of all: a config that holds a credential must not reach the log
    with EventLog.open(place.events) as log:
        for sentence in recover(log):
            complain(f"recovered: {sentence}")
        prepared = prepare(resolved, log)
        model = open_model(prepared.config.lm, log)
        results = run_all(prepared, log=log, model=model, out=place.out)
        if len(results) == 1 and isinstance(results[0], KernelgenError):
            raise results[0]
        return 1 if [result for result in results if not _ends_well(result, resolved, log, as_json)] else 0


def _ends_well(result: Outcome | KernelgenError, resolved: Resolved, log: EventLog, as_json: bool) -> bool:
    """Tell what one candidate came to, judged as far as the config says; whether nothing failed."""
    if isinstance(result, KernelgenError):
        told = {"error": type(result).__name__, "message": str(result)}
        emit(told, f"{bad('failed')}: {result}", as_json=as_json)
        return False
    if resolved.config.judge == "none":
        tell(result, as_json=as_json)
        return True
    from kernelgen.door import judge

    if not as_json:
        tell(result, as_json=False)  # before the verdict, which takes seconds
    judgement = judge.judge_generated(result.iteration_id, resolved, log)
    if as_json:
        verdict = None if judgement is None else judge.record(judgement)
        emit({**_record(result), "verdict": verdict}, "", as_json=True)
    elif judgement is not None:
        print(judge.text(judgement))
    return judgement is None or judgement.ruling.verdict.refused() is None


def tell(outcome: Outcome, *, as_json: bool) -> None:
    """Print what a generation came to."""
    emit(_record(outcome), _text(outcome), as_json=as_json)


def _record(outcome: Outcome) -> dict[str, Any]:
    event = outcome.event
    return {
        "iteration_id": outcome.iteration_id,
        "target": event.target,
        "hardware": event.hardware,
        "state": event.state,
        "files": [str(path) for path in outcome.files],
        "hypothesis": event.hypothesis,
        "constraints": outcome.constraints,
        "constraint_tokens": outcome.constraint_tokens,
        "left_out": list(outcome.left_out),
        "overridden": list(event.overridden),
    }


def _text(outcome: Outcome) -> str:
    event = outcome.event
    lines = [
        f"{good('generated')} {outcome.iteration_id}: {event.target} on {event.hardware}, state {event.state}, "
        f"{outcome.constraints} constraints ({outcome.constraint_tokens} tokens)",
        f"  hypothesis: {_opening(event.hypothesis)}",
        *(f"  {path}" for path in outcome.files),
    ]
    if outcome.left_out:
        lines.append(warn(f"  left out of the prompt, over the token budget: {', '.join(outcome.left_out)}"))
    return "\n".join(lines)


def _opening(text: str) -> str:
    """The first sentence, for a line of a terminal; the header of the file has it all."""
    sentence, ends, _ = " ".join(text.split()).partition(". ")
    sentence += "." if ends else ""
    return sentence if len(sentence) <= HYPOTHESIS_SHOWN else sentence[: HYPOTHESIS_SHOWN - 1] + "…"


def job(composed: DictConfig) -> None:
    """One job of a sweep. A failure is told and left as a mark in the sweep's scratch folder; the other jobs run on."""
    from hydra.core.hydra_config import HydraConfig

    hydra = HydraConfig.get()
    overrides = list(hydra.overrides.task)
    folders = [Path(source.path) for source in hydra.runtime.config_sources if source.schema == "file"]
    as_json = os.environ.get(_JSON) == "1"
    try:
        resolved = compose.resolved(composed, overrides, Catalog(list(dict.fromkeys(folders))))
        failed = generate(resolved, as_json=as_json) != 0
    except KernelgenError as error:
        failed = True
        emit(
            {"error": type(error).__name__, "message": str(error), "overrides": overrides},
            f"{bad('failed')} [{' '.join(overrides)}]: {error}",
            as_json=as_json,
        )
    if failed:
        (Path(hydra.sweep.dir) / f"{FAILED}{hydra.job.num}").touch()
    sys.stdout.flush()


def _sweep(overrides: Sequence[str], folders: Sequence[Path], *, as_json: bool) -> int:
    """Hydra's multirun; every job runs, and one failure makes the exit code 1."""
    import hydra

    os.environ[_JSON] = "1" if as_json else "0"
    os.environ["HYDRA_FULL_ERROR"] = "1"  # so that errors reach us instead of ending the process
    with tempfile.TemporaryDirectory(prefix="kernelgen-sweep-") as scratch:
        sys.argv = ["kernelgen generate", "--multirun", *compose.typed_overrides(overrides, folders)]
        sys.argv += compose.search_path_override(folders)
        sys.argv += [f"hydra.sweep.dir='{scratch}'", "hydra/job_logging=disabled", "hydra/hydra_logging=disabled"]
        main = hydra.main(
            version_base=compose.HYDRA_VERSION_BASE, config_path=str(shipped_conf()), config_name=compose.CONFIG_NAME
        )(job)
        with compose.one_sentence(), compose.choices_checked(compose.catalog(folders)):
            main()
        return 1 if any(Path(scratch).glob(f"{FAILED}*")) else 0
