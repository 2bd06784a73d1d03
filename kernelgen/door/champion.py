"""`kernelgen champion`: the kernel to beat, and making a user's own the one."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from pathlib import Path

from kernelgen import python_source
from kernelgen.door.arguments import Arguments, Grammar, parse
from kernelgen.door.console import bold, emit, good
from kernelgen.door.regions import Region, open_to_look, region_of
from kernelgen.errors import BadInput
from kernelgen.eventlog.store import EventLog
from kernelgen.events import ChampionNamed
from kernelgen.generation import region as regions
from kernelgen.generation.inputs import read_text
from kernelgen.ids import digest_text, new_id
from kernelgen.records import Champion, Language, to_text

GRAMMAR = Grammar(
    nouns=("show", "import"),
    default_noun="show",
    groups=("target", "hardware"),
    flags=("--source",),
    only={"--source": ("show",)},
)
LANGUAGES: dict[str, Language] = {".py": "python", ".cu": "cuda"}


def run(argv: Sequence[str]) -> int:
    """Run one of the nouns."""
    arguments = parse(argv, GRAMMAR)
    verbs = {"show": _show, "import": _import}
    region = region_of(arguments, f"kernelgen {arguments.command} target=mla_decode_fp8")
    verbs[str(arguments.noun)](arguments, region)
    return 0


def _show(arguments: Arguments, region: Region) -> None:
    arguments.no_words()
    with open_to_look(arguments.place("events")) as log:
        champion = regions.champion(log, region.target, region.hardware.name, region.located.folder)
    lines = [
        f"{bold(champion.id)} ({champion.origin}): {champion.target} on {champion.hardware}, {champion.language}, "
        f"{len(champion.source.splitlines())} lines"
    ]
    lines += [f"  {m.shape}: {m.time_us:.1f} us, {m.gbytes_per_s:.0f} GB/s ({m.source})" for m in champion.figures]
    if not champion.figures:
        lines.append("  performance: not measured")
    if "--source" in arguments.flags:
        lines += ["", champion.source.rstrip()]
    emit(champion.model_dump(mode="json"), "\n".join(lines), as_json=arguments.as_json)


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
