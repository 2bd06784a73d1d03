"""The [CONSTRAINTS] body of a prompt, and how to read a line of it back.

One entry is one line: whatever a statement or a log line holds, it cannot begin a line, and so no section, and cannot
pass for the entry's rule or evidence. The introductions of the three lists are the specification's words. A log line is
shown up to `LONGEST_EVIDENCE` characters; the constraint file keeps it uncut.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from kernelgen.config import Severity
from kernelgen.records import Constraint, SelectedConstraint, Selection

HEADINGS: Mapping[Severity, str] = MappingProxyType(
    {
        "hard": "HARD: cannot be overridden",
        "soft": "SOFT: prefer to avoid unless you have a specific reason",
        "positive": "POSITIVE: this approach worked before",
    }
)
"""By severity, in the prompt's order."""
NONE = "- none"
LONGEST_EVIDENCE = 300
"""Characters of evidence shown."""
LONGEST_ARCHITECTURE_SOURCE = 60
"""Characters of an architecture fact's source shown: it is a citation, and every prompt carries it."""

_MARKS = re.compile(r"\[(?=(?:rule|evidence):)")
_LINE = re.compile(
    r"- \((?P<id>[^),]+)(?:, seen (?P<seen>\d+) times)?\) (?P<statement>.*?)"
    r"(?: \[rule: (?P<rule>.*?)\])?(?: \[evidence: (?P<evidence>.*)\])?"
)


class RenderedEntry(NamedTuple):
    """What one line of the body says."""

    id: str
    """Of the constraint, the most recent one where several were merged."""
    seen: int
    """How many say it."""
    statement: str
    """The sentence."""
    rule: str | None
    """The checkable rule, if there is one."""
    evidence: str
    """What it rests on, or empty."""


def one_line(text: str) -> str:
    """The text on one line: whitespace runs and unprintable characters are single blanks."""
    if not text.isprintable():
        text = "".join(c if c.isprintable() else " " for c in text)
    return " ".join(text.split())


def plain(text: str) -> str:
    """A statement or evidence as the prompt shows it: on one line, and without the marks of rule and evidence."""
    return _MARKS.sub("(", one_line(text))


def evidence_text(constraint: Constraint) -> str:
    """Evidence in one line: the source, then the decisive lines, else the events that show it."""
    shown = "; ".join(constraint.evidence.lines)
    if not shown and constraint.evidence.events:
        shown = f"events {', '.join(constraint.evidence.events)}"
    text = plain(": ".join(part for part in (constraint.source, shown) if part))
    return _shortened(text, LONGEST_ARCHITECTURE_SOURCE if constraint.architecture else LONGEST_EVIDENCE)


def _shortened(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    head = text[: longest - 1]
    whole_words = head.rpartition(" ")[0] or head
    return whole_words.rstrip(" ,;:(") + "…"


def render_entry(entry: SelectedConstraint) -> str:
    """The entry's line, without a line end."""
    return render_line(entry.ids, entry.statement, entry.rule, entry.evidence)


def render_line(ids: tuple[str, ...], statement: str, rule: str | None, evidence: str) -> str:
    """`- (id, seen 3 times) statement [rule: …] [evidence: …]`."""
    head = ids[0] if len(ids) == 1 else f"{ids[0]}, seen {len(ids)} times"
    rule_part = f" [rule: {one_line(rule)}]" if rule else ""
    evidence_part = f" [evidence: {evidence}]" if evidence else ""
    return f"- ({head}) {plain(statement)}{rule_part}{evidence_part}"


def render_body(selection: Selection) -> str:
    """The whole body, three lists, without a final line end."""
    return render_lists((entry.severity, render_entry(entry)) for entry in selection.chosen)


def render_lists(entries: Iterable[tuple[Severity, str]]) -> str:
    """The body of rendered lines: each under its severity's heading, in the order given."""
    lists: dict[Severity, list[str]] = {severity: [] for severity in HEADINGS}
    for severity, line in entries:
        lists[severity].append(line)
    return "\n".join(line for severity, lines in lists.items() for line in (HEADINGS[severity], *(lines or [NONE])))


def read_entry(line: str) -> RenderedEntry | None:
    """What a line of the body says; None for headings, `- none` and anything else."""
    found = _LINE.fullmatch(line)
    if found is None:
        return None
    return RenderedEntry(
        found["id"], int(found["seen"] or 1), found["statement"], found["rule"], found["evidence"] or ""
    )
