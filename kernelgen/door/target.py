"""`kernelgen target`: list the targets, show one, and check that one is worth passing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelgen.catalog import Catalog, plain_yaml, shipped_conf
from kernelgen.door.arguments import Arguments, Grammar, parse
from kernelgen.door.console import bad, bold, emit, good, table, warn
from kernelgen.errors import BadInput, ConfigError

if TYPE_CHECKING:
    from kernelgen.ladder.selftest import Check

GRAMMAR = Grammar(
    nouns=("list", "show", "check"),
    default_noun="list",
    groups=("hardware",),
    flags=("--all",),
    only={"hardware": ("show", "check"), "--all": ("check",)},
)
EXAMPLE = "kernelgen target {} mla_decode_fp8"
# what a list shows of a target
LISTED = ("name", "title", "aliases", "shapes", "calls_per_step")


def run(argv: Sequence[str]) -> int:
    """Run one of the nouns; 1 where a check failed."""
    arguments = parse(argv, GRAMMAR)
    verbs = {"list": _list, "show": _show, "check": _check}
    return verbs[str(arguments.noun)](arguments)


def _catalog(arguments: Arguments) -> Catalog:
    for folder in arguments.config_dirs:
        if not folder.is_dir():
            raise BadInput(f"--config-dir {folder} is not a folder.")
    return Catalog([shipped_conf(), *(folder.absolute() for folder in arguments.config_dirs)])


def _list(arguments: Arguments) -> int:
    arguments.no_words()
    choices = _catalog(arguments)
    records = [_listed(choices.locate("target", name).path) for name in choices.names("target")]
    header = ("target", "calls a step", "shapes", "title and other names")
    cells = [
        (r["name"], str(r["calls_per_step"]), ", ".join(r["shapes"]), "; ".join([r["title"], *r["aliases"]]))
        for r in records
    ]
    emit({"targets": records}, table(header, cells), as_json=arguments.as_json)
    return 0


def _listed(path: Path) -> dict[str, Any]:
    """What a list shows of a target. Read as plain yaml: typing every target takes longer than a list may."""
    data = plain_yaml(path)
    missing = [key for key in LISTED if key not in data and key != "aliases"]
    if missing or not isinstance(data["shapes"], dict):
        raise ConfigError(f"{path}.{missing[0] if missing else 'shapes'} is missing: add it.")
    record = {key: data.get(key, []) for key in LISTED}
    record["shapes"] = list(data["shapes"].get("tune") or {})
    return record


def _show(arguments: Arguments) -> int:
    from kernelgen.door.regions import hardware_of
    from kernelgen.generation.briefs import target_brief
    from kernelgen.profile.roofline import roofline
    from kernelgen.targets.code import load_code

    target, located = _catalog(arguments).target(arguments.word("a target", EXAMPLE.format("show")))
    hardware, _ = hardware_of(arguments)
    code = load_code(target.module, located.folder)
    rows, record = [], target.model_dump(mode="json")
    record["costs"] = {}
    for use, shapes in target.shapes:
        for name, dims in shapes.items():
            flops, moved = code.flops(dims), code.bytes_moved(dims)
            roof = roofline(hardware, flops=flops, floor_bytes=moved)
            record["costs"][name] = {"flops": flops, "bytes": moved, "floor_us": roof.floor_us}
            rows.append((use, name, f"{flops / 1e9:.3f}", f"{moved / 1e6:.3f}", f"{roof.floor_us:.1f}", roof.floor_by))
    brief = target_brief(target)
    parts = [
        f"{bold(target.name)}: {target.title}",
        f"also called: {', '.join(target.aliases)}" if target.aliases else "no other names",
        target.summary,
        brief.signature,
        "\n".join(f"- {rule}" for rule in target.rules) or "no further rules",
        "\n".join(f"{name}: {bound}" for name, bound in brief.tolerance.items()),
        f"kinds of inputs: {', '.join(target.input_kinds)}; {target.calls_per_step} calls a decode step; "
        f"profiles stand for a step at {target.profile_shape}; champion {target.champion}",
        table(("set", "shape", "GFLOP", "MB", f"floor us on {hardware.name}", "by"), rows),
        "\n".join(f"{name}: {source}" for name, source in target.sources.items()) or "no sources",
    ]
    emit(record, "\n\n".join(parts), as_json=arguments.as_json)
    return 0


def _check(arguments: Arguments) -> int:
    choices = _catalog(arguments)
    if "--all" in arguments.flags:
        arguments.no_words()
        names = choices.names("target")
    else:
        names = [arguments.word("a target, or --all,", EXAMPLE.format("check"))]
    from kernelgen.door.regions import hardware_of
    from kernelgen.door.target_check import checks

    hardware, _ = hardware_of(arguments)
    failed, records = [], []
    for name in names:
        target, located = choices.target(name)
        if not arguments.as_json:
            print(bold(target.name), flush=True)
        found = []
        for check in checks(target, hardware, located.folder):
            found.append(check)
            if not arguments.as_json:
                print(f"  {_line(check)}", flush=True)
        records.append({"target": target.name, "checks": [asdict(check) for check in found]})
        failed += [f"{target.name}: {check.name}" for check in found if check.status == "failed"]
    told = bad(f"failed: {', '.join(failed)}") if failed else good(f"{len(names)} checked, nothing failed")
    emit({"failed": failed, "targets": records}, told, as_json=arguments.as_json)
    return 1 if failed else 0


def _line(check: Check) -> str:
    colour = {"passed": good, "failed": bad}.get(check.status, warn)
    return ": ".join(part for part in (check.name, colour(check.status), check.note) if part)
