"""A champion as a file of its own: it imports no kernelgen, and its header says where it comes from and what it took.

Python is a module to import, CUDA C++ a source to build; the text below the header is the one that was judged. What a
model or a person wrote is escaped in the header, so that nothing in it ends the comment.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from kernelgen import __version__, champions, markers, python_source
from kernelgen.candidates import read_back
from kernelgen.candidates.build import TABLE, table_text
from kernelgen.candidates.comment import commented, escaped
from kernelgen.config import Hardware, Target
from kernelgen.constraints.gains import first_sentences
from kernelgen.errors import BadInput
from kernelgen.eventlog.store import EventLog
from kernelgen.events import CandidateGenerated, GenerationRequested, VerdictReached
from kernelgen.ids import digest_text
from kernelgen.judging.promotion import Ancestor
from kernelgen.records import Champion, PullRequest

SUFFIX = {"python": ".py", "cuda": ".cu"}
MEGAKERNEL, CHERRY_PICK = 3, 4
"""The states whose candidates are ports of published kernels."""


def module_text(champion: Champion, target: Target, hardware: Hardware, line: list[Ancestor], log: EventLog) -> str:
    """The whole file. Raises BadInput where the champion cannot stand by itself.

    `line` is the region's line of champions.
    """
    source = _plain_source(champion)
    about = "".join(commented(_header(champion, target, hardware, line, log), champion.language))
    header = f"/*\n{about} */\n" if champion.language == "cuda" else about
    return f"{header}\n{source.lstrip(chr(10))}"


def _plain_source(champion: Champion) -> str:
    """The source, with kernelgen's lines around a candidate file left away."""
    source = champion.source
    if markers.holds_marker(source):
        part = read_back(source)
        source = (table_text(part.autotune) if part.autotune else "") + part.kernel.code
    if champion.language == "python":
        _check_stands_alone(champion.id, source)
    return source


def _check_stands_alone(champion_id: str, source: str) -> None:
    """Raises BadInput for Python that imports kernelgen, or refers to a table that is not in it."""
    try:
        tree = python_source.parse(source)
    except SyntaxError as error:
        raise BadInput(f"The champion {champion_id} is not Python: {error.msg}; import one that is.") from error
    nodes = list(ast.walk(tree))
    imported = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    imported += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    if any(name.partition(".")[0] == "kernelgen" for name in imported):
        raise BadInput(
            f"The champion {champion_id} imports kernelgen, so it cannot stand alone; import one without it."
        )
    names = [node for node in nodes if isinstance(node, ast.Name) and node.id == TABLE]
    if names and not any(isinstance(node.ctx, ast.Store) for node in names):
        raise BadInput(f"The champion {champion_id} refers to {TABLE} and does not define it; import one that does.")


def _header(
    champion: Champion, target: Target, hardware: Hardware, line: list[Ancestor], log: EventLog
) -> Iterator[str]:
    arguments = ", ".join([*(tensor.name for tensor in target.inputs), *(scalar.name for scalar in target.scalars)])
    outputs = ", ".join(tensor.name for tensor in target.outputs)
    yield escaped(f"{target.name}: {target.title}, for {hardware.title} ({hardware.arch})")
    yield ""
    yield f"entry point: {champion.entry_point}({arguments}) -> ({outputs})"
    yield f"champion: {champion.id} ({champion.origin}), exported by kernelgen {__version__}"
    yield f"source: {digest_text(champion.source)}"
    ancestors = line_of(line, champion.id)
    yield f"line: {' <- '.join([_first(ancestors), *(one.champion.id for one in ancestors)])}"
    yield from _hypothesis(champion, log)
    yield from _figures(champion, ancestors, log)
    yield from map(escaped, _licences(ancestors, log))


def line_of(line: list[Ancestor], champion_id: str) -> list[Ancestor]:
    """A standing champion and those it descends from, the first one first; empty for the naive one."""
    by_place = {ancestor.link.place: ancestor for ancestor in line}
    found = [one for one in line if one.link.fate == "stands" and one.champion.id == champion_id][-1:]
    while found and found[0].link.parent is not None:
        found.insert(0, by_place[found[0].link.parent.place])
    return found


def _first(ancestors: list[Ancestor]) -> str:
    """What the line begins with."""
    is_over_naive = not ancestors or ancestors[0].link.event.parent is not None
    return champions.NAIVE if is_over_naive else "a user's file"


def _hypothesis(champion: Champion, log: EventLog) -> Iterator[str]:
    for row in log.iteration(champion.id):
        if isinstance(row.event, CandidateGenerated):
            yield escaped(f"hypothesis: {first_sentences(row.event.hypothesis)}")


def _figures(champion: Champion, ancestors: list[Ancestor], log: EventLog) -> Iterator[str]:
    """What was measured: figures at each shape, and against what."""
    if not champion.figures:
        yield "performance: not measured"
        return
    for taken in champion.figures:
        yield f"{taken.shape}: {taken.time_us:.4g} us, {taken.tflops:.4g} TFLOP/s, {taken.gbytes_per_s:.4g} GB/s"
    last = ancestors[-1] if ancestors else None
    if last is not None and last.measured is not None:
        told = f"{last.measured.over_all.told()} times as fast as {last.measured.champion_id}"
        if last.held_out is not None:
            told += f", {last.held_out.over_all.told()} at held-out shapes"
        yield f"measured: {told}; recipe {last.measured.recipe}; verdict {last.link.event.verdict}"
        yield escaped(f"measured with: {versions(last, log)}")


def versions(ancestor: Ancestor, log: EventLog) -> str:
    """GPU, compiler and torch of the measurement that promoted a champion."""
    told = environment(ancestor, log)
    return ", ".join(f"{name} {told[name]}" for name in ("gpu", "triton", "tilelang", "nvcc", "torch") if name in told)


def environment(ancestor: Ancestor, log: EventLog) -> dict[str, str]:
    """What the measurement that promoted a champion depended on; empty for an imported one."""
    verdict = None if ancestor.link.event.verdict is None else log.row(ancestor.link.event.verdict).event
    if not isinstance(verdict, VerdictReached):
        return {}
    return {name: said for level in verdict.verdict.levels for name, said in level.environment.items()}


def _licences(ancestors: list[Ancestor], log: EventLog) -> Iterator[str]:
    """What ports in the line of a champion ask for: their licence goes with every kernel that descends from them."""
    for ancestor in ancestors:
        events = (row.event for row in log.iteration(ancestor.champion.id))
        asked = next((event for event in events if isinstance(event, GenerationRequested)), None)
        if ancestor.champion.origin == "imported":
            yield f"licence: {ancestor.champion.id} was imported by a person; its own licence holds"
        elif asked is not None and asked.state == CHERRY_PICK and "pr" in asked.ask:
            pr = PullRequest.model_validate_json(log.text(asked.ask["pr"]))
            yield (
                f"licence: {ancestor.champion.id} is a port of {pr.repository}#{pr.number}, {pr.licence}: keep that "
                "licence's notice with this file"
            )
        elif asked is not None and asked.state == MEGAKERNEL:
            yield (
                f"licence: {ancestor.champion.id} adapts published kernels: keep the licence notices that its source "
                "names with this file"
            )
