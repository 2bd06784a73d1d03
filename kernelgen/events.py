"""The kinds of event, one small class each, and the tagged union of them all.

An event says what happened and never changes. Long texts are not in it: the fields a class lists in `stored` hold
digests of texts that are stored once, by content. Whatever kernelgen knows it folds from these (`kernelgen.state`,
`freeze`, `champions`).
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, get_args

from pydantic import Field, TypeAdapter

from kernelgen.config import Frozen
from kernelgen.records import Constraint, Digest, Id, Level, Retraction, Usage, Verdict


class EventBase(Frozen):
    """Base of the kinds."""

    stored: ClassVar[tuple[str, ...]] = ()
    """Fields that hold a digest, or a dict of digests, of stored texts."""


class ConstraintAdded(EventBase):
    """A line of the constraint file was first used."""

    kind: Literal["constraint_added"] = "constraint_added"
    constraint: Constraint
    line: Digest
    """Of the line's text as it stands in the file."""


class ConstraintRetracted(EventBase):
    """A retraction line of the constraint file was first used."""

    kind: Literal["constraint_retracted"] = "constraint_retracted"
    retraction: Retraction
    line: Digest
    """Of the line's text as it stands in the file."""


class ProfileImported(EventBase):
    """A profile was imported."""

    stored: ClassVar[tuple[str, ...]] = ("profile", "raw")
    kind: Literal["profile_imported"] = "profile_imported"
    target: str
    hardware: str
    shape: str
    profile: Digest
    """Of the Profile record."""
    raw: Digest
    """Of the raw metrics."""


class ChampionNamed(EventBase):
    """A kernel became the one to beat: imported by a user, or promoted at L4."""

    stored: ClassVar[tuple[str, ...]] = ("champion",)
    kind: Literal["champion_named"] = "champion_named"
    target: str
    hardware: str
    champion_id: Id
    origin: Literal["imported", "promoted"]
    champion: Digest
    """Of the Champion record."""
    parent: Id | None = None
    """The champion it beat, `naive` for the target's own; None for an imported one, which beat none."""
    verdict: Id | None = None
    """Event of the verdict that promoted it; None for an imported one."""


class ChampionRetracted(EventBase):
    """A champion proved wrong: the one before it holds again, and what was measured against it counts no more."""

    kind: Literal["champion_retracted"] = "champion_retracted"
    target: str
    hardware: str
    champion_id: Id
    why: str


class RegionFrozen(EventBase):
    """No more candidates for this target on this hardware, until unfrozen."""

    kind: Literal["region_frozen"] = "region_frozen"
    target: str
    hardware: str
    why: str


class RegionUnfrozen(EventBase):
    """Candidates again."""

    kind: Literal["region_unfrozen"] = "region_unfrozen"
    target: str
    hardware: str
    why: str


class GenerationRequested(EventBase):
    """All that a generation depends on, before the model is asked. Digests name stored texts."""

    stored: ClassVar[tuple[str, ...]] = ("config", "constraint_set", "selection", "ask", "program", "messages")
    kind: Literal["generation_requested"] = "generation_requested"
    iteration_id: Id
    target: str
    hardware: str
    state: int
    chosen_by: Literal["vector", "user"]
    lm: str
    """Name of the lm choice."""
    program_name: str
    """Name of the program."""
    config: Digest
    """The resolved GenerateConfig."""
    overrides: tuple[str, ...]
    """The overrides of the command line that led to it."""
    constraint_set: Digest
    """JSON list of the ids of all constraints active then."""
    selection: Digest
    """The Selection made of them, which names what was left out."""
    ask: dict[str, Digest]
    """The records of the Ask by field name, its selection aside: that is made again from the constraint set."""
    program: Digest
    """The Program record."""
    messages: Digest
    """JSON list of {role, content}."""
    model: str
    """The model asked."""
    parameters: str
    """Canonical JSON of the sampling parameters."""
    versions: str
    """Canonical JSON: kernelgen, python, dspy."""
    out: str
    """The out folder, absolute: where the candidate goes, also when it is written after a kill."""


class GenerationRefused(EventBase):
    """A request was refused before the model was asked."""

    kind: Literal["generation_refused"] = "generation_refused"
    target: str
    hardware: str
    state: int | None
    reason: str
    overrides: tuple[str, ...]


class ReplyReceived(EventBase):
    """A model's raw answer, appended before it is parsed."""

    stored: ClassVar[tuple[str, ...]] = ("messages", "text")
    kind: Literal["reply_received"] = "reply_received"
    iteration_id: Id
    target: str
    hardware: str
    attempt: int
    """1 for the first answer."""
    messages: Digest
    """What was asked in this attempt."""
    request_key: Digest
    """Of model, parameters and messages: what `lm=recorded` looks up."""
    text: Digest
    """The answer."""
    model: str
    finish_reason: str
    usage: Usage


class GenerationFailed(EventBase):
    """A generation ended without a candidate."""

    kind: Literal["generation_failed"] = "generation_failed"
    iteration_id: Id
    target: str
    hardware: str
    state: int
    cause: Literal[
        "no_play",
        "unusable_reply",
        "model_error",
        "interrupted",
        "timeout",
        "rate_limited",
        "context_overflow",
        "refused",
        "empty_reply",
        "over_budget",
    ]
    reason: str


class CandidateGenerated(EventBase):
    """A reply became a candidate; its files are stored here first and then written to the out folder."""

    stored: ClassVar[tuple[str, ...]] = ("files",)
    kind: Literal["candidate_generated"] = "candidate_generated"
    iteration_id: Id
    target: str
    hardware: str
    state: int
    attempt: int
    """The reply it came from."""
    hypothesis: str
    configs: str
    """Canonical JSON of the autotune configs."""
    honoured: tuple[Id, ...]
    overridden: tuple[Id, ...]
    left_out: int
    """How many constraints did not fit the budget."""
    out: str
    """The out folder, absolute."""
    files: dict[str, Digest]
    """Path relative to the out folder, and the content's digest; the candidate itself first."""


class VerdictReached(EventBase):
    """A candidate was judged; appended before anything is derived from it."""

    stored: ClassVar[tuple[str, ...]] = ("source", "details")
    kind: Literal["verdict_reached"] = "verdict_reached"
    iteration_id: Id
    """The generation, or an id of its own for a file that kernelgen did not generate."""
    target: str
    hardware: str
    state: int | None
    """None for a file that kernelgen did not generate."""
    verdict: Verdict
    highest: Level | None
    """Highest level passed."""
    origin: Literal["generated", "file", "problem"] = "generated"
    """generated: by this log; file: a user's own; problem: solves one from outside, which teaches nothing."""
    source: Digest | None = None
    """Of the text that was judged: the model's part alone."""
    details: dict[str, Digest] = Field(default_factory=dict)
    """Figures of each level, canonical JSON, by the level's name."""
    machine: str = "{}"
    """Canonical JSON: what machine judged, its versions, and what contained the candidate."""


class VerdictRetracted(EventBase):
    """A verdict proved wrong: what came from it is withdrawn too."""

    kind: Literal["verdict_retracted"] = "verdict_retracted"
    verdict: Id
    """Id of the verdict's event."""
    iteration_id: Id
    target: str
    hardware: str
    why: str


class ConstraintProposed(EventBase):
    """A failure suggests a constraint that waits for a person; adopting it adds the line."""

    kind: Literal["constraint_proposed"] = "constraint_proposed"
    constraint: Constraint
    fingerprint: Digest
    """Of its cause: the same cause is proposed once."""


class CampaignStarted(EventBase):
    """A campaign for a region began; each generation of it has `campaign=ID` among its overrides."""

    kind: Literal["campaign_started"] = "campaign_started"
    campaign_id: Id
    target: str
    hardware: str
    gpu: Literal["here", "bundle"]
    """Whether candidates are measured on this machine, or in rounds on another one."""
    iterations: int | None
    """Budget of iterations."""
    minutes: float | None
    """Budget of minutes of asking and judging, here and on the GPU."""
    round_size: int
    """Candidates that one bundle takes along."""
    seed: int | None
    """Of a model's sampling and of the inputs that candidates are judged on here; None draws them."""
    learned: bool
    """Whether prompts and rules have what verdicts taught."""
    overrides: tuple[str, ...]
    """What the user set of the config groups."""


class CampaignRound(EventBase):
    """A round of a campaign was bundled: these candidates wait for verdicts from another machine."""

    kind: Literal["campaign_round"] = "campaign_round"
    campaign_id: Id
    target: str
    hardware: str
    round: int
    """1 for the first."""
    bundle: Digest
    """The bundle's id."""
    folder: str
    """Where it was written, absolute."""
    candidates: tuple[Id, ...]
    """In the order of its jobs."""


class CampaignEnded(EventBase):
    """A campaign is over."""

    kind: Literal["campaign_ended"] = "campaign_ended"
    campaign_id: Id
    target: str
    hardware: str
    cause: Literal["budget", "floor", "exhausted", "frozen", "stopped"]
    why: str


Event = Annotated[
    ConstraintAdded
    | ConstraintRetracted
    | ProfileImported
    | ChampionNamed
    | ChampionRetracted
    | RegionFrozen
    | RegionUnfrozen
    | GenerationRequested
    | GenerationRefused
    | ReplyReceived
    | GenerationFailed
    | CandidateGenerated
    | VerdictReached
    | VerdictRetracted
    | ConstraintProposed
    | CampaignStarted
    | CampaignRound
    | CampaignEnded,
    Field(discriminator="kind"),
]

EVENT: TypeAdapter[Event] = TypeAdapter(Event)
EVENT_KINDS: tuple[str, ...] = tuple(kind.model_fields["kind"].default for kind in get_args(get_args(Event)[0]))
"""Every kind's name, in the order of the union."""


def stored_texts(event: Event) -> tuple[str, ...]:
    """Digests of every stored text the event refers to."""
    found: list[str] = []
    for name in event.stored:
        value = getattr(event, name)
        found.extend(value.values() if isinstance(value, dict) else [value] if value is not None else [])
    return tuple(found)
