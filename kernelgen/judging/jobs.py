"""What L3 and L4 are asked, from the nouns to the ladder's plain data: rival, ceilings, settings, one job.

The rival is the region's champion of this moment; its digest travels with every figure measured against it.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace

from kernelgen import champions
from kernelgen.catalog import Catalog
from kernelgen.config import Dsl, Hardware, Policy, Target
from kernelgen.eventlog.store import EventLog
from kernelgen.generation import region
from kernelgen.ids import digest_text
from kernelgen.judging.problems import JudgedSolution
from kernelgen.judging.subjects import Judged
from kernelgen.ladder.benchmark.terms import Ceilings
from kernelgen.ladder.subject import Subject
from kernelgen.ladder.work.jobs import Clock, Job, Rival, Settings, WorkLevel
from kernelgen.records import Champion
from kernelgen.targets.code import champion_source

SEEDED = ("L2", "L3", "L4")
"""Levels with inputs of their own: what one has measured, no other one has."""
SEED_DIGITS = 15
"""Longest seed, in decimal digits: it fits every random generator's 64 bits."""
SEEDS = 10**SEED_DIGITS
FP8 = "float8"


@dataclass(frozen=True)
class Rivals:
    """Finds what a candidate has to beat."""

    log: EventLog
    """Where champions are named."""
    catalog: Catalog
    """Where targets have their naive ones."""

    def of(self, judged: Judged) -> Rival | None:
        """The region's champion; None for a solution to somebody else's problem, which has none."""
        if isinstance(judged, JudgedSolution):
            return None
        champion = self.champion(judged.target, judged.hardware.name)
        return rival(champion, judged)

    def champion(self, target: Target, hardware: str) -> Champion:
        """The kernel to beat. Raises BadInput where the target's own one cannot be read."""
        named = region.named_champion(self.log, target.name, hardware)
        return self.naive(target.name, hardware) if named is None else named

    def naive(self, target: str, hardware: str) -> Champion:
        """The champion that a target brings along. Raises BadInput where it cannot be read."""
        found, located = self.catalog.target(target)
        source = champion_source(found.champion, located.folder)
        return champions.naive(target, hardware, found.entry_point, source)


def rival(champion: Champion, judged: Judged) -> Rival:
    """A champion as what a candidate is measured against."""
    subject = Subject(
        name=champion.id,
        language=champion.language,
        dsl=dsl_of(champion.source, champion.language),
        source=champion.source,
        preamble="",
        entry_point=champion.entry_point,
        goal=judged.subject.goal,
    )
    return Rival(champion.id, digest_text(champion.source), subject)


def dsl_of(source: str, language: str) -> Dsl:
    """What compiles a source that stands for itself."""
    if language == "cuda":
        return "cuda"
    return "tilelang" if "tilelang" in source else "triton"


def settings_of(policy: Policy, level: WorkLevel, clock: Clock = "gpu") -> Settings:
    """What a policy says of the levels above L0."""
    return Settings(
        level=level,
        timeout_s=policy.level_timeout_s,
        pairs=policy.benchmark_pairs,
        minimum_effect=policy.minimum_effect,
        largest_loss=policy.largest_loss,
        clock=clock,
    )


def ceilings_of(hardware: Hardware, target: Target) -> Ceilings:
    """What a GPU can do: the measured rates for floors, the vendor's highest for what is impossible."""
    fp8, fp8_peak = hardware.fp8_flops_per_s, hardware.fp8_peak_flops_per_s
    by_fp8 = any(tensor.dtype.startswith(FP8) for tensor in target.inputs)
    measured = fp8 if by_fp8 and fp8 is not None else hardware.bf16_flops_per_s
    peaks = [float(peak.value) for peak in (hardware.bf16_peak_flops_per_s, fp8_peak) if peak is not None]
    return Ceilings(
        bytes_per_s=float(hardware.dram_bytes_per_s.value),
        flops_per_s=float(measured.value),
        peak_bytes_per_s=float(hardware.dram_peak_bytes_per_s.value),
        peak_flops_per_s=max(peaks),
    )


def job_of(judged: Judged, champion: Rival | None, seed: int, *, number: int = 1) -> Job:
    """One candidate's job; from one seed come those of its levels."""
    return Job(
        number=number,
        iteration_id=judged.iteration_id,
        hardware=judged.hardware.name,
        gpu=judged.hardware.title,
        digest=judged_digest(judged),
        subject=judged.subject,
        seeds={level: (seed + place) % SEEDS for place, level in enumerate(SEEDED)},
        champion=champion,
        ceilings=ceilings_of(judged.hardware, judged.target),
    )


def judged_text(judged: Judged) -> str:
    """The text that is judged: the model's part with the table it refers to."""
    return judged.subject.preamble + judged.subject.source


def judged_digest(judged: Judged) -> str:
    """Its digest, as a verdict's event has it."""
    return digest_text(judged_text(judged))


def new_seed() -> int:
    """A seed that nobody knew before."""
    return secrets.randbelow(SEEDS)


def moved(job: Job, module: str, folder: str | None) -> Job:
    """The job with its target's module at another place, the champion's goal too."""

    def at(subject: Subject) -> Subject:
        return replace(subject, goal=replace(subject.goal, module=module, folder=folder))

    champion = None if job.champion is None else replace(job.champion, subject=at(job.champion.subject))
    return replace(job, subject=at(job.subject), champion=champion)
