"""L0's policy on a candidate's own part: what it may name, do and keep, read from its source alone.

`examine` parses and never runs. It answers for any text within `LONGEST` characters; what cannot be read fails with
its place. A finding that honest kernels may show too makes the candidate suspect, not failed. It does not say that a
candidate is harmless: containment and the checks of L2 stand behind it.
"""

from __future__ import annotations

import ast
import re
import time
from collections.abc import Collection, Mapping
from typing import Any

from kernelgen.ladder.policy import cuda, python
from kernelgen.ladder.policy.findings import Finding, fault, in_order
from kernelgen.ladder.policy.names import CHECKS
from kernelgen.ladder.policy.similarity import Likeness, closest
from kernelgen.ladder.policy.view import View
from kernelgen.ladder.results import Result
from kernelgen.ladder.subject import Subject

__all__ = ["CHECKS", "LONGEST", "examine"]

LONGEST = 400_000
"""Characters of a source: real kernels have fewer than a quarter of that."""
LINE_END = re.compile(r"\r\n|\r|\n")
"""As Python counts lines; `str.splitlines` knows further ends."""
PORTED = frozenset({"cutlass", "cute"})
"""Building blocks that a port may keep."""
NEVER_LEFT_OUT = "policy.syntax"


def examine(
    subject: Subject,
    *,
    allow: Collection[str] = (),
    deny: Collection[str] = (),
    known: Mapping[str, str] | None = None,
    similarity: float = 0.9,
    port_of: str | None = None,
    same_kernel_allowed: bool = False,
) -> Result:
    """Judge a candidate's own part at L0.

    Args:
        subject: the candidate; only `source`, `preamble`, `entry_point`, `language` and `goal` are read.
        allow: ids of checks that are not made, and further dotted names that may be used, such as `torch.nn`.
        deny: further dotted names that may not be used.
        known: sources to compare with, by name: champion, plays, libraries.
        similarity: share of the candidate in common with a known source from which it is suspect.
        port_of: what it is a port of, with its licence: similarity is a note then.
        same_kernel_allowed: whether the champion is to be handed in again, as autotuning does.
    """
    began = time.perf_counter()
    allowed = frozenset(name for name in allow if name not in CHECKS) | (PORTED if port_of is not None else frozenset())
    findings, notes, details = _examine(subject, allowed, frozenset(deny))
    if not any(finding.check == NEVER_LEFT_OUT for finding in findings):
        likeness = closest(_running(subject, details.pop("view", None)), subject.language, known or {})
        if likeness is not None:
            details["similarity"] = {"name": likeness.name, "share": round(likeness.share, 3)}
            findings += _similar(likeness, similarity, port_of, same_kernel_allowed, notes)
    details.pop("view", None)
    left_out = frozenset(allow) & frozenset(CHECKS) - {NEVER_LEFT_OUT}
    kept = in_order([finding for finding in findings if finding.check not in left_out])
    notes += [f"not checked: {check}" for check in sorted(left_out)]
    lines = LINE_END.split(subject.source)
    decisive = next(iter(kept), None)
    return Result(
        level="L0",
        outcome="passed" if decisive is None else "suspect" if decisive.in_doubt else "failed",
        reason=_sentence(kept),
        faults=tuple(fault(finding, further, lines) for finding, further in kept.items()),
        notes=tuple(notes),
        details=details,
        seconds=time.perf_counter() - began,
    )


def _examine(
    subject: Subject, allowed: frozenset[str], denied: frozenset[str]
) -> tuple[list[Finding], list[str], dict[str, Any]]:
    """Findings, notes and details of everything but similarity."""
    if len(subject.source) > LONGEST:
        reason = f"the source has {len(subject.source)} characters, and may have {LONGEST}"
        return [Finding("policy.syntax", reason)], [], {}
    if subject.language == "cuda":
        return cuda.check(subject, allowed, denied), [], {}
    findings, view = python.check(subject, allowed, denied)
    return findings, [], {"view": view}


def _running(subject: Subject, view: View | None) -> str:
    """The part of the source that can run: functions that nothing reaches are left out."""
    if view is None:
        return subject.source
    lines = LINE_END.split(subject.source)
    for node in view.module.tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name not in view.reached:
            first = min([node.lineno, *(part.lineno for part in node.decorator_list)])
            lines[first - 1 : node.end_lineno] = [""] * ((node.end_lineno or first) - first + 1)
    return "\n".join(lines)


def _similar(
    likeness: Likeness, threshold: float, port_of: str | None, same_kernel_allowed: bool, notes: list[str]
) -> list[Finding]:
    """The finding of a likeness, or the note where the state allows it."""
    told = f"{likeness.share:.0%} of it, names and numbers aside, stands in {likeness.name}"
    if likeness.share < threshold:
        if likeness.covered >= threshold:
            notes.append(f"it has {likeness.covered:.0%} of {likeness.name} in it, names and numbers aside")
        return []
    if port_of is not None:
        notes.append(f"{told}; a port of {port_of}")
        return []
    if same_kernel_allowed:
        notes.append(f"{told}, as its state hands it in")
        return []
    return [Finding("policy.similar", told, in_doubt=True)]


def _sentence(findings: dict[Finding, list[int]]) -> str:
    if not findings:
        return "nothing that the policy refuses"
    return next(iter(findings)).reason
