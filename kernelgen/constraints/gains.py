"""What a measurement teaches: a regression of L3, a gain that L4 did not find again, a promotion. Lessons, as `distil`.

The cause is what was tried: the kernel itself, comments and layout aside, so that the same kernel measured again can
contradict what was learned of it. "No difference" teaches nothing: nobody needs to avoid what costs nothing, the prompt
tells it as an attempt without gain, and a larger change may need it; but it does speak against a regression.
Held-out shapes are never named: what is learned stands in prompts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from kernelgen.config import Dsl
from kernelgen.constraints.distil import Lesson
from kernelgen.constraints.measured import Comparison, Ratio
from kernelgen.constraints.structure import difference, same_kernel_digest, structure
from kernelgen.ids import canonical_json, digest_text
from kernelgen.records import Scope

LONGEST_HYPOTHESIS = 240
"""Characters of a hypothesis in a statement, whole sentences where the first one fits."""
SLOWER, NO_DIFFERENCE = "benchmark.slower", "benchmark.no_difference"
NOT_HELD = "promotion."
_SENTENCE = re.compile(r"(?<=[.!?])\s+")


@dataclass(frozen=True)
class Trial:
    """What was tried, and where."""

    target: str
    """Target name."""
    hardware: str
    """Hardware name."""
    title: str
    """The vendor's name of it."""
    dsl: Dsl
    """What compiles the kernel."""
    state: int | None
    """The generation's state; None for a user's own file."""
    hypothesis: str
    """Why it should have been faster; empty for a user's own file."""
    source: str
    """The kernel as it was judged."""
    rival_source: str
    """The champion it was measured against."""
    rival_dsl: Dsl
    """What compiles that."""
    profile: str
    """What the profile said that it was made for, in a phrase; empty where there was none."""
    versions: str
    """Compiler and torch, in a phrase."""

    @property
    def changed(self) -> str:
        """How it differs from the champion, in a phrase."""
        return difference(structure(self.rival_source, self.rival_dsl), structure(self.source, self.dsl))


def regression(trial: Trial, measured: Comparison) -> Lesson:
    """Of a candidate that L3 found slower than the champion."""
    slower = measured.over_all.slower
    worst = min(measured.shapes, key=lambda name: measured.shapes[name].ratio.ratio)
    figures = (
        f"{_percent(slower.ratio)} slower than champion {measured.champion_id} ({measured.confidence:.0%} interval "
        f"{_percent(slower.low)} to {_percent(slower.high)}) over {_shapes(measured)}"
    )
    if len(measured.shapes) > 1:
        figures += f", at {worst} by {_percent(measured.shapes[worst].ratio.slower.ratio)}"
    statement = f"Do not try again without a further reason: {_tried(trial)} It was {figures}{_circumstances(trial)}."
    return _lesson(SLOWER, trial, statement, measured)


def not_held(trial: Trial, measured: Comparison, held_out: Comparison) -> Lesson:
    """Of a candidate that won at the timed shapes and not at those it had not seen."""
    statement = (
        f"What wins at the timed shapes alone does not count: {_tried(trial)} It was {measured.over_all.ratio:.3g} "
        f"times as fast as champion {measured.champion_id} there, and {_told(held_out.over_all, held_out.confidence)} "
        f"at shapes it had not seen{_at_worst(held_out)}{_circumstances(trial)}."
    )
    return _lesson(NOT_HELD, trial, statement, measured)


def pattern(trial: Trial, measured: Comparison, held_out: Comparison) -> Lesson:
    """Of a candidate that L4 passed."""
    each = ", ".join(f"{name} {one.ratio.told()}" for name, one in measured.shapes.items())
    statement = (
        f"{_tried(trial)} It was {_told(measured.over_all, measured.confidence)} times as fast as champion "
        f"{measured.champion_id} ({each}), and {held_out.over_all.told()} at shapes it had not seen; on {trial.title}"
        f"{f', {trial.versions}' if trial.versions else ''}{_circumstances(trial)}."
    )
    return _lesson(_promoted_over(measured.champion_id), trial, statement, measured)


def spoken_against(trial: Trial, measured: Comparison, *, faster: bool, held: bool | None) -> list[str]:
    """Fingerprints of the lessons that a measurement of the same kernel contradicts.

    `faster`: L3 found it faster; else it was slower or there was no difference. `held`: what L4 found, None without it.
    """
    found = [] if faster and held is not False else [_fingerprint(_promoted_over(measured.champion_id), trial)]
    if held:
        found.append(_fingerprint(NOT_HELD, trial))
    return [*found, _fingerprint(SLOWER, trial)] if faster else found


def no_difference(trial: Trial) -> str:
    """Fingerprint of the regression that "no difference" contradicts."""
    return _fingerprint(SLOWER, trial)


def first_sentences(hypothesis: str) -> str:
    """The hypothesis' first sentence, and those after it that fit; an unfinished one ends in a full stop."""
    first, *rest = _SENTENCE.split(" ".join(hypothesis.split()))
    if len(first) > LONGEST_HYPOTHESIS:
        first = f"{first[: LONGEST_HYPOTHESIS - 1].rpartition(' ')[0]}…"
    for sentence in rest:
        if len(first) + 1 + len(sentence) > LONGEST_HYPOTHESIS:
            break
        first = f"{first} {sentence}"
    return first if first.endswith((".", "!", "?", "…")) else f"{first}."


def _tried(trial: Trial) -> str:
    """What was tried: why, and what changed."""
    said = first_sentences(trial.hypothesis) if trial.hypothesis else "a kernel of the user's own."
    return f"{said} Changed: {trial.changed}."


def _circumstances(trial: Trial) -> str:
    state = "" if trial.state is None else f"; state {trial.state}"
    return f"{state}; profile: {trial.profile}" if trial.profile else state


def _shapes(measured: Comparison) -> str:
    return f"{len(measured.shapes)} timed shape{'' if len(measured.shapes) == 1 else 's'}"


def _percent(ratio: float) -> str:
    return f"{100 * (ratio - 1):.1f}%"


def _told(one: Ratio, confidence: float) -> str:
    return f"{one.ratio:.3g} ({confidence:.0%} interval {one.low:.3g} to {one.high:.3g})"


def _at_worst(held_out: Comparison) -> str:
    worst = min(one.ratio.ratio for one in held_out.shapes.values())
    return f", {worst:.3g} at the worst of them" if len(held_out.shapes) > 1 else ""


def _promoted_over(champion_id: str) -> str:
    return f"promoted over {champion_id}"


def _fingerprint(kind: str, trial: Trial) -> str:
    """Of what was tried; the state is left out, since the same kernel may come of another approach."""
    place = [trial.target, trial.hardware, trial.dsl]
    return digest_text(canonical_json([kind, same_kernel_digest(trial.source, trial.dsl), *place]))


def _lesson(kind: str, trial: Trial, statement: str, measured: Comparison) -> Lesson:
    is_pattern = kind not in (SLOWER, NOT_HELD)
    scope = Scope(target=trial.target, hardware=trial.hardware)
    # what worked is worth knowing in any approach; what did not, only where it may be tried again
    narrow = scope.model_copy(update={"dsl": trial.dsl, "state": trial.state})
    level = "L3" if kind == SLOWER else "L4"
    return Lesson(
        fingerprint=_fingerprint(kind, trial),
        severity="positive" if is_pattern else "soft",
        statement=statement,
        scope=scope if is_pattern else narrow,
        rule=None,
        own={},
        lines=tuple(_lines(measured)),
        source=", ".join(part for part in (level, trial.versions) if part),
    )


def _lines(measured: Comparison) -> Iterator[str]:
    """The figures at each timed shape."""
    for name, one in measured.shapes.items():
        yield f"{name}: {one.candidate_us:.4g} us, champion {one.champion_us:.4g} us, ratio {one.ratio.told()}"
