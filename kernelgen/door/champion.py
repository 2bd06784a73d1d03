"""`kernelgen champion`: the kernel to beat and its line, making a user's own the one, and taking one out as a file."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import Any

from kernelgen import champions, python_source
from kernelgen.door.arguments import Arguments, Grammar, parse
from kernelgen.door.console import bad, bold, emit, good
from kernelgen.door.regions import Region, open_to_look, region_of
from kernelgen.errors import BadInput, nearest
from kernelgen.eventlog.store import EventLog
from kernelgen.events import ChampionNamed
from kernelgen.generation import region as regions
from kernelgen.generation.inputs import read_text
from kernelgen.ids import digest_text, new_id
from kernelgen.judging import export, promotion
from kernelgen.judging.tuned_files import FORMATS, tuned_files
from kernelgen.records import Champion, Language, to_text

GRAMMAR = Grammar(
    nouns=("show", "import", "export"),
    default_noun="show",
    keys=("to", "format"),
    groups=("target", "hardware"),
    flags=("--source",),
    only={"--source": ("show",), "to": ("export",), "format": ("export",)},
)
MODULE = "module"
FATES: Mapping[str, str] = MappingProxyType(
    {"taken_back": "taken back", "line_fell": "no champion any more", "overtaken": "never champion"}
)
LANGUAGES: dict[str, Language] = {".py": "python", ".cu": "cuda"}


def run(argv: Sequence[str]) -> int:
    """Run one of the nouns."""
    arguments = parse(argv, GRAMMAR)
    verbs = {"show": _show, "import": _import, "export": _export}
    region = region_of(arguments, f"kernelgen {arguments.command} target=mla_decode_fp8")
    verbs[str(arguments.noun)](arguments, region)
    return 0


def _show(arguments: Arguments, region: Region) -> None:
    arguments.no_words()
    with open_to_look(arguments.place("events")) as log:
        champion = regions.champion(log, region.target, region.hardware.name, region.located.folder)
        line = promotion.lineage(log, region.target.name, region.hardware.name)
    now = promotion.current(line)
    lines = [
        f"{bold(champion.id)} ({champion.origin}): {champion.target} on {champion.hardware}, {champion.language}, "
        f"{len(champion.source.splitlines())} lines"
    ]
    lines += [f"  {m.shape}: {m.time_us:.1f} us, {m.gbytes_per_s:.0f} GB/s ({m.source})" for m in champion.figures]
    if not champion.figures:
        lines.append("  performance: not measured")
    lines += ["line of champions, the first one first:", f"  {champions.NAIVE}: the target's own"] if line else []
    lines += [_ancestor(ancestor, is_current=ancestor is now) for ancestor in line]
    if "--source" in arguments.flags:
        lines += ["", champion.source.rstrip()]
    record = {**champion.model_dump(mode="json"), "lineage": [_record(one, now) for one in line]}
    emit(record, "\n".join(lines), as_json=arguments.as_json)


def _ancestor(ancestor: promotion.Ancestor, *, is_current: bool) -> str:
    """One champion of the line, for a person."""
    link, measured = ancestor.link, ancestor.measured
    told = f"  {ancestor.champion.id}, {ancestor.row.time[:19]}: "
    if measured is None:
        told += "imported"
    else:
        times = ", ".join(f"{shape} {one.candidate_us:.4g} us" for shape, one in measured.shapes.items())
        told += f"{measured.over_all.told()} times as fast as {measured.champion_id}"
        told += "" if ancestor.held_out is None else f", {ancestor.held_out.over_all.told()} at held-out shapes"
        told += f"; {times}"
    if link.fate != "stands":
        return f"{told}; {bad(FATES[link.fate])}: {link.why}"
    return f"{told}; {good('champion now')}" if is_current else told


def _record(ancestor: promotion.Ancestor, now: promotion.Ancestor | None) -> dict[str, Any]:
    link, measured, held_out = ancestor.link, ancestor.measured, ancestor.held_out
    return {
        "champion": ancestor.champion.id,
        "origin": ancestor.champion.origin,
        "named": ancestor.row.id,
        "time": ancestor.row.time,
        "parent": link.event.parent,
        "verdict": link.event.verdict,
        "ratio": None if measured is None else asdict(measured.over_all),
        "held_out_ratio": None if held_out is None else asdict(held_out.over_all),
        "times_us": {} if measured is None else {name: one.candidate_us for name, one in measured.shapes.items()},
        "fate": link.fate,
        "why": link.why,
        "current": ancestor is now,
    }


def _export(arguments: Arguments, region: Region) -> None:
    arguments.no_words()
    to = Path(arguments.need("to", "kernelgen champion export target=mla_decode_fp8 to=mla_decode.py"))
    style = arguments.keys.get("format", MODULE)
    if style not in (MODULE, *FORMATS):
        raise BadInput(f"format={style} is not one of {', '.join((MODULE, *FORMATS))}{nearest(style, FORMATS)}")
    with open_to_look(arguments.place("events")) as log:
        champion = regions.champion(log, region.target, region.hardware.name, region.located.folder)
        line = promotion.lineage(log, region.target.name, region.hardware.name)
        files = _module(champion, line, region, log, to) if style == MODULE else _tuned(line, region, log, to, style)
    _write_new(files)
    names = [str(path) for path in files]
    told = f"{good('exported')} {champion.id} to {', '.join(names)}"
    if style == "sglang":
        told += "; SGLang looks for it in configs/triton_X_Y_Z, of the Triton version that runs it"
    emit({"champion": champion.id, "files": names}, told, as_json=arguments.as_json)


def _module(
    champion: Champion, line: list[promotion.Ancestor], region: Region, log: EventLog, to: Path
) -> dict[Path, str]:
    suffix = export.SUFFIX[champion.language]
    if to.suffix != suffix:
        raise BadInput(
            f"The champion {champion.id} is {champion.language}: name a file that ends in {suffix} with to=."
        )
    return {to: export.module_text(champion, region.target, region.hardware, line, log)}


def _tuned(line: list[promotion.Ancestor], region: Region, log: EventLog, to: Path, style: str) -> dict[Path, str]:
    """The files of a format, in the folder named."""
    if to.suffix or to.is_file():
        raise BadInput(
            f"format={style} writes files of names that {style} looks for: name a folder with to=, not {to}."
        )
    now = promotion.current(line)
    gpu = region.hardware.title if now is None else export.environment(now, log).get("gpu", region.hardware.title)
    texts = tuned_files(now, region.target.name, region.target.shapes.tune, gpu, style)
    return {to / name: text for name, text in texts.items()}


def _write_new(files: Mapping[Path, str]) -> None:
    """Write files that are not there yet. Raises BadInput, before any is written, where one is, or cannot be."""
    for path in files:
        if path.exists():
            raise BadInput(f"{path} exists already; name another place with to=.")
    for path, text in files.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise BadInput(f"{path} cannot be written: {error.strerror}; name another place with to=.") from error


def _import(arguments: Arguments, region: Region) -> None:
    path = Path(arguments.word("a kernel file", "kernelgen champion import mine.py target=mla_decode_fp8"))
    if path.suffix not in LANGUAGES:
        raise BadInput(f"{path} is neither a .py nor a .cu file; a champion is one of them.")
    source, language = read_text(path, "kernel file"), LANGUAGES[path.suffix]
    _check(path, source, language, region.target.entry_point)
    champion = Champion(
        id=new_id("k"),
        target=region.target.name,
        hardware=region.hardware.name,
        origin="imported",
        language=language,
        entry_point=region.target.entry_point,
        source=source,
    )
    text = to_text(champion)
    event = ChampionNamed(
        target=champion.target,
        hardware=champion.hardware,
        champion_id=champion.id,
        origin="imported",
        champion=digest_text(text),
    )
    with EventLog.open(arguments.place("events")) as log:
        log.append(event, [text])
    where = f"{champion.target} on {champion.hardware}"
    told = f"{good('imported')} {champion.id}: {path.name} is the kernel to beat for {where}"
    emit(champion.model_dump(mode="json"), told, as_json=arguments.as_json)


def _check(path: Path, source: str, language: Language, entry_point: str) -> None:
    if language == "cuda":
        defined = re.search(rf"\b{entry_point}\s*\(", source) is not None
    else:
        try:
            tree = python_source.parse(source)
        except SyntaxError as error:
            raise BadInput(f"{path} does not parse: {error}; mend it and import again.") from error
        defined = any(isinstance(node, ast.FunctionDef) and node.name == entry_point for node in tree.body)
    if not defined:
        raise BadInput(f"{path} does not define {entry_point}, the target's entry point; name its host function so.")
