"""`kernelgen prune`: which configurations of an autotune space can run on the hardware, and why the others cannot."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kernelgen.door.arguments import Arguments, Grammar, parse
from kernelgen.door.console import Progress, bad, bold, emit, good, table, warn
from kernelgen.door.regions import Region, open_to_look, region_of
from kernelgen.errors import BadInput
from kernelgen.generation import region as regions
from kernelgen.generation.inputs import read_text
from kernelgen.judging.subjects import Place, find, goal
from kernelgen.ladder.compile import compiler_environment, what_is_missing
from kernelgen.ladder.compile.kept import Kept
from kernelgen.ladder.compile.tried import Config, Tried, key, tried_from
from kernelgen.ladder.subject import Subject
from kernelgen.playbook.champion import parse as parse_kernels
from kernelgen.playbook.space import around

GRAMMAR = Grammar(keys=("file", "space"), groups=("target", "hardware"))
EXAMPLE = "kernelgen prune target=moe_fp8_block file=champion space=default"
CHAMPION, DEFAULT = "champion", "default"
KEPT = "prune.jsonl"
OPTIONS = ("num_warps", "num_stages")
MOST_CONFIGS = 100_000
FORM = (
    '{"kernel": [{"kwargs": {"BLOCK": 64}, "num_warps": 4}]} or {"kernel": {"BLOCK": [64, 128], "num_warps": [4, 8]}}'
)


def run(argv: Sequence[str]) -> int:
    """Try the space; 1 where a kernel is left without a configuration."""
    arguments = parse(argv, GRAMMAR)
    arguments.no_words()
    region = region_of(arguments, EXAMPLE)
    subject = _subject(arguments, region)
    configs = _space(arguments.keys.get("space", DEFAULT), subject)
    results = _tried(subject, configs, Kept(Path(arguments.keys.get("out", KEPT))))
    without = sorted({config.kernel for config in configs} - {tried.config.kernel for tried in results if tried.runs})
    record = {
        "target": region.target.name,
        "hardware": region.hardware.name,
        "arch": region.hardware.arch,
        "file": arguments.keys.get("file", CHAMPION),
        "configs": [asdict(tried) for tried in results],
        "kernels_without": without,
    }
    emit(record, _text(results, without, region.hardware.arch), as_json=arguments.as_json)
    return 1 if without else 0


def _subject(arguments: Arguments, region: Region) -> Subject:
    """The kernels to try: the region's champion, a candidate, or any file with the entry point."""
    told = arguments.keys.get("file", CHAMPION)
    with open_to_look(arguments.place("events")) as log:
        if told != CHAMPION:
            place = Place(log, region.catalog, region.hardware, region.target.name)
            subject = find(told, place).subject
        else:
            subject = _champion(
                regions.champion(log, region.target, region.hardware.name, region.located.folder), region
            )
    if subject.dsl != "triton":
        raise BadInput(f"{told} is {subject.dsl}: only Triton's kernels have a space of configurations to prune.")
    return subject


def _champion(champion: Any, region: Region) -> Subject:
    target = region.target
    folder = str(region.located.folder) if target.module.endswith(".py") else None
    return Subject(
        name=champion.id,
        language=champion.language,
        dsl="cuda" if champion.language == "cuda" else "triton",
        source=champion.source,
        preamble="",
        entry_point=champion.entry_point,
        goal=goal(target, region.hardware, target.module, folder),
    )


def _space(told: str, subject: Subject) -> list[Config]:
    """The configurations to try, each once."""
    found = _default(subject) if told == DEFAULT else _from_file(Path(told))
    unique = list({json.dumps(asdict(config), sort_keys=True): config for config in found}.values())
    if not unique:
        raise BadInput(f"space={told} holds no configuration; write {FORM}.")
    if len(unique) > MOST_CONFIGS:
        raise BadInput(f"space={told} holds {len(unique)} configurations, more than {MOST_CONFIGS}: narrow it.")
    return unique


def _default(subject: Subject) -> list[Config]:
    """Each kernel's own configurations and those next to them."""
    champion = parse_kernels(f"{subject.preamble}\n{subject.source}")
    return [
        Config(kernel.name, dict(config.kwargs), config.num_warps, config.num_stages)
        for kernel in champion.kernels
        # a program's share may only change where the grid is computed from it
        for config in around(kernel.configs or (), kernel.grid_depends_on - champion.meta_names, (), lambda _: True)
    ]


def _from_file(path: Path) -> list[Config]:
    """The space of a JSON file: lists of configurations as in a reply, or values to combine."""
    try:
        space = json.loads(read_text(path, "space"))
    except ValueError as error:
        raise BadInput(f"{path} is not JSON: {error}; write {FORM}.") from error
    if not isinstance(space, dict):
        raise BadInput(f"{path} holds no kernels; write {FORM}.")
    return [config for kernel, told in space.items() for config in _configs(path, str(kernel), told)]


def _configs(path: Path, kernel: str, told: Any) -> list[Config]:
    """The configurations of one kernel."""
    if isinstance(told, dict) and all(isinstance(values, list) for values in told.values()):
        told = [
            {"kwargs": {name: value for name, value in chosen.items() if name not in OPTIONS}}
            | {name: chosen[name] for name in OPTIONS if name in chosen}
            for chosen in (dict(zip(told, values, strict=True)) for values in itertools.product(*told.values()))
        ]
    if not isinstance(told, list):
        raise BadInput(f"{path}: {kernel} has neither a list of configurations nor values to combine; write {FORM}.")
    try:
        return [Config(kernel, **_checked(config)) for config in told]
    except (TypeError, ValueError) as error:
        raise BadInput(f"{path}: {kernel}: {error}; write {FORM}.") from error


def _checked(config: Any) -> Mapping[str, Any]:
    """A configuration's fields. Raises ValueError where they are not what Triton takes."""
    if not isinstance(config, dict) or set(config) - {"kwargs", *OPTIONS}:
        raise ValueError(f"{config!r} is no configuration")
    kwargs = config.get("kwargs", {})
    if not isinstance(kwargs, dict) or not all(
        isinstance(value, bool | int | float | str) for value in kwargs.values()
    ):
        raise ValueError(f"{kwargs!r} are no compile-time arguments")
    if not all(type(config[name]) is int and config[name] > 0 for name in OPTIONS if name in config):
        raise ValueError("num_warps and num_stages are whole numbers above 0")
    return {"kwargs": kwargs, **{name: config[name] for name in OPTIONS if name in config}}


def _tried(subject: Subject, configs: Sequence[Config], kept: Kept) -> list[Tried]:
    """Every configuration's result, those kept from an earlier run among them, in the order of the space."""
    missing = what_is_missing(subject.dsl)
    if missing is not None:
        raise BadInput(f"Pruning compiles kernels: {missing}")
    versions = compiler_environment(subject)
    keys = {key(subject, config, versions): config for config in configs}
    results = {name: tried_from(record) for name in keys if (record := kept.get(name)) is not None}
    progress = Progress("configurations tried", len(keys))
    for _ in results:
        progress.step()
    from kernelgen.ladder.compile.space import prune
    from kernelgen.ladder.server import Server

    left = [config for name, config in keys.items() if name not in results]
    if left:
        workers = min(len(os.sched_getaffinity(0)), len(left))
        with Server("compiler") as server:
            for tried in prune(subject, left, server=server, workers=workers):
                name = key(subject, tried.config, versions)
                kept.add(name, asdict(tried))
                results[name] = tried
                progress.step()
    return [results[name] for name in keys]


def _text(results: Sequence[Tried], without: Sequence[str], arch: str) -> str:
    """For a person: those that run with their figures, then those that cannot with the reason."""
    able = [tried for tried in results if tried.runs]
    rows = [
        (t.config.kernel, _shown(t.config), str(t.registers), str(t.stack_bytes), str(t.shared_bytes)) for t in able
    ]
    parts = [f"{bold(arch)}: {len(able)} of {len(results)} configurations can run"]
    if rows:
        parts.append(table(("kernel", "configuration", "registers", "stack B", "shared B"), rows))
    refused = [f"{warn(t.config.kernel)} {_shown(t.config)}: {t.check}: {t.why}" for t in results if not t.runs]
    if refused:
        parts.append("\n".join(refused))
    told = bad(f"without a configuration that can run: {', '.join(without)}")
    parts.append(told if without else good("every kernel keeps one that can run"))
    return "\n\n".join(parts)


def _shown(config: Config) -> str:
    values = {**config.kwargs, "num_warps": config.num_warps, "num_stages": config.num_stages}
    return " ".join(f"{name}={value}" for name, value in values.items())
