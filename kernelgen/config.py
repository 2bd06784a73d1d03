"""What `conf/` fills: the typed form of every config group. No Hydra import.

Each class is one folder of `conf/`. Unknown keys and wrong types are refused; `kernelgen.door.compose` turns the
refusal into a sentence with the place and the nearest right name. Units are in the names.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")]
Severity = Literal["hard", "soft", "positive"]
Dsl = Literal["triton", "tilelang", "cuda"]


class Frozen(BaseModel):
    """Base of all nouns: immutable, no unknown fields. Validators are built when first used: a command uses few."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class TensorSpec(Frozen):
    """One tensor of a target's interface."""

    name: Name
    """Argument or output name."""
    dtype: str
    """torch's name of the dtype, as in `bfloat16`."""
    shape: tuple[str | int, ...]
    """Extents: numbers, or expressions over the shape's dimensions such as `8*T`."""
    doc: str
    """One sentence: what it holds."""


class ScalarSpec(Frozen):
    """One number of a target's interface, passed by keyword like the tensors."""

    name: Name
    """Argument name."""
    type: Literal["float", "int"]
    """Python type."""
    doc: str
    """One sentence: what it is."""


class Tolerance(Frozen):
    """How far an output may lie from the reference."""

    rtol: float = Field(ge=0)
    """Relative tolerance, in the measure `reason` names."""
    atol: float = Field(ge=0)
    """Absolute tolerance for the worst element."""
    reason: str
    """Why these figures: the rounding that honest kernels show."""


class ShapeSets(Frozen):
    """Named shapes by use; a shape maps dimension names to extents."""

    smoke: dict[Name, dict[Name, int]]
    """Tiny: for the interpreter."""
    tune: dict[Name, dict[Name, int]]
    """Timed, and what profiles are taken at."""
    heldout: dict[Name, dict[Name, int]]
    """Only for L4."""
    edge: dict[Name, dict[Name, int]] = Field(default_factory=dict)
    """Odd and boundary sizes, small enough for a CPU: for L2."""

    def find(self, name: str) -> dict[str, int] | None:
        """The dimensions of the named shape in any set, or None."""
        for group in (self.tune, self.smoke, self.heldout, self.edge):
            if name in group:
                return group[name]
        return None

    def names(self) -> list[str]:
        """All shape names, tune first."""
        return [*self.tune, *self.smoke, *self.heldout, *self.edge]


class Target(Frozen):
    """A kernel region: `conf/target/`."""

    name: Name
    """The target's one name."""
    aliases: tuple[str, ...] = ()
    """Other names for it, such as flashinfer-bench's."""
    title: str
    """What it is, in a few words."""
    summary: str
    """The computation, with its formula, as a kernel author needs it."""
    entry_point: Name
    """Name of the host function a candidate must define; called with inputs and scalars by keyword."""
    inputs: tuple[TensorSpec, ...]
    """Tensors passed to the entry point, by keyword."""
    scalars: tuple[ScalarSpec, ...] = ()
    """Numbers passed to the entry point, by keyword."""
    outputs: tuple[TensorSpec, ...]
    """Tensors it returns, as a tuple in this order, newly allocated."""
    rules: tuple[str, ...] = ()
    """What else holds of a right answer, a sentence each."""
    shapes: ShapeSets
    """Shape sets."""
    profile_shape: Name
    """The tune shape that stands for one decode step: `headroom` counts at it."""
    input_kinds: tuple[Name, ...]
    """Input makers, such as plain, skewed, ragged, stressed."""
    exact_kinds: tuple[Name, ...] = ()
    """Those of them whose right answer has no rounding at all, such as small integers."""
    deterministic: bool = True
    """Whether two runs on the same inputs must agree bit for bit."""
    instructions: tuple[str, ...] = ()
    """Machine instructions of which an honest kernel has at least one, such as `QGMMA`; empty for no demand."""
    tolerance: dict[Name, Tolerance]
    """By output name."""
    calls_per_step: int = Field(gt=0)
    """Calls in one decode step of the model: layers that have this region."""
    module: str
    """Python with reference, inputs and cost: a dotted name, or `file.py` beside the yaml."""
    champion: str
    """The naive Triton champion: a path relative to the yaml, or `package:file`."""
    sources: dict[str, str] = Field(default_factory=dict)
    """Where figures and formulas come from."""


class Figure(Frozen):
    """A number with where it comes from."""

    value: float | int
    """In the unit its key names."""
    source: str
    """Datasheet, architecture guide, or measurement with date and method."""


class Hardware(Frozen):
    """A GPU: `conf/hardware/`. The source of architecture facts."""

    name: Name
    """Short name, as in `h200`."""
    title: str
    """The vendor's name, as in `NVIDIA H200 SXM`."""
    arch: str
    """Compiler target, as in `sm_90a`."""
    compute_capability: int
    """As Triton counts it: 90 for Hopper."""
    sm_count: Figure
    """Streaming multiprocessors."""
    warp_size: Figure
    """Threads in a warp."""
    max_warps_per_sm: Figure
    """Resident warps an SM holds at most."""
    max_threads_per_block: Figure
    """Threads in a block at most."""
    max_blocks_per_sm: Figure
    """Resident blocks an SM holds at most."""
    registers_per_sm: Figure
    """32-bit registers an SM has."""
    max_registers_per_thread: Figure
    """32-bit registers a thread can have at most."""
    shared_bytes_per_sm: Figure
    """Shared memory an SM has at most."""
    shared_bytes_per_block: Figure
    """Shared memory a block can have at most, opted in."""
    l2_bytes: Figure
    """L2 cache size."""
    dram_bytes: Figure
    """Device memory size."""
    dram_peak_bytes_per_s: Figure
    """Vendor's peak memory bandwidth."""
    dram_bytes_per_s: Figure
    """Ceiling the floors use: measured where known."""
    bf16_peak_flops_per_s: Figure
    """Vendor's dense peak, bf16 tensor cores."""
    bf16_flops_per_s: Figure
    """Ceiling the floors use: measured where known."""
    fp8_peak_flops_per_s: Figure | None
    """Vendor's dense peak, fp8 tensor cores; null where there are none."""
    fp8_flops_per_s: Figure | None
    """Ceiling the floors use: measured where known."""
    launch_floor_us: Figure
    """Time of an empty kernel in a CUDA graph, or the nearest known figure."""
    facts: tuple[ArchitectureFact, ...] = ()
    """Further facts of the architecture worth a hard constraint: those no figure above implies."""


class ArchitectureFact(Frozen):
    """A fact of the architecture that is not a figure."""

    id: Name
    """Short name, unique within the hardware."""
    statement: str
    """The fact, as an instruction a kernel author can follow."""
    source: str
    """Where it comes from."""
    dsl: Dsl | None = None
    """Only for this DSL, or for all."""
    rule: str | None = None
    """Where possible a predicate, in the language of `kernelgen.constraints.rules`."""


class Approach(Frozen):
    """One of the six states: `conf/state/`."""

    number: int = Field(ge=0, le=5)
    """0 to 5."""
    name: str
    """The specification's name of the approach."""
    description: str
    """The specification's description of it."""
    dsl: Dsl
    """What a candidate of this state is written in."""
    instructions: str
    """What to do, for the model."""
    may_change: tuple[str, ...]
    """What a candidate may change against the champion."""
    look_at: tuple[str, ...]
    """What is worth looking at first."""
    needs: tuple[Literal["pr", "parts"], ...] = ()
    """Further inputs without which this state is refused."""


class AutoState(Frozen):
    """`state=auto`: follow the state vector."""

    number: Literal["auto"]
    """Always `auto`."""


class AutoTarget(Frozen):
    """`target=auto`: the first row of `kernelgen headroom`."""

    name: Literal["auto"]
    """Always `auto`."""


class Policy(Frozen):
    """Rules of the loop that a team may set otherwise: `conf/policy/`."""

    name: Name
    """The policy's name."""
    failures_before_advancing: int = Field(gt=0)
    """Failed generations or verdicts in a state after which the state vector moves on."""
    after_promotion: Literal["stay", "restart"]
    """What a promotion does to the state vector: stay where it won, or begin at state 0 from the new champion."""
    constraint_tokens: int = Field(gt=0, le=2000)
    """Budget of the injected constraints; the specification's bound is 2000."""
    encoding: Literal["o200k_base", "cl100k_base"]
    """The offline encoding that counts them."""
    reply_attempts: int = Field(gt=0)
    """How often a reply is asked for in all, when it cannot be parsed."""
    attempts_shown: int = Field(ge=0)
    """Past attempts told in [STATE VECTOR], the latest first."""
    minimum_effect: float = Field(gt=0, lt=1)
    """Smallest relative speedup that counts as one."""
    largest_loss: float = Field(default=0.02, ge=0, lt=1)
    """Largest relative loss on any held-out shape that a promotion may have."""
    benchmark_pairs: int = Field(default=30, ge=5)
    """Interleaved pairs of measurements of candidate and champion for each shape."""
    floor_share: float = Field(default=0.95, gt=0)
    """Share of its floor from which a region counts as done."""
    candidates_per_iteration: int = Field(default=1, ge=1, le=64)
    """Candidates that a campaign asks for in one iteration."""
    adopt_proposals: bool = True
    """Whether what a failure teaches becomes a constraint at once, or waits for `kernelgen constraints adopt`."""
    recurs_after: int = Field(default=2, gt=0)
    """Equal L2 failures of a region after which they become a soft constraint."""
    level_timeout_s: float = Field(default=600, gt=0)
    """Longest time one level of the ladder may take for one candidate."""
    allow: tuple[str, ...] = ()
    """Checks of L0 that are not made, by id, such as `policy.similar`."""
    deny: tuple[str, ...] = ()
    """Further names no candidate may use, such as `torch.compile` or `mylib`."""
    similarity: float = Field(default=0.9, gt=0, le=1)
    """Share of a candidate's tokens in common with a known kernel from which it is suspect."""


class LmConfig(Frozen):
    """A door to a language model: `conf/lm/`."""

    name: Name
    """The choice's name."""
    door: Literal["playbook", "openai_compatible", "recorded", "anthropic", "gemini"]
    """Which door answers."""
    model: str
    """The model's name at that door."""
    api_base: str | None = None
    """Base URL of the endpoint, up to where the provider's own paths begin."""
    dialect: Literal["openai", "ollama", "vllm", "sglang", "openrouter"] | None = None
    """Whose kind of chat completions an OpenAI-compatible endpoint speaks; null for what all of them share."""
    key_env: str | None = None
    """Name of the environment variable that holds the key; never the key itself."""
    temperature: float | None = None
    """Sampling temperature; null leaves it to the provider."""
    max_tokens: int | None = Field(default=None, gt=0)
    """Longest reply, in the provider's tokens."""
    seed: int | None = None
    """Sampling seed, where the provider takes one."""
    reasoning_effort: Literal["off", "minimal", "low", "medium", "high"] | None = None
    """How much a reasoning model thinks before it answers; null leaves it to the provider."""
    timeout_s: float = Field(default=600, gt=0)
    """Longest wait for one reply."""
    retries: int = Field(default=2, ge=0)
    """Further tries after an error that may be retried."""
    max_calls: int | None = Field(default=None, gt=0)
    """Budget: replies that a log may hold of this choice; null for no limit."""
    max_total_tokens: int | None = Field(default=None, gt=0)
    """Budget: input and output tokens that they may have taken together."""
    max_usd: float | None = Field(default=None, gt=0)
    """Budget: what they may have cost; needs known prices."""
    usd_per_million_input_tokens: float | None = None
    """Price, where known; null says unknown."""
    usd_per_million_output_tokens: float | None = None
    """Price, where known; null says unknown."""
    price_source: str | None = None
    """Where the prices come from, with the date."""

    @model_validator(mode="after")
    def _prices_have_a_source(self) -> LmConfig:
        priced = self.usd_per_million_input_tokens is not None or self.usd_per_million_output_tokens is not None
        if priced and not self.price_source:
            raise ValueError("a price needs price_source")
        return self


class ProgramConfig(Frozen):
    """A prompt program: `conf/program/`."""

    name: Name
    """The program's name."""
    file: str
    """DSPy's saved state, a path relative to the yaml."""


class GenerateConfig(Frozen):
    """Everything one generation is asked with."""

    target: Target | AutoTarget
    """Which region."""
    hardware: Hardware
    """On which GPU."""
    state: Approach | AutoState
    """Which approach."""
    lm: LmConfig
    """Which model."""
    policy: Policy
    """Which rules."""
    program: ProgramConfig
    """Which prompt program."""
    shape: Name | None = None
    """Profile shape to ask for; null takes the latest profile."""
    pr: str | None = None
    """State 4: the diff file."""
    parts: str | None = None
    """State 5: the parts file."""
    n: int = Field(default=1, ge=1, le=64)
    """Candidates to ask one prompt for, at the same time; each is an iteration of its own."""
    judge: Literal["none", "L0", "L1", "L2"] = "L2"
    """How far up the ladder a candidate is taken at once, as far as this machine can tell; none leaves it unjudged."""
    learned: bool = True
    """Whether the prompt and the rules have what verdicts taught; false leaves what needs no verdict."""
    events: str = "events.db"
    """The event log."""
    constraints: str = "constraints.jsonl"
    """The constraint file."""
    out: str = "."
    """Candidates go to `{out}/scripts/kernels/{target}/`."""


Hardware.model_rebuild()
