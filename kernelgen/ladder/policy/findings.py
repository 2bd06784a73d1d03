"""What a check of the policy found, before it becomes a fault: its place, and whether it decides or needs a person."""

from __future__ import annotations

from dataclasses import dataclass

from kernelgen.ladder.results import Fault

FURTHER_SHOWN = 8
"""Lines that a detail names beside the first."""
SHOWN_COLUMNS = 160
"""Characters of a source line that a detail shows."""


@dataclass(frozen=True)
class Finding:
    """One thing found."""

    check: str
    """Id of the check, one of `names.CHECKS`."""
    reason: str
    """In a sentence, without the place: equal causes have equal reasons."""
    line: int = 1
    """Line of the source, from 1."""
    column: int = 0
    """Character of the line, from 0."""
    in_doubt: bool = False
    """Whether an honest kernel might do this too: the candidate is suspect, not failed."""


def fault(finding: Finding, further: list[int], lines: list[str]) -> Fault:
    """The finding as a fault, with the source line and a caret under the place, and the further lines with the same."""
    text = lines[finding.line - 1] if 0 < finding.line <= len(lines) else ""
    start = max(0, min(finding.column, len(text)) - SHOWN_COLUMNS // 2) if len(text) > SHOWN_COLUMNS else 0
    shown = "".join(c if c.isprintable() else " " for c in text[start : start + SHOWN_COLUMNS])
    caret = " " * max(0, min(finding.column - start, len(shown))) + "^"
    shown_lines = ", ".join(map(str, further[:FURTHER_SHOWN])) + (", …" if len(further) > FURTHER_SHOWN else "")
    also = f"\nalso on line {shown_lines}" if further else ""
    return Fault(finding.check, finding.reason, f"line {finding.line}\n{shown}\n{caret}{also}", finding.line)


def in_order(findings: list[Finding]) -> dict[Finding, list[int]]:
    """Each cause once, at its first place, with the further lines: those that decide before those in doubt."""
    causes: dict[tuple[str, str], list[Finding]] = {}
    for finding in sorted(findings, key=lambda f: (f.in_doubt, f.line, f.column, f.check)):
        causes.setdefault((finding.check, finding.reason), []).append(finding)
    return {same[0]: sorted({f.line for f in same} - {same[0].line}) for same in causes.values()}
