"""What a model is asked and what it answers: program, ask, reply, answer."""

from __future__ import annotations

from pydantic import Field

from kernelgen.config import Approach, Frozen, Name
from kernelgen.records.base import Id, Language
from kernelgen.records.constraints import Selection
from kernelgen.records.profiles import Profile
from kernelgen.records.regions import Champion, Position


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
    language: Language
    """Of its source."""
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


class Reply(Frozen, use_attribute_docstrings=True):
    """A model's parsed answer; the sentences under its fields describe the outputs to DSPy."""

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
