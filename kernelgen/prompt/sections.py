"""The five sections of the user message, in the specification's words: one function each, from the typed inputs alone.

Whatever comes from outside (reasons, names of a profiler, sources) stands on one line or in a fence, so that it can
never pass for a section of its own. Nothing here depends on the program: no program can change or drop a section.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kernelgen.config import Approach
from kernelgen.constraints.render import render_body
from kernelgen.ids import digest_text
from kernelgen.prompt.markdown import fenced
from kernelgen.prompt.reply import LANGUAGE
from kernelgen.prompt.texts import fill, text
from kernelgen.prompt.wording import figure, one_line, performance, shape
from kernelgen.records import Ask, Attempt, Champion, Launch, Parts, Position, Profile, PullRequest, Selection

LAUNCHES_SHOWN = 8
"""Launches told one by one, the longest first."""
NONE = "none"


def constraints(selection: Selection) -> str:
    """[CONSTRAINTS]: hard, soft and positive, always all three."""
    return f"[CONSTRAINTS — from database, always injected]\n{render_body(selection)}"


def profile(ask: Ask) -> str:
    """[PROFILE]: bottleneck, limiting factor, target metric, then the figures they rest on."""
    taken = ask.profile
    limiting = taken.limiting_factor
    lines = [
        "[PROFILE — from /profile-kernel output]",
        f"Current bottleneck: {taken.bottleneck} (DRAM bandwidth {figure(taken.dram_percent, '%')} of the ceiling, "
        f"SM throughput {figure(taken.sm_percent, '%')} of peak, occupancy {figure(taken.occupancy_percent, '%')})",
        f"Limiting factor: {one_line(limiting.sentence)} "
        f"[{one_line(limiting.name)}: {one_line(limiting.metric)} = {one_line(figure(limiting.value, limiting.unit))}]",
        f"Target metric: {one_line(taken.target_metric)}",
    ]
    if not _is_of_the_champion(ask):
        lines.append(f"Profiled: not this champion at a timed shape, but {one_line(taken.subject)}")
    place = f"{shape(taken.shape, taken.dims)} on {one_line(taken.device) or 'an unnamed device'}"
    lines += [
        f"Region: {figure(taken.time_us, 'us')} at {place}; floor {figure(taken.floor_us, 'us')} by {taken.floor_by}; "
        f"DRAM traffic {figure(taken.dram_bytes, 'bytes')}, needed {figure(taken.floor_bytes, 'bytes')}",
        f"Roofline: {figure(taken.intensity, 'FLOP/byte')}, the ridge is at {figure(taken.ridge, 'FLOP/byte')}",
        *_launches(taken),
        f"Source: {one_line(taken.source_file)}, {taken.format}",
    ]
    return "\n".join(lines)


def champion(best: Champion) -> str:
    """[CHAMPION]: its source, and its performance at every measured shape."""
    lines = [
        "[CHAMPION — current best]",
        f"Champion: {best.id} ({best.origin}), {best.language}, entry point {best.entry_point}",
        fenced(best.source, best.language),
        *(f"Performance: {performance(measured)}" for measured in best.figures or (None,)),
    ]
    return "\n".join(lines)


def state_vector(approach: Approach, position: Position) -> str:
    """[STATE VECTOR]: the approach, and what was tried before and why it failed."""
    hidden = position.attempts_total - len(position.attempts)
    attempts = [_attempt(attempt) for attempt in position.attempts]
    if hidden > 0:
        attempts.insert(0, f"- {hidden} earlier attempts are not shown")
    lines = [
        "[STATE VECTOR — current approach]",
        f"You are at State {approach.number}: {one_line(approach.name)}: {one_line(approach.description)}",
        f"Instructions: {one_line(approach.instructions)}",
        f"May change: {_listed(approach.may_change)}",
        f"Look at: {_listed(approach.look_at)}",
        "Previous states attempted:" if attempts else f"Previous states attempted: {NONE}",
        *attempts,
    ]
    return "\n".join(lines)


def task(ask: Ask, notes: Mapping[str, str]) -> str:
    """[TASK]: what to write, in which form; `notes` are further fields of a module, such as Refine's hint."""
    target = ask.target
    body = fill(
        "task",
        target=target.name,
        dsl=ask.approach.dsl,
        entry_point=target.entry_point,
        title=one_line(target.title),
        summary=_quiet(target.summary),
        signature=fenced(target.signature, "text"),
        rules=_bullets(target.rules),
        tolerance=_bullets(f"{output}: {bound}" for output, bound in sorted(target.tolerance.items())),
        shapes=_bullets(_smallest_first(target.tune)),
        further_inputs=_further_inputs(ask.pr, ask.parts),
        reply_format=reply_format(ask),
    )
    return "\n".join(["[TASK]", body, *(f"\n{name}:\n{quoted(note)}" for name, note in notes.items())])


def reply_format(ask: Ask) -> str:
    """How to answer, for the DSL of the approach."""
    entry_point, dsl = ask.target.entry_point, ask.approach.dsl
    return fill(
        "reply_format",
        entry_point=entry_point,
        fence=LANGUAGE[dsl],
        autotune_example=text("autotune_example") if dsl == "triton" else "{}",
        code_rules=fill(f"code_{dsl}", entry_point=entry_point),
    )


def quoted(note: str) -> str:
    """The text as a block quote: no line of it can begin a section."""
    return "\n".join(f"> {line}" for line in note.splitlines())


def _is_of_the_champion(ask: Ask) -> bool:
    taken = ask.profile
    same_source = taken.subject_source_digest == digest_text(ask.champion.source)
    return same_source and ask.target.tune.get(taken.shape) == taken.dims


def _launches(taken: Profile) -> list[str]:
    by_time = sorted(range(len(taken.launches)), key=lambda index: (-taken.launches[index].time_us, index))
    lines = [f"Launches: {len(taken.launches)}, the longest first"]
    lines += [_launch(taken.launches[index], index, taken) for index in by_time[:LAUNCHES_SHOWN]]
    rest = by_time[LAUNCHES_SHOWN:]
    if rest:
        lines.append(f"- {len(rest)} more: {figure(sum(taken.launches[index].time_us for index in rest), 'us')}")
    return lines


def _launch(launch: Launch, index: int, taken: Profile) -> str:
    figures = f"{figure(launch.time_us, 'us')}, DRAM {figure(launch.dram_bytes, 'bytes')}"
    place = f"grid {one_line(launch.grid)}, block {one_line(launch.block)}"
    return (
        f"- #{index + 1} {one_line(launch.name)}: {figures}, {place}{', dominant' if index == taken.dominant else ''}"
    )


def _attempt(attempt: Attempt) -> str:
    outcome = {
        "failed": f"failed at {attempt.level}" if attempt.level else "failed",
        "candidate": f"written, passed {attempt.level}" if attempt.level else "written, not judged",
        "promoted": "promoted",
        "no_gain": "no gain",
    }[attempt.outcome]
    configs = f" configs: {one_line(attempt.configs)}" if attempt.configs else ""
    return f"- State {attempt.state}, {attempt.iteration_id}: {outcome}: {one_line(attempt.reason)}{configs}"


def _further_inputs(pr: PullRequest | None, parts: Parts | None) -> str:
    lines = [""]
    if pr is not None:
        lines += [
            f"Pull request: {one_line(pr.repository)}#{pr.number}, licence {one_line(pr.licence)}",
            fenced(pr.diff, "diff"),
            "",
        ]
    if parts is not None:
        for part in parts.champions:
            lines += [f"Part: {one_line(part.target)}, champion {part.champion}", fenced(part.source, part.language)]
        lines += ["Composed reference:", fenced(parts.reference, "python"), ""]
    return "\n".join(lines)


def _listed(items: tuple[str, ...]) -> str:
    return "; ".join(one_line(item) for item in items) or NONE


def _bullets(items: Iterable[str]) -> str:
    return "\n".join(f"- {one_line(item)}" for item in items) or NONE


def _smallest_first(shapes: dict[str, dict[str, int]]) -> list[str]:
    """The shapes by extents, then name: records read back from the log have lost any other order."""
    order = sorted(shapes, key=lambda name: ([extent for _, extent in sorted(shapes[name].items())], name))
    return [shape(name, shapes[name]) for name in order]


def _quiet(summary: str) -> str:
    """The text with its lines kept, each indented where it would begin with a bracket as a section does."""
    return "\n".join(f"  {line}" if line.lstrip().startswith("[") else line for line in summary.splitlines())
