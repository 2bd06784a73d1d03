"""What a measured verdict tried, as the log knows it, and what its measurement teaches or contradicts.

A verdict that is suspect teaches nothing; one whose figures have another form does not either, nor does one measured
against a kernel that the log does not have.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernelgen import champions
from kernelgen.config import Dsl
from kernelgen.constraints import gains
from kernelgen.constraints.distil import COMPILERS, Lesson
from kernelgen.constraints.gains import Trial
from kernelgen.constraints.measured import MEASURED, Comparison, read_comparison
from kernelgen.errors import BadInput
from kernelgen.eventlog.chain import Row
from kernelgen.eventlog.store import EventLog
from kernelgen.events import CandidateGenerated, ChampionNamed, GenerationRequested, VerdictReached
from kernelgen.ids import digest_text
from kernelgen.judging.lessons import Regions, dsl_of
from kernelgen.records import Champion, Level, LevelResult, Profile


@dataclass(frozen=True)
class _Rival:
    """What a candidate was measured against."""

    source: str
    """Its source."""
    dsl: Dsl
    """cuda, or triton for any Python."""


@dataclass(frozen=True)
class _Measured:
    """A verdict that rests on a measurement."""

    trial: Trial
    """What was tried."""
    tune: Comparison
    """L3."""
    held_out: Comparison | None
    """L4; None where it was not reached."""
    l3: LevelResult
    """What L3 found."""
    l4: LevelResult | None
    """What L4 found."""

    def failed(self, check: str) -> bool:
        """Whether a check of this name, or beginning so, decided against it."""
        last = self.l4 or self.l3
        return last.outcome == "failed" and bool(last.findings) and last.findings[0].check.startswith(check)


def measured_lessons(row: Row, log: EventLog, regions: Regions) -> list[Lesson]:
    """What the measurements of a verdict teach."""
    found = _measured(row, log, regions)
    if found is None:
        return []
    if found.failed(gains.SLOWER):
        return [gains.regression(found.trial, found.tune)]
    if found.held_out is None or found.l4 is None:
        return []
    if found.failed(gains.NOT_HELD):
        return [gains.not_held(found.trial, found.tune, found.held_out)]
    return [gains.pattern(found.trial, found.tune, found.held_out)] if found.l4.outcome == "passed" else []


def contradicted(row: Row, log: EventLog, regions: Regions) -> list[str]:
    """Fingerprints of the lessons that the measurements of a verdict speak against."""
    found = _measured(row, log, regions)
    if found is None:
        return []
    if found.failed(gains.NO_DIFFERENCE):
        against = gains.spoken_against(found.trial, found.tune, faster=False, held=None)
        return [*against, gains.no_difference(found.trial)]
    if found.failed(gains.SLOWER):
        return gains.spoken_against(found.trial, found.tune, faster=False, held=None)
    if found.l3.outcome != "passed":
        return []
    held = None
    if found.l4 is not None and found.l4.outcome == "passed":
        held = True
    elif found.failed(gains.NOT_HELD):
        held = False
    return gains.spoken_against(found.trial, found.tune, faster=True, held=held)


def compiler_version(row: Row, log: EventLog) -> tuple[str, str | None]:
    """The compiler of a measured candidate and its version, where the verdict tells it."""
    event = row.event
    assert isinstance(event, VerdictReached)
    source = None if event.source is None else log.text(event.source)
    compiler = COMPILERS[dsl_of(event, source)]
    told = [result.environment.get(compiler) for result in event.verdict.levels if result.level in MEASURED]
    return compiler, next((version for version in told if version), None)


def _measured(row: Row, log: EventLog, regions: Regions) -> _Measured | None:
    event = row.event
    assert isinstance(event, VerdictReached)
    results = {result.level: result for result in event.verdict.levels}
    refused = event.verdict.refused()
    if "L3" not in results or "L3" not in event.details or event.source is None:
        return None
    if refused is not None and refused.outcome == "suspect":
        return None
    try:
        tune = read_comparison(log.text(event.details["L3"]))
        held_out = read_comparison(log.text(event.details["L4"])) if "L4" in event.details else None
    except BadInput:
        return None
    rival = _rival(tune, event, log, regions)
    if rival is None:
        return None
    return _Measured(_trial(event, rival, log, regions), tune, held_out, results["L3"], results.get("L4"))


def _rival(measured: Comparison, event: VerdictReached, log: EventLog, regions: Regions) -> _Rival | None:
    """The champion that a candidate was measured against; None where no champion of the region is that."""
    known = []
    if measured.champion_id == champions.NAIVE and (naive := regions.naive(event.target)) is not None:
        known = [_Rival(naive, "triton")]
    for row in log.rows(kinds=("champion_named",), target=event.target, hardware=event.hardware):
        assert isinstance(row.event, ChampionNamed)
        if row.event.champion_id == measured.champion_id:
            champion = Champion.model_validate_json(log.text(row.event.champion))
            known.append(_Rival(champion.source, "cuda" if champion.language == "cuda" else "triton"))
    return next((one for one in known if digest_text(one.source) == measured.champion_digest), None)


def _trial(event: VerdictReached, rival: _Rival, log: EventLog, regions: Regions) -> Trial:
    assert event.source is not None
    events = [row.event for row in log.iteration(event.iteration_id)]
    asked = next((one for one in events if isinstance(one, GenerationRequested)), None)
    generated = next((one for one in events if isinstance(one, CandidateGenerated)), None)
    hardware, source = regions.hardware(event.hardware), log.text(event.source)
    dsl = dsl_of(event, source)
    return Trial(
        target=event.target,
        hardware=event.hardware,
        title=event.hardware if hardware is None else hardware.title,
        dsl=dsl,
        state=event.state,
        hypothesis="" if generated is None else generated.hypothesis,
        source=source,
        rival_source=rival.source,
        rival_dsl=rival.dsl,
        profile="" if asked is None else _profile(asked, log),
        versions=_versions(event, COMPILERS[dsl]),
    )


def _profile(asked: GenerationRequested, log: EventLog) -> str:
    """What the profile said, in a phrase."""
    if "profile" not in asked.ask:
        return ""
    profile = Profile.model_validate_json(log.text(asked.ask["profile"]))
    return f"{profile.bottleneck.replace('_', ' ')} by {profile.limiting_factor.name} at {profile.shape}"


def _versions(event: VerdictReached, compiler: str) -> str:
    """Compiler and torch of the measurement, in a phrase."""
    measuring: tuple[Level, ...] = ("L3", "L4")
    environment = {k: v for r in event.verdict.levels if r.level in measuring for k, v in r.environment.items()}
    return ", ".join(f"{name} {environment[name]}" for name in (compiler, "torch") if name in environment)
