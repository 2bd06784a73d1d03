"""From configs and the log to everything one generation depends on, or a refusal.

Refused, with the mend: no profile identified the target, the region is frozen, the constraint database is empty, a
state's further input is missing, all six states are used up. A refusal is a row of the log too.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kernelgen.candidates import TargetBinding
from kernelgen.config import Approach, AutoTarget, GenerateConfig, Hardware, Target
from kernelgen.constraints.learned import in_use
from kernelgen.constraints.select import select
from kernelgen.constraints.store import ConstraintBook, ConstraintFile, reconcile
from kernelgen.errors import Refused
from kernelgen.eventlog.store import EventLog
from kernelgen.events import GenerationRefused
from kernelgen.generation import briefs, region
from kernelgen.generation.inputs import read_parts, read_pull_request
from kernelgen.generation.workspace import Resolved
from kernelgen.prompt.program import load_program
from kernelgen.records import Ask, Constraint, Parts, Position, Profile, Program, PullRequest, Scope, Selection


@dataclass(frozen=True)
class Prepared:
    """All that a generation depends on; the prompt, the file and the events follow from it alone."""

    config: GenerateConfig
    """With target and state decided."""
    overrides: tuple[str, ...]
    """What the user set."""
    ask: Ask
    """The prompt's typed inputs."""
    program: Program
    """The prompt program."""
    binding: TargetBinding
    """What the candidate's own test needs of the target."""
    constraint_set: tuple[str, ...]
    """Ids of all constraints in use now, sorted: what the selection was made of."""


def prepare(resolved: Resolved, log: EventLog) -> Prepared:
    """Decide target, state, profile, champion and constraints. Raises Refused, after logging the refusal."""
    config = resolved.config
    try:
        return _Preparation(resolved, log).prepared()
    except Refused as refusal:
        log.append(
            GenerationRefused(
                target=config.target.name,
                hardware=config.hardware.name,
                state=config.state.number if isinstance(config.state, Approach) else None,
                reason=str(refusal),
                overrides=resolved.overrides,
            )
        )
        raise


class _Preparation:
    """One preparation: the configs and the log, and each decision as a step that may refuse."""

    def __init__(self, resolved: Resolved, log: EventLog) -> None:
        self._resolved, self._log = resolved, log
        self._config: GenerateConfig = resolved.config
        self._hardware: Hardware = resolved.config.hardware

    def prepared(self) -> Prepared:
        active = in_use(self._constraints().active, learned=self._config.learned)
        target, folder = self._target()
        profile = self._profile(target)
        position = self._position(target)
        approach = self._approach(position)
        pr, parts = self._further_inputs(approach)
        ask = Ask(
            target=briefs.target_brief(target),
            hardware=briefs.hardware_brief(self._hardware),
            approach=approach,
            selection=self._selection(active, target, approach),
            profile=profile,
            champion=region.champion(self._log, target, self._hardware.name, folder),
            position=position,
            pr=pr,
            parts=parts,
        )
        return Prepared(
            config=self._config.model_copy(update={"target": target, "state": approach}),
            overrides=self._resolved.overrides,
            ask=ask,
            program=self._program(),
            binding=briefs.binding(target, self._hardware, folder),
            constraint_set=tuple(sorted(constraint.id for constraint in active)),
        )

    def _constraints(self) -> ConstraintBook:
        place = self._resolved.workspace.constraints
        book = reconcile(ConstraintFile(place), region.ConstraintRows(self._log))
        if not book.active:
            raise Refused(
                f"The constraint database {place.name} is empty; run Phase 1 first to seed it: "
                f"`kernelgen constraints seed hardware={self._hardware.name}`."
            )
        return book

    def _target(self) -> tuple[Target, Path]:
        """The target asked for, or the one with most headroom, and the folder its files lie in."""
        target, catalog = self._config.target, self._resolved.catalog
        if not isinstance(target, AutoTarget):
            return target, catalog.locate("target", target.name).folder
        ranked = region.headroom(catalog, self._log, self._hardware)
        first = next((row for row in ranked if row.measured and not row.frozen), None)
        if first is None:
            raise Refused(
                f"target=auto needs a profile of some target on {self._hardware.name} that is not frozen; import one: "
                "`kernelgen profile import FILE target=NAME shape=NAME`."
            )
        chosen, located = catalog.target(first.target)
        return chosen, located.folder

    def _profile(self, target: Target) -> Profile:
        hardware, shape = self._hardware.name, self._config.shape
        profile = region.latest_profile(self._log, target.name, hardware, shape)
        if profile is None:
            at = f" at shape {shape}" if shape else ""
            raise Refused(
                f"No profile has identified {target.name} on {hardware}{at}; import one first: `kernelgen profile "
                f"import FILE target={target.name} hardware={hardware} shape={shape or target.profile_shape}`."
            )
        return profile

    def _position(self, target: Target) -> Position:
        hardware, state = self._hardware.name, self._config.state
        chosen = state.number if isinstance(state, Approach) else None
        position = region.position(self._log, target.name, hardware, self._config.policy, chosen)
        if position.frozen is not None:
            raise Refused(
                f"{target.name} on {hardware} is frozen ({position.frozen}); lift it first: "
                f"`kernelgen unfreeze {target.name} hardware={hardware} --why REASON`."
            )
        return position

    def _approach(self, position: Position) -> Approach:
        if isinstance(self._config.state, Approach):
            return self._config.state
        if position.state is None:
            raise Refused(
                f"All six states are used up for {position.target} on {position.hardware}; choose one yourself with "
                "state=N, or raise policy.failures_before_advancing."
            )
        return self._resolved.catalog.approach(position.state)

    def _further_inputs(self, approach: Approach) -> tuple[PullRequest | None, Parts | None]:
        given = {"pr": self._config.pr, "parts": self._config.parts}
        for need in approach.needs:
            if given[need] is None:
                raise Refused(
                    f"State {approach.number} ({approach.name}) needs {need}=FILE; `kernelgen generate --help` says "
                    "what the file holds."
                )
        pr = read_pull_request(Path(self._config.pr)) if self._config.pr and "pr" in approach.needs else None
        parts = None
        if self._config.parts and "parts" in approach.needs:
            parts = read_parts(
                Path(self._config.parts), lambda name: region.named_champion(self._log, name, self._hardware.name)
            )
        return pr, parts

    def _selection(self, active: tuple[Constraint, ...], target: Target, approach: Approach) -> Selection:
        scope = Scope(target=target.name, hardware=self._hardware.name, dsl=approach.dsl, state=approach.number)
        policy = self._config.policy
        selection = select(active, scope, budget=policy.constraint_tokens, encoding=policy.encoding)
        if not selection.considered:
            raise Refused(
                f"The constraint database holds nothing for {target.name} on {self._hardware.name}; seed it first: "
                f"`kernelgen constraints seed hardware={self._hardware.name}`."
            )
        return selection

    def _program(self) -> Program:
        program = self._config.program
        located = self._resolved.catalog.locate("program", program.name)
        return load_program(program.name, located.folder / program.file)
