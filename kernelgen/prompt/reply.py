"""A model's text to a Reply, and back.

`parse` is strict about what it needs (hypothesis, kernel, known ids) and lenient about fences, order and prose;
docs/formats.md has the form. Any text gives a Reply or raises ReplyError, whose reason is what the model is told.
Code comes out byte for byte but for CRLF, which becomes LF, and blank lines at its end. Whether the code is right, or
even Python, is not asked here: that is the ladder's business. `parse(write(reply), ask) == reply`.
"""

from __future__ import annotations

import json
import re
from typing import Any, TypeVar

import json_repair
from pydantic import TypeAdapter, ValidationError

from kernelgen.config import Dsl
from kernelgen.errors import ReplyError
from kernelgen.ids import canonical_json
from kernelgen.prompt.markdown import Block, Section, Unterminated, fenced, sections
from kernelgen.prompt.source import objection
from kernelgen.prompt.texts import fill
from kernelgen.records import Ask, AutotuneConfig, Id, KernelSource, Language, Override, Reply

MAX_BYTES = 1_000_000
"""Longest reply that is read."""
LANGUAGE: dict[Dsl, Language] = {"triton": "python", "tilelang": "python", "cuda": "cuda"}
"""What a fence says, by DSL."""

_FENCE_WORDS: dict[str, Language] = {
    **dict.fromkeys(("python", "py", "python3", "triton", "tilelang"), "python"),
    **dict.fromkeys(("cuda", "cu", "cpp", "c++", "c"), "cuda"),
}
_HEADING = re.compile(
    r"^ {0,3}(?P<hashes>#{1,6} +)?(?P<bold>\*\*|__)?(?P<opened>\[)?"
    r"(?P<name>HYPOTHESIS|KERNEL|AUTOTUNE|HONOURED|OVERRIDES)"
    r"(?P<closed>\])?:?(?:\*\*|__)?:?(?P<rest>.*)$",
    re.IGNORECASE,
)
_ENTRY_POINT = re.compile(r"^\W{0,8}entry[ _]point[*_]{0,2}:\W{0,8}([A-Za-z]\w*)\W*$", re.IGNORECASE | re.ASCII)
_NOTHING = ("none", "nothing", "no ", "n/a")

_CONFIGS: TypeAdapter[dict[str, tuple[AutotuneConfig, ...]]] = TypeAdapter(dict[str, tuple[AutotuneConfig, ...]])
_IDS: TypeAdapter[tuple[Id, ...]] = TypeAdapter(tuple[Id, ...])
_OVERRIDES: TypeAdapter[tuple[Override, ...]] = TypeAdapter(tuple[Override, ...])
Value = TypeVar("Value")


def parse(text: str, ask: Ask, *, finish_reason: str = "stop") -> Reply:
    """The reply to a request. Raises ReplyError with the reason the model is told."""
    language = LANGUAGE[ask.approach.dsl]
    reply = read(text, language=language, entry_point=ask.target.entry_point, finish_reason=finish_reason)
    if reply.kernel.language != language:
        raise ReplyError(
            f"state {ask.approach.number} asks for {ask.approach.dsl}, the fence says {reply.kernel.language}."
        )
    if reply.kernel.entry_point != ask.target.entry_point:
        raise ReplyError(
            f"the entry point must be {ask.target.entry_point}, the reply says {reply.kernel.entry_point}."
        )
    if reply.autotune and ask.approach.dsl != "triton":
        raise ReplyError(
            f"[AUTOTUNE] is for Triton, and state {ask.approach.number} asks for {ask.approach.dsl}; leave it empty."
        )
    _check_ids(reply, ask)
    problem = objection(reply.kernel, frozenset(reply.autotune))
    if problem:
        raise ReplyError(problem)
    return reply


def read(text: str, *, language: Language, entry_point: str, finish_reason: str = "stop") -> Reply:
    """A reply without its request: what `parse` does before it compares the two.

    `language` and `entry_point` stand in where the reply does not say. Raises ReplyError.
    """
    _check_text(text, finish_reason)
    try:
        found = sections(text.replace("\r\n", "\n"), _heading)
    except Unterminated:
        raise ReplyError("it is truncated: a code fence is opened and never closed.") from None
    hypothesis = found.get("hypothesis", Section()).text
    if not hypothesis:
        raise ReplyError("it has no [HYPOTHESIS] section.")
    honoured: tuple[str, ...] = _value("HONOURED", found.get("honoured"), _IDS, ())
    return Reply(
        hypothesis=hypothesis,
        kernel=_kernel(found.get("kernel"), language, entry_point),
        autotune=_configs(found.get("autotune")),
        honoured=tuple(dict.fromkeys(honoured)),
        overrides=_value("OVERRIDES", found.get("overrides"), _OVERRIDES, ()),
    )


def write(reply: Reply) -> str:
    """The reply in the format, as a model would give it."""
    record = reply.model_dump(mode="json")
    hypothesis = reply.hypothesis if _reads_plainly(reply.hypothesis) else fenced(reply.hypothesis, "text")
    parts = [
        f"[HYPOTHESIS]\n{hypothesis}",
        f"[KERNEL]\nEntry point: {reply.kernel.entry_point}\n{fenced(reply.kernel.code, reply.kernel.language)}",
        *(
            f"[{name.upper()}]\n{fenced(json.dumps(record[name], ensure_ascii=False), 'json')}"
            for name in ("autotune", "honoured", "overrides")
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _reads_plainly(hypothesis: str) -> bool:
    """Whether the text needs no fence: nothing in it opens a section or a fence."""
    try:
        found = sections(f"[HYPOTHESIS]\n{hypothesis}", _heading)
    except Unterminated:
        return False
    return list(found) == ["hypothesis"] and found["hypothesis"].text == hypothesis


def reask(reason: str) -> str:
    """What the model is told when its reply could not be used."""
    return fill("reask", reason=reason)


def _heading(line: str) -> tuple[str, str] | None:
    """Name of the section that a line opens and its text on the same line, or None for any other line."""
    match = _HEADING.match(line)
    if match is None or bool(match["opened"]) != bool(match["closed"]):
        return None
    if not (match["hashes"] or match["bold"] or match["opened"]):
        return None
    name, rest = match["name"].lower(), match["rest"].strip()
    if not rest.strip("# "):
        return name, ""
    # prose that begins with a section's name is no heading, but "[HYPOTHESIS] Because ..." and "[HONOURED] []" are
    return (name, rest) if match["opened"] and (name == "hypothesis" or rest[0] in "[{") else None


def _check_text(text: str, finish_reason: str) -> None:
    if finish_reason == "length":
        raise ReplyError("it is truncated: the longest reply was reached before its end; answer more briefly.")
    try:
        size = len(text.encode("utf-8"))
    except UnicodeEncodeError:
        raise ReplyError("it holds characters that are not valid Unicode.") from None
    if size > MAX_BYTES:
        raise ReplyError(f"it has {size} bytes; at most {MAX_BYTES} are read.")
    if "\x00" in text:
        raise ReplyError("it holds a NUL character.")


def _kernel(section: Section | None, language: Language, entry_point: str) -> KernelSource:
    if section is None:
        raise ReplyError("it has no [KERNEL] section.")
    if not section.blocks or not section.blocks[-1].text.strip():
        raise ReplyError("its [KERNEL] section has no source in a code fence.")
    block = section.blocks[-1]
    named = [match[1] for line in section.prose if (match := _ENTRY_POINT.match(line))]
    return KernelSource(
        language=_FENCE_WORDS.get(block.info, language),
        code=block.text.rstrip("\n") + "\n",
        entry_point=named[-1] if named else entry_point,
    )


def _configs(section: Section | None) -> dict[str, tuple[AutotuneConfig, ...]]:
    configs = _value("AUTOTUNE", section, _CONFIGS, {})
    parameters = {key for kernel in configs.values() for config in kernel for key in config.kwargs}
    odd = sorted(name for name in {*configs, *parameters} if not name.isidentifier())
    if odd:
        raise ReplyError(f"[AUTOTUNE]: {odd[0]!r} is not a name of a kernel or a parameter.")
    return {name: kernel for name, kernel in configs.items() if kernel}


def _value(name: str, section: Section | None, kind: TypeAdapter[Value], default: Value) -> Value:
    """The JSON of a section as its type; `default` where the section is missing or says nothing."""
    blocks = section.blocks if section else []
    text = (blocks[-1] if blocks else Block("", section.text if section else "")).text.strip()
    if not text or (not blocks and text.lower().startswith(_NOTHING)):
        return default
    try:
        return kind.validate_python(_loaded(text))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(step) for step in first["loc"])
        raise ReplyError(f"[{name}] {place + ': ' if place else ''}{first['msg']}.") from None
    except (ValueError, RecursionError):
        raise ReplyError(f"[{name}] is not the JSON that the format asks for.") from None


def _loaded(text: str) -> Any:
    """The JSON value, mended where it is broken. Raises ValueError, also for NaN and strings not Unicode."""
    try:
        value = json.loads(text)
    except ValueError:
        value = json_repair.loads(text)
    canonical_json(value).encode("utf-8")
    return value


def _check_ids(reply: Reply, ask: Ask) -> None:
    severity = {identity: entry.severity for entry in ask.selection.chosen for identity in entry.ids}
    for identity in (*reply.honoured, *(override.id for override in reply.overrides)):
        if identity not in severity:
            raise ReplyError(
                f"no injected constraint has the id {identity!r}; name only ids that stand in [CONSTRAINTS]."
            )
    for override in reply.overrides:
        if severity[override.id] != "soft":
            raise ReplyError(
                f"{override.id} is a {severity[override.id]} constraint; only soft ones can be overridden."
            )
