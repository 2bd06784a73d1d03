"""What a failed level teaches: lessons, each a cause, a sentence, a scope no wider than its evidence, a checkable rule.

The cause is the check and the facts that make it, never a text: sizes, names and places do not count, so the same fault
in two kernels is one lesson. Of the rules a cause suggests, the general one first, the first is taken that refuses the
very candidate that failed, on what is known of it before it is compiled; so every rule given is proved on its evidence.
`suspect` and `inconclusive` teach nothing, nor do faults that say nothing to the next author.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from kernelgen.config import Dsl, Hardware, Severity
from kernelgen.constraints import rules
from kernelgen.constraints.causes import Cause, Failure, compile_cause
from kernelgen.constraints.facts import Facts
from kernelgen.constraints.manners import policy_cause
from kernelgen.ids import canonical_json, digest_text
from kernelgen.records import Constraint, Evidence, Finding, LevelResult, Scope, to_text

ID_DIGITS = 12
"""Hex digits of a fingerprint in the id of its constraint."""
COMPILERS: Mapping[Dsl, str] = MappingProxyType({"triton": "triton", "tilelang": "tilelang", "cuda": "nvcc"})
"""Whose word L1 brings, by DSL."""
UNTAUGHT = (
    *("header.", "rule.", "policy.syntax", "policy.similar", "correctness.suspect"),
    *("compile.timeout", "process."),
)
"""Checks that teach nothing: kernelgen's own lines, rules that stand already, mere slips, and limits that the policy
and this machine's load set.
"""


_PLACE = re.compile(r"shape \S+ \([^)]*\), (\w+) inputs")
"""How a fault of L2 begins that stands at one shape and kind of inputs."""


@dataclass(frozen=True)
class Judged:
    """What was judged, as far as its failure is to be understood."""

    target: str
    """Target name."""
    hardware: Hardware
    """The hardware it was judged for."""
    dsl: Dsl
    """What compiles it."""
    facts: Sequence[Facts]
    """What was known of it before compiling; empty where its source is not at hand."""


@dataclass(frozen=True)
class Lesson:
    """What one finding teaches."""

    fingerprint: str
    """Digest of cause and scope: equal for the same lesson."""
    severity: Severity
    """hard for L0 and L1, soft for L2; of a measurement soft or positive."""
    statement: str
    """For a kernel author."""
    scope: Scope
    """Where it holds."""
    rule: str | None
    """Refuses a candidate with the same fault before it is compiled, where one can be made."""
    own: Mapping[str, object]
    """Launch parameters of what failed, as facts of a rule."""
    lines: tuple[str, ...]
    """The decisive lines, uncut."""
    source: str
    """The level, and the compiler where one spoke."""
    recurs: bool = False
    """Whether it takes more than one candidate to learn it."""

    @property
    def name(self) -> str:
        """Id of the first constraint made of it; further ones have `.2`, `.3` behind it."""
        return name_of(self.fingerprint)

    def constraint(self, id: str, time: str, events: Sequence[str], rule: str | None) -> Constraint:
        """As a line of the database."""
        return Constraint(
            id=id,
            severity=self.severity,
            statement=self.statement,
            scope=self.scope,
            evidence=Evidence(events=tuple(events), lines=self.lines),
            source=self.source,
            time=time,
            rule=rule,
        )


def name_of(fingerprint: str) -> str:
    """Id of the first constraint made of a lesson with this fingerprint."""
    return f"c_{fingerprint.partition(':')[2][:ID_DIGITS]}"


def lessons(result: LevelResult, judged: Judged) -> list[Lesson]:
    """What a level's result teaches, each cause once; nothing unless it failed."""
    if result.outcome != "failed":
        return []
    found: dict[str, Lesson] = {}
    for finding in result.findings:
        if not finding.check.startswith(UNTAUGHT):
            lesson = _lesson(finding, result, judged)
            found.setdefault(lesson.fingerprint, lesson)
    return list(found.values())


def _lesson(finding: Finding, result: LevelResult, judged: Judged) -> Lesson:
    compiler = COMPILERS[judged.dsl] if result.level == "L1" else None
    version = None if compiler is None else _version(compiler, result)
    said_by = f"{compiler} {version}" if compiler is not None and version is not None else ""
    failure = Failure(finding, judged.hardware, judged.facts, said_by or COMPILERS[judged.dsl])
    if result.level == "L1":
        cause = compile_cause(failure)
    elif result.level == "L0":
        cause = policy_cause(failure)
    else:
        cause = _recurring(finding)
    everywhere = Scope(hardware=judged.hardware.name)
    here = Scope(target=judged.target, hardware=judged.hardware.name, dsl=judged.dsl)
    if cause.said_by_compiler and version is not None:
        here = here.model_copy(update={"compiler": compiler, "compiler_version": version})
    scope = everywhere if cause.of_the_architecture else here
    return Lesson(
        fingerprint=digest_text(canonical_json([finding.check, cause.kind, to_text(scope)])),
        severity="hard" if result.level in ("L0", "L1") else "soft",
        statement=cause.statement,
        scope=scope,
        rule=cause.rule,
        own=failure.own,
        lines=tuple(_decisive(finding)),
        source=", ".join(part for part in (result.level, said_by) if part),
        recurs=result.level not in ("L0", "L1"),
    )


def _version(compiler: str, result: LevelResult) -> str | None:
    """The compiler's version, as the level tells it."""
    told = result.environment
    named = told.get("compiler_version") if told.get("compiler") == compiler else None
    return named or told.get(compiler)


def _decisive(finding: Finding) -> Iterator[str]:
    """The reason, which has place and cause in one line, then every line of the detail."""
    yield finding.reason
    yield from (line for line in finding.detail.splitlines() if line.strip())


def _recurring(finding: Finding) -> Cause:
    """A fault of L2: the same check with the same kind of inputs."""
    told = finding.facts.get("kind")
    found = _PLACE.match(finding.reason)
    kind = str(told) if told is not None else found[1] if found is not None else ""
    check = finding.check.partition(".")[2].replace("_", " ")
    return Cause(
        kind=kind,
        statement=f"Kernels of this target have failed the check of {check}{f' with {kind} inputs' if kind else ''} "
        f"before: {finding.reason}",
        said_by_compiler=False,
    )


def widened(rule: str | None, lesson: Lesson) -> str | None:
    """A standing rule that also refuses what a lesson tells of; None where it does already, or would be too long."""
    if lesson.rule is None:
        return None
    if rule is None:
        return lesson.rule
    if lesson.rule in rule or rules.parse(rule).check(lesson.own) is False:
        return None
    both = f"{rule} and {lesson.rule}"
    return both if len(both) <= rules.LONGEST_RULE else None
