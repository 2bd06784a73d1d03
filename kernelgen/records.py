"""The nouns that pass between the parts: frozen, typed, and each able to name its digest.

Config nouns (target, hardware, approach, policy) are in `kernelgen.config`. A figure nobody measured is None here and
reads "not measured" wherever a person or a model sees it.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from kernelgen.config import Approach, Dsl, Frozen, Name, Severity
from kernelgen.ids import canonical_json, digest_text

Digest = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
Id = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_.-]{0,127}$")]
Language = Literal["python", "cuda"]
Bottleneck = Literal["memory_bound", "compute_bound", "latency_bound", "underutilised", "at_roofline"]
Level = Literal["L0", "L1", "L2", "L3", "L4"]


def to_text(record: Frozen) -> str:
    """The record's canonical JSON, the form that is stored and hashed."""
    return canonical_json(record.model_dump(mode="json"))


def digest(record: Frozen) -> str:
    """Digest of `to_text`."""
    return digest_text(to_text(record))


# ---- constraints ----


class Scope(Frozen):
    """Where a constraint holds; None means everywhere."""

    target: str | None = None
    """Target name."""
    hardware: str | None = None
    """Hardware name."""
    dsl: Dsl | None = None
    """DSL of the candidate."""
    state: int | None = Field(default=None, ge=0, le=5)
    """State number."""
    compiler: str | None = None
    """For what a compiler said: its name, as in `triton`."""
    compiler_version: str | None = None
    """And its version."""


class Evidence(Frozen):
    """What a constraint rests on."""

    events: tuple[Id, ...] = ()
    """Ids of the events that show it."""
    lines: tuple[str, ...] = ()
    """The decisive lines of the log, uncut."""


class Constraint(Frozen):
    """One line of `constraints.jsonl`: what a candidate must, should not, or did well to do."""

    id: Id
    """Unique; a line without one is named after its content."""
    severity: Severity
    """hard: cannot be overridden. soft: avoid without a reason. positive: worked before."""
    statement: str = Field(min_length=1)
    """One sentence a kernel author can follow."""
    scope: Scope = Scope()
    """Where it holds."""
    evidence: Evidence = Evidence()
    """What it rests on."""
    source: str = ""
    """Where it comes from: a datasheet, a level of the ladder, a person."""
    architecture: bool = False
    """An architecture fact: the last of the hard ones to give way."""
    time: str = ""
    """ISO 8601 UTC; empty sorts as oldest."""
    rule: str | None = None
    """Where possible a predicate a program can check, in the language of `kernelgen.constraints.rules`."""


class Retraction(Frozen):
    """A line of `constraints.jsonl` that withdraws an earlier one."""

    id: Id
    """Unique."""
    retracts: Id
    """Id of the constraint that no longer holds."""
    why: str = Field(min_length=1)
    """One sentence."""
    time: str = ""
    """ISO 8601 UTC."""


class SelectedConstraint(Frozen):
    """One entry of the prompt: a constraint, or several that say the same, merged."""

    ids: tuple[Id, ...]
    """Ids merged into this entry, the most recent first."""
    severity: Severity
    """Of all of them."""
    statement: str
    """As the most recent one puts it."""
    evidence: str
    """The evidence in one line, or empty."""
    rule: str | None = None
    """The checkable rule, if there is one."""
    tokens: int
    """Tokens of the rendered line."""


class Selection(Frozen):
    """What is injected of the constraints, and what is left out."""

    chosen: tuple[SelectedConstraint, ...]
    """In the order of the prompt: hard, soft, positive; within each by recency."""
    left_out: tuple[Id, ...]
    """Ids that hold here but did not fit the budget."""
    considered: int
    """Constraints that hold here, before merging and budget."""
    tokens: int
    """Tokens of the rendered [CONSTRAINTS] body."""
    budget: int
    """Tokens allowed."""
    encoding: str
    """What counted them."""


# ---- profile ----


class Launch(Frozen):
    """One kernel launch of a profile."""

    name: str
    """The kernel's name as the profiler gives it."""
    time_us: float
    """Duration."""
    dram_bytes: float | None
    """Bytes moved to and from device memory."""
    grid: str
    """As the profiler prints it."""
    block: str
    """As the profiler prints it."""


class LimitingFactor(Frozen):
    """What holds the region back, and the metric that says so."""

    name: str
    """Such as `DRAM bandwidth` or `long scoreboard stalls`."""
    metric: str
    """The raw metric's name."""
    value: float
    """Its value."""
    unit: str
    """Its unit, as the profiler gives it."""
    sentence: str
    """One sentence for the prompt."""


class Profile(Frozen):
    """Where the time goes in a region."""

    id: Id
    """Of this import."""
    target: str
    """Target name."""
    hardware: str
    """Hardware name."""
    shape: str
    """The target's shape it was taken at."""
    dims: dict[str, int]
    """That shape's dimensions."""
    subject: str
    """What was profiled, in a phrase: the champion's id and kernel names, or what ran instead of it."""
    subject_source_digest: Digest | None
    """Digest of the champion source that was profiled; None when it was something else."""
    source_file: str
    """File name, without folders."""
    source_digest: Digest
    """Digest of the file's bytes."""
    format: str
    """Such as `ncu raw csv`."""
    device: str
    """The device as the profiler names it, or empty."""
    launches: tuple[Launch, ...]
    """The launches summed as the region, in order."""
    dominant: int
    """Index of the launch that takes most time."""
    time_us: float
    """Sum over the launches."""
    dram_bytes: float | None
    """Sum over the launches."""
    flops: float
    """Of the region by the target's formula."""
    floor_bytes: float
    """Of the region by the target's formula."""
    floor_us: float
    """The larger of bytes over bandwidth, flops over peak, and the launch floor."""
    floor_by: str
    """Which of the three, as in `dram bytes`."""
    dram_percent: float | None
    """DRAM throughput over the region, percent of the hardware's ceiling."""
    sm_percent: float | None
    """SM throughput, time-weighted percent of peak."""
    occupancy_percent: float | None
    """Achieved occupancy, time-weighted."""
    intensity: float
    """FLOPs a byte, by the target's formulas."""
    ridge: float
    """FLOPs a byte at which the hardware's roofline turns."""
    bottleneck: Bottleneck
    """Class of the region."""
    limiting_factor: LimitingFactor
    """What limits it."""
    target_metric: str
    """What to improve, with figure and goal."""
    raw: Digest
    """Digest of the stored text with every launch's raw metric names, units and values."""


# ---- champion ----


class Measured(Frozen):
    """Figures of a kernel at one shape, by one recipe."""

    shape: str
    """The target's shape."""
    time_us: float
    """Median."""
    tflops: float
    """By the target's formula."""
    gbytes_per_s: float
    """By the target's formula."""
    occupancy_percent: float | None
    """Where a profiler said so."""
    source: str
    """Event id, or file and date, of the measurement."""


class Champion(Frozen):
    """The best promoted kernel of a target on a hardware."""

    id: Id
    """Iteration id, import id, or `naive`."""
    target: str
    """Target name."""
    hardware: str
    """Hardware name."""
    origin: Literal["naive", "imported", "promoted"]
    """How it became champion."""
    language: Language
    """Of the source."""
    entry_point: str
    """Host function."""
    source: str
    """The whole source."""
    figures: tuple[Measured, ...] = ()
    """What was measured of it; empty means nothing was."""


# ---- position ----


class Attempt(Frozen):
    """One earlier generation of a target on a hardware."""

    iteration_id: Id
    """Of the generation."""
    state: int
    """Its state."""
    outcome: Literal["candidate", "failed", "promoted", "no_gain"]
    """candidate: written and not judged further; failed: no candidate, or it failed a level."""
    reason: str
    """What failed and why, in a sentence; for a candidate its hypothesis."""
    level: Level | None = None
    """Highest level passed, or the one that failed."""
    configs: str = ""
    """The autotune configs it tried, as canonical JSON, so that they are not tried again."""


class Position(Frozen):
    """Where the state vector of a target on a hardware stands, and what was tried."""

    target: str
    """Target name."""
    hardware: str
    """Hardware name."""
    state: int | None
    """The state to take next; None when all six are used up."""
    chosen_by: Literal["vector", "user"]
    """Whether the vector or a number from the user chose it."""
    failures: dict[str, int]
    """Failures by state number since the vector last moved there."""
    attempts: tuple[Attempt, ...]
    """The latest earlier attempts, oldest first, as many as the policy shows."""
    attempts_total: int
    """Earlier attempts in all."""
    frozen: str | None
    """Why the region is frozen, or None."""


# ---- program, request, reply ----


class Demonstration(Frozen):
    """An earlier message pair, shown before the request."""

    user: str
    """What was asked."""
    assistant: str
    """What a good answer was, in the reply format."""


class Program(Frozen):
    """The optimisable part of the prompt."""

    name: Name
    """The program's name."""
    instructions: str
    """System text after the specification's fixed first sentence."""
    demonstrations: tuple[Demonstration, ...]
    """Message pairs."""


class PullRequest(Frozen):
    """State 4's input: one upstream change."""

    repository: str
    """As in `sgl-project/sglang`."""
    number: int
    """Pull request number."""
    licence: str
    """SPDX identifier."""
    diff: str
    """The unified diff."""


class Part(Frozen):
    """One promoted champion of a composition."""

    target: str
    """Its target."""
    champion: Id
    """Its id."""
    source: str
    """Its source."""


class Parts(Frozen):
    """State 5's input: promoted champions and a composed reference."""

    champions: tuple[Part, ...]
    """The kernels to combine."""
    reference: str
    """Source of the composed PyTorch reference."""


class Ask(Frozen):
    """The typed inputs of the prompt: with a program, all that its text depends on."""

    target: TargetBrief
    """What to write."""
    hardware: HardwareBrief
    """Where it runs."""
    approach: Approach
    """How to go about it."""
    selection: Selection
    """The injected constraints."""
    profile: Profile
    """Where the time goes."""
    champion: Champion
    """What to beat."""
    position: Position
    """What was tried."""
    pr: PullRequest | None = None
    """State 4."""
    parts: Parts | None = None
    """State 5."""


class TargetBrief(Frozen):
    """The part of a target that the prompt tells: no reference, no inputs, no held-out shapes."""

    name: Name
    """Target name."""
    title: str
    """In a few words."""
    summary: str
    """The computation."""
    signature: str
    """The entry point as a Python signature with a line for each tensor."""
    entry_point: Name
    """Host function to define."""
    rules: tuple[str, ...]
    """What else holds."""
    tolerance: dict[str, str]
    """By output: rtol, atol and the reason, in a phrase."""
    tune: dict[str, dict[str, int]]
    """Timed shapes."""


class HardwareBrief(Frozen):
    """The part of a hardware that the prompt tells."""

    name: Name
    """Short name."""
    title: str
    """Vendor's name."""
    arch: str
    """Compiler target."""


class KernelSource(Frozen):
    """A kernel as the model wrote it."""

    language: Language
    """Of the code."""
    code: str
    """Complete source, byte for byte, ending in one newline."""
    entry_point: Name
    """The host function it defines."""


class AutotuneConfig(Frozen):
    """One Triton configuration of one kernel."""

    kwargs: dict[str, int | bool | str]
    """Values of the kernel's constexpr parameters."""
    num_warps: int = Field(default=4, gt=0)
    """Warps a block."""
    num_stages: int = Field(default=3, gt=0)
    """Software pipeline stages."""


class Override(Frozen):
    """A soft constraint set aside."""

    id: Id
    """Its id."""
    reason: str = Field(min_length=1)
    """Why."""


class Reply(Frozen):
    """A model's parsed answer."""

    hypothesis: str = Field(min_length=1)
    """Why this should be faster, falsifiable."""
    kernel: KernelSource
    """The kernel."""
    autotune: dict[str, tuple[AutotuneConfig, ...]] = Field(default_factory=dict)
    """By kernel name; empty for no search, and always for CUDA."""
    honoured: tuple[Id, ...] = ()
    """Constraint ids the model says it kept."""
    overrides: tuple[Override, ...] = ()
    """Soft constraints it set aside."""


class Usage(Frozen):
    """What a reply took."""

    input_tokens: int | None
    """As the provider counts them; None when it did not say."""
    output_tokens: int | None
    """As the provider counts them."""
    cost_usd: float | None
    """None when the price is unknown."""
    seconds: float
    """Wall time of the call, retries included."""


class Answer(Frozen):
    """A model's raw answer to one prompt."""

    text: str
    """The reply, unparsed."""
    model: str
    """The model that answered, as the provider names it."""
    finish_reason: str
    """As the provider names it; `length` means truncated."""
    usage: Usage
    """What it took."""


class CandidateFile(Frozen):
    """One file of a candidate."""

    path: str
    """Relative to the out folder, with forward slashes."""
    text: str
    """Whole content."""


# ---- verdict ----


class LevelResult(Frozen):
    """What one level of the ladder found."""

    level: Level
    """Which level."""
    outcome: Literal["passed", "failed", "inconclusive"]
    """inconclusive: this machine cannot tell."""
    reason: str
    """In a sentence; for a failure the decisive line."""


class Verdict(Frozen):
    """How far up the ladder a candidate came."""

    iteration_id: Id
    """The candidate."""
    levels: tuple[LevelResult, ...]
    """In order, as far as it was taken; a level that is absent was not reached."""
    speedup: float | None = None
    """Champion's time over the candidate's, geometric mean over the shapes; only with L3."""

    @model_validator(mode="after")
    def _speedup_needs_l3(self) -> Verdict:
        if self.speedup is not None and not any(r.level == "L3" for r in self.levels):
            raise ValueError("a speedup needs an L3 result")
        return self

    def failed(self) -> LevelResult | None:
        """The first level that failed, or None."""
        return next((r for r in self.levels if r.outcome == "failed"), None)


Ask.model_rebuild()
