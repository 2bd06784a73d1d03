"""The header comment of a candidate: what it is for, what it rests on, and why it should be faster.

A line `key: value`, or `key:` and its lines indented below, `none` where there are none. Everything that a model, a
person or a compiler wrote is escaped (`comment`), so that the header ends where kernelgen ends it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from kernelgen.candidates.comment import commented, escaped, uncommented, unescaped
from kernelgen.errors import BadInput
from kernelgen.ids import digest_text
from kernelgen.records import Ask, Champion, Language, Reply, SelectedConstraint

TITLE = "kernelgen candidate"
NONE = "none"
NOT_MEASURED = "not measured"
_INDENT = "  "
_KEY = re.compile(r"([a-z][a-z ]*):(?: (.*))?")


def write(iteration_id: str, ask: Ask, reply: Reply, *, prompt_digest: str, reply_digest: str) -> str:
    """The whole header, comment signs included, ending in one line feed."""
    language = reply.kernel.language
    text = "".join(commented(_lines(iteration_id, ask, reply, prompt_digest, reply_digest), language))
    return f"/*\n{text} */\n" if language == "cuda" else text


def read_header(text: str) -> dict[str, tuple[str, ...]]:
    """The header of a candidate file: the lines of each value by key, `candidate` being the id.

    A value `none` or `not measured` has no lines.
    Raises BadInput where the text does not begin with a candidate's header.
    """
    language: Language = "cuda" if text.startswith("/*\n") else "python"
    first, *lines = list(_comment(text, language)) or [""]
    if not first.startswith(f"{TITLE} "):
        raise BadInput(f"The text is no candidate file: it does not begin with a comment that says '{TITLE} ID'.")
    found: dict[str, list[str]] = {"candidate": [first.removeprefix(f"{TITLE} ")]}
    current: list[str] = []
    for line in lines:
        if line.startswith(_INDENT) or not line:
            current.append(unescaped(line.removeprefix(_INDENT)))
        elif match := _KEY.fullmatch(line):
            current = found[match[1]] = []
            if match[2] and match[2] not in (NONE, NOT_MEASURED):
                current.append(unescaped(match[2]))
    return {key: tuple(values) for key, values in found.items()}


def _comment(text: str, language: Language) -> Iterator[str]:
    lines = iter(text.split("\n"))
    if language == "cuda":
        next(lines)
    for line in lines:
        content = None if line == " */" else uncommented(line, language)
        if content is None:
            return
        yield content


def _lines(iteration_id: str, ask: Ask, reply: Reply, prompt_digest: str, reply_digest: str) -> Iterator[str]:
    approach, best = ask.approach, ask.champion
    yield f"{TITLE} {iteration_id}"
    yield f"target: {ask.target.name}"
    yield f"hardware: {escaped(f'{ask.hardware.name} ({ask.hardware.title}, {ask.hardware.arch})')}"
    yield f"state: {approach.number}"
    yield f"approach: {escaped(f'{approach.name}: {approach.description}')}"
    yield f"state chosen by: {ask.position.chosen_by}"
    yield f"dsl: {approach.dsl}"
    yield f"entry point: {reply.kernel.entry_point}"
    yield f"champion: {best.id} ({best.origin}), {digest_text(best.source)}"
    yield from _listed("champion figure", _figures(best), otherwise=NOT_MEASURED)
    yield "hypothesis:"
    for line in reply.hypothesis.split("\n"):
        yield f"{_INDENT}{escaped(line)}" if line else ""
    yield from _listed("constraints applied", map(_constraint, ask.selection.chosen))
    yield from _listed("constraints honoured", reply.honoured)
    yield from _listed("overrides", (f"{override.id}: {override.reason}" for override in reply.overrides))
    yield from _listed("constraints left out", ask.selection.left_out)
    yield f"prompt: {prompt_digest}"
    yield f"reply: {reply_digest}"
    yield f"model part: {digest_text(reply.kernel.code)}"


def _listed(key: str, items: Iterable[str], otherwise: str = NONE) -> Iterator[str]:
    """A key and its items, one a line."""
    lines = [f"{_INDENT}{escaped(item)}" for item in items]
    yield f"{key}:" if lines else f"{key}: {otherwise}"
    yield from lines


def _constraint(entry: SelectedConstraint) -> str:
    return f"{entry.severity} {', '.join(entry.ids)}: {entry.statement}"


def _figures(best: Champion) -> list[str]:
    return [
        f"{taken.time_us:.4g} us at {taken.shape}: {taken.tflops:.4g} TFLOPS, {taken.gbytes_per_s:.4g} GB/s, occupancy "
        f"{NOT_MEASURED if taken.occupancy_percent is None else f'{taken.occupancy_percent:.4g} %'}"
        for taken in best.figures
    ]
