"""What to judge, found by a generation's id or by a file, with the target and the hardware it is judged for.

A file that kernelgen generated is known by its header; any other file is judged as it stands, whole, as long as the
target is named or its entry point names it. Nothing here runs or imports a candidate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from kernelgen import markers
from kernelgen.candidates import read_back, read_header
from kernelgen.candidates.build import table_text
from kernelgen.catalog import Catalog
from kernelgen.config import Dsl, Hardware, Target, TensorSpec
from kernelgen.errors import BadInput, LogError, nearest
from kernelgen.eventlog.store import EventLog
from kernelgen.events import CandidateGenerated, GenerationRequested
from kernelgen.generation.inputs import read_text
from kernelgen.generation.logged import LogReader
from kernelgen.ids import new_id
from kernelgen.judging.header import check_header, facts_of
from kernelgen.ladder.results import Result
from kernelgen.ladder.subject import Goal, Subject
from kernelgen.records import Finding, Language, Level
from kernelgen.targets.findings import Spec

if TYPE_CHECKING:
    from kernelgen.judging.levels import Terms

LANGUAGES: dict[str, Language] = {".py": "python", ".cu": "cuda"}
FILE_PREFIX = "f"


@dataclass(frozen=True)
class Judged:
    """One candidate to judge, and what is known of it."""

    iteration_id: str
    """The generation, or an id of its own for a user's file."""
    told: str
    """What the user called it."""
    target: Target
    """What it claims to compute."""
    hardware: Hardware
    """For which GPU."""
    state: int | None
    """The generation's state; None for a user's file."""
    subject: Subject
    """What the ladder is given."""
    header: tuple[Finding, ...] = ()
    """Where its header does not say the truth."""
    is_play: bool = False
    """Whether the playbook wrote it: then its plays are no foreign source."""
    champion: tuple[str, str] | None = None
    """Id and source of the champion that it was to beat."""
    notes: tuple[str, ...] = field(default=())
    """What the verdict's reader should know."""

    @property
    def origin(self) -> Literal["generated", "file", "problem"]:
        """Where it comes from, as its verdict says."""
        return "file" if self.state is None else "generated"

    def step(self, level: Level, terms: Terms, usual: Callable[[Judged, Terms], Result]) -> Result:
        """One level of the ladder; `usual` is what it is for most candidates."""
        return usual(self, terms)


@dataclass(frozen=True)
class Place:
    """Where candidates and targets are looked for."""

    log: EventLog
    """The event log."""
    catalog: Catalog
    """Targets and hardware."""
    hardware: Hardware
    """What files are judged for."""
    target: str | None = None
    """The target the user named."""


def find(told: str, place: Place) -> Judged:
    """The candidate that the user named: a file, or else an id or its beginning.

    Raises BadInput where it is neither, or its target cannot be told; LogError where an id is not exactly one.
    """
    path = Path(told)
    if path.suffix in LANGUAGES or path.is_file():
        return _from_file(path, told, place)
    iteration_id = place.log.find(told)
    asked, generated = _generation(place.log, iteration_id)
    text = place.log.text(next(iter(generated.files.values())))
    return _generated(told, text, asked, generated, place)


def _generation(log: EventLog, iteration_id: str) -> tuple[GenerationRequested, CandidateGenerated]:
    """The request and the candidate of a generation. Raises BadInput where it has none."""
    events = [row.event for row in log.iteration(iteration_id)]
    asked = next((event for event in events if isinstance(event, GenerationRequested)), None)
    generated = next((event for event in events if isinstance(event, CandidateGenerated)), None)
    if asked is None:
        raise BadInput(f"{iteration_id} is no generation of this log; `kernelgen log list` shows them.")
    if generated is None:
        raise BadInput(f"{iteration_id} ended without a candidate; `kernelgen log show {iteration_id}` says why.")
    return asked, generated


def _generated(told: str, text: str, asked: GenerationRequested, generated: CandidateGenerated, place: Place) -> Judged:
    """A candidate of this log; `text` is the file as it is to be judged."""
    prepared = LogReader(place.log).prepared(asked)
    config = prepared.config
    assert isinstance(config.target, Target)
    part = read_back(text)
    subject = Subject(
        name=generated.iteration_id,
        language=part.kernel.language,
        dsl=prepared.ask.approach.dsl,
        source=part.kernel.code,
        preamble=table_text(part.autotune) if part.autotune else "",
        entry_point=part.kernel.entry_point,
        goal=goal(config.target, config.hardware, prepared.binding.module, prepared.binding.folder),
    )
    champion = prepared.ask.champion
    return Judged(
        iteration_id=generated.iteration_id,
        told=told,
        target=config.target,
        hardware=config.hardware,
        state=generated.state,
        subject=subject,
        header=tuple(check_header(text, facts_of(place.log, asked, generated, prepared.ask))),
        is_play=config.lm.door == "playbook",
        champion=(champion.id, champion.source),
    )


def _from_file(path: Path, told: str, place: Place) -> Judged:
    """A file: one of this log's candidates by its header, or a user's own."""
    if path.suffix not in LANGUAGES:
        raise BadInput(f"{path} is neither a .py nor a .cu file; a candidate is one of them.")
    text, language = read_text(path, "candidate file"), LANGUAGES[path.suffix]
    if not markers.holds_marker(text):
        return _foreign(path, told, text, language, place)
    iteration_id = read_header(text)["candidate"][0]
    try:
        asked, generated = _generation(place.log, iteration_id)
    except (BadInput, LogError) as error:
        raise BadInput(
            f"{path} says it is candidate {iteration_id}, which this log does not hold; name its log with events=PATH."
        ) from error
    return _generated(told, text, asked, generated, place)


def _foreign(path: Path, told: str, text: str, language: Language, place: Place) -> Judged:
    """A user's own file, judged whole."""
    name = place.target or _target_of(path, text, place.catalog)
    target, located = place.catalog.target(name)
    folder = str(located.folder) if target.module.endswith(".py") else None
    return Judged(
        iteration_id=new_id(FILE_PREFIX),
        told=told,
        target=target,
        hardware=place.hardware,
        state=None,
        subject=Subject(
            name=path.stem,
            language=language,
            dsl=_dsl(text, language),
            source=text,
            preamble="",
            entry_point=target.entry_point,
            goal=goal(target, place.hardware, target.module, folder),
        ),
    )


def _target_of(path: Path, text: str, catalog: Catalog) -> str:
    """The target whose entry point the file has, where that is one. Raises BadInput otherwise."""
    names = catalog.names("target")
    found = [name for name in names if f"{catalog.target(name)[0].entry_point}(" in text]
    if len(found) == 1:
        return found[0]
    near = nearest(path.stem, names)
    if not found:
        raise BadInput(f"{path} has the entry point of no target: say which one it computes with target=NAME{near}")
    raise BadInput(f"{path} has the entry points of {' and '.join(found)}: say which one is meant with target=NAME.")


def _dsl(text: str, language: Language) -> Dsl:
    """What compiles a user's file."""
    if language == "cuda":
        return "cuda"
    return "tilelang" if "tilelang" in text else "triton"


def goal(target: Target, hardware: Hardware, module: str, folder: str | None) -> Goal:
    """The part of a target and a hardware that the ladder needs."""
    return Goal(
        name=target.name,
        module=module,
        folder=folder,
        inputs=_specs(target.inputs),
        scalars={scalar.name: scalar.type for scalar in target.scalars},
        outputs=_specs(target.outputs),
        smoke=target.shapes.smoke,
        edge=target.shapes.edge,
        tune=target.shapes.tune,
        heldout=target.shapes.heldout,
        kinds=target.input_kinds,
        exact_kinds=target.exact_kinds,
        tolerance={name: (bound.rtol, bound.atol) for name, bound in target.tolerance.items()},
        deterministic=target.deterministic,
        instructions=target.instructions,
        arch=hardware.arch,
        compute_capability=hardware.compute_capability,
        shared_bytes_per_block=int(hardware.shared_bytes_per_block.value),
    )


def _specs(tensors: Sequence[TensorSpec]) -> tuple[Spec, ...]:
    return tuple((tensor.name, tensor.dtype, list(tensor.shape)) for tensor in tensors)
