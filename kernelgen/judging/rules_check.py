"""Every checkable hard rule, on what is known of a candidate before it is compiled.

A rule that cannot be told yet (registers, shared memory as compiled) is left to the compiler. A setting that breaks a
rule is pruned with a note where others of its kernel are left, and is the candidate's fault where none is; a source
that breaks one is at fault at once. Nothing of the candidate is run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from kernelgen.config import Dsl, Hardware
from kernelgen.constraints.facts import NO_DTYPES, NO_TABLE, TRACED, Facts, facts_before_compiling
from kernelgen.constraints.rules import parse
from kernelgen.ladder.results import Fault
from kernelgen.ladder.subject import Subject
from kernelgen.records import AutotuneConfig, Constraint, Finding

CHECK = "rule."
"""Prefix of the check's id; the constraint's id follows."""
OF_THE_SOURCE = frozenset({"source", "dsl", "language", "arch"})
"""Facts that are the same in every setting."""
LONGEST_SETTING = 300


@dataclass(frozen=True)
class Checked:
    """What the rules say of a candidate."""

    broken: tuple[Finding, ...]
    """Rules that it breaks whatever configuration is chosen."""
    pruned: tuple[str, ...]
    """Configurations that a rule excludes, a sentence each."""
    kept: Mapping[str, tuple[AutotuneConfig, ...]]
    """Rows of the given table that no rule excludes, by kernel."""


def hard_rule_findings(
    source: str,
    configs: Mapping[str, Sequence[AutotuneConfig]],
    dsl: Dsl,
    arch: str,
    constraints: Iterable[Constraint],
    *,
    dtypes: Mapping[str, str] = NO_DTYPES,
) -> list[Finding]:
    """The hard rules that a candidate breaks; `check_rules` also tells what is pruned."""
    rules = [c for c in constraints if c.severity == "hard" and c.rule is not None]
    facts = facts_before_compiling(source, configs, dsl, arch=arch, dtypes=dtypes, follow=_need_following(rules))
    return list(check_rules(facts, rules).broken)


def rule_findings(
    subject: Subject, hardware: Hardware, constraints: Iterable[Constraint]
) -> tuple[tuple[Fault, ...], tuple[str, ...]]:
    """For L0: faults, and notes on pruned configurations. Of the constraints those count that hold for the compiler."""
    dtypes = {name: dtype for name, dtype, _ in subject.goal.inputs}
    whole = subject.preamble + subject.source
    rules = [c for c in constraints if c.severity == "hard" and c.rule is not None and _holds(c, subject.dsl)]
    facts = facts_before_compiling(
        whole, NO_TABLE, subject.dsl, arch=hardware.arch, dtypes=dtypes, follow=_need_following(rules)
    )
    checked = check_rules(facts, rules)
    above = subject.preamble.count("\n")
    faults = tuple(
        Fault(f.check, f.reason, f.detail, f.line - above if f.line is not None and f.line > above else None)
        for f in checked.broken
    )
    return faults, checked.pruned


def check_rules(facts: Sequence[Facts], constraints: Iterable[Constraint]) -> Checked:
    """What every hard rule says of these facts, those of the source first."""
    rules = [c for c in constraints if c.severity == "hard" and c.rule is not None]
    source, *settings = facts
    findings = [_finding(c, source) for c in rules if _breaks(source, c)]
    by_setting = [c for c in rules if not parse(c.rule or "").names() <= OF_THE_SOURCE]
    excluded = [(one, next((c for c in by_setting if _breaks(one, c)), None)) for one in settings]
    kernels = {one.kernel for one in settings}
    pruned: list[str] = []
    for kernel in sorted(name for name in kernels if name is not None):
        own = [(one, constraint) for one, constraint in excluded if one.kernel == kernel]
        findings += [_finding(c, one) for one, c in own if c is not None and not one.tuned]
        tuned = [(one, c) for one, c in own if one.tuned]
        refused = [(one, c) for one, c in tuned if c is not None]
        if refused and len(refused) == len(tuned):
            findings.append(_none_left(kernel, refused))
        else:
            pruned += [_pruned(one, c) for one, c in refused]
    kept: dict[str, list[AutotuneConfig]] = {}
    for one, constraint in excluded:
        if one.config is not None and one.kernel is not None:
            kept.setdefault(one.kernel, []).extend([one.config] if constraint is None else [])
    return Checked(tuple(_once(findings)), tuple(pruned), {name: tuple(rows) for name, rows in kept.items()})


def _need_following(rules: Iterable[Constraint]) -> bool:
    """Whether a rule asks for what a kernel does in a setting, which takes most of the time to tell."""
    return any(constraint.rule is not None and parse(constraint.rule).names() & TRACED for constraint in rules)


def _breaks(facts: Facts, constraint: Constraint) -> bool:
    return constraint.rule is not None and parse(constraint.rule).check(facts.values) is False


def _finding(constraint: Constraint, facts: Facts) -> Finding:
    reason = f"{_shown(facts.setting)} breaks the hard constraint {constraint.id}: {constraint.statement}"
    return Finding(check=CHECK + constraint.id, reason=reason, detail=f"rule: {constraint.rule}", line=facts.line)


def _none_left(kernel: str, refused: Sequence[tuple[Facts, Constraint]]) -> Finding:
    first, constraint = refused[0]
    reason = (
        f"every configuration of {kernel} breaks a hard constraint, {_shown(first.setting)} the constraint "
        f"{constraint.id}: {constraint.statement}"
    )
    detail = "\n".join(f"{_shown(one.setting)}: {c.id}, rule: {c.rule}" for one, c in refused)
    return Finding(check=CHECK + constraint.id, reason=reason, detail=detail, line=first.line)


def _pruned(facts: Facts, constraint: Constraint) -> str:
    return f"pruned {_shown(facts.setting)}: hard constraint {constraint.id}, rule {constraint.rule}"


def _shown(setting: str) -> str:
    return setting if len(setting) <= LONGEST_SETTING else f"{setting[: LONGEST_SETTING - 1]}…"


def _once(findings: Iterable[Finding]) -> Iterator[Finding]:
    """The first finding of each rule and line."""
    seen: set[tuple[str, int | None]] = set()
    for finding in findings:
        if (finding.check, finding.line) not in seen:
            seen.add((finding.check, finding.line))
            yield finding


def _holds(constraint: Constraint, dsl: Dsl) -> bool:
    """Whether it holds for the DSL, and for the compiler that this machine has of it."""
    scope = constraint.scope
    if scope.dsl not in (None, dsl):
        return False
    here = _version(scope.compiler)
    return here is None or scope.compiler_version in (None, here)


def _version(compiler: str | None) -> str | None:
    """Of a compiler that is a Python package; None where that is not known."""
    if compiler is None:
        return None
    try:
        return version(compiler)
    except PackageNotFoundError:
        return None
