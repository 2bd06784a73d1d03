"""What the figures say: whose clock is out, what is impossible or remembered, and who is faster. Pure functions."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from kernelgen.ladder.benchmark.intervals import Interval, interval, together
from kernelgen.ladder.benchmark.pairs import Pair, Shape, per_call
from kernelgen.ladder.benchmark.said import Role
from kernelgen.ladder.benchmark.terms import Ceilings, Recipe, Terms3
from kernelgen.ladder.results import Fact, Fault

SIDES: tuple[Role, ...] = ("candidate", "champion")


@dataclass(frozen=True)
class Measured:
    """A shape that was measured."""

    shape: Shape
    """The shape."""
    pairs: tuple[Pair, ...]
    """All pairs."""
    times: dict[Role, list[float]]
    """Seconds of a call by side, pair by pair."""
    interval: Interval
    """Of the champion's time over the candidate's."""
    moved: float
    """Bytes that a call must move."""
    flops: float
    """Operations of a call."""

    def us(self, role: Role) -> float:
        """Median time of a call."""
        return 1e6 * statistics.median(self.times[role])

    def spread(self, role: Role) -> float:
        """The middle half of the pairs' times over their median."""
        low, middle, high = statistics.quantiles(self.times[role], n=4)
        return (high - low) / middle


def measured(shape: Shape, pairs: Sequence[Pair], confidence: float, moved: float, flops: float) -> Measured:
    """The figures of a shape."""
    times = per_call(list(pairs), shape.calls * shape.rounds)
    return Measured(shape, tuple(pairs), times, compared(times, confidence), moved, flops)


def compared(times: dict[Role, list[float]], confidence: float) -> Interval:
    """The champion's time over the candidate's, pair by pair."""
    both = zip(times["candidate"], times["champion"], strict=True)
    logarithms = [math.log(champion / candidate) for candidate, champion in both]
    return interval(logarithms, confidence)


def decided(over_all: Interval, minimum_effect: float) -> str:
    """`faster`, `slower`, or `no_difference`: within the interval, or smaller than what counts."""
    if over_all.low > 1 and over_all.ratio >= 1 + minimum_effect:
        return "faster"
    if over_all.high < 1 and over_all.ratio <= 1 / (1 + minimum_effect):
        return "slower"
    return "no_difference"


def verdict(shapes: Sequence[Measured], terms: Terms3) -> tuple[Interval, str, Fault | None]:
    """The geometric mean over the shapes, what it means in a sentence, and the fault where it is not faster."""
    over_all = together([one.interval for one in shapes], terms.confidence)
    found = decided(over_all, terms.minimum_effect)
    count = f"{len(shapes)} shape{'' if len(shapes) == 1 else 's'}"
    figures = f"{over_all.ratio:.4g} x the champion's speed over {count} ({said_interval(over_all, terms.confidence)})"
    detail = "\n".join(_line(one, terms.confidence) for one in shapes)
    if found == "faster":
        return over_all, figures, None
    if found == "slower":
        return over_all, figures, Fault("benchmark.slower", f"slower: {figures}", detail)
    reason = (
        f"no difference, which is no regression: {figures}; less than {terms.minimum_effect:.3g} counts for nothing"
    )
    return over_all, reason, Fault("benchmark.no_difference", reason, detail)


def said_interval(one: Interval, confidence: float) -> str:
    """An interval in words."""
    return f"{confidence:.4g} interval {one.low:.4g} to {one.high:.4g}"


def doubts(one: Measured, recipe: Recipe, ceilings: Ceilings | None, *, on_gpu: bool) -> list[Fault]:
    """What makes a candidate's figures at a shape a matter for a person."""
    found = []
    place = f"shape {one.shape.name}"
    if on_gpu:
        out = _clocks_differ(one, recipe)
        if out is not None:
            found.append(Fault("benchmark.clocks", f"{place}: {out}"))
    if ceilings is not None:
        least = ceilings.impossible_us(one.moved, one.flops)
        if one.us("candidate") < least:
            reason = f"{place}: {one.us('candidate'):.3g} us a call; no GPU of this kind takes less than {least:.3g} us"
            found.append(Fault("benchmark.impossible", reason))
    warm_s, longest_s = one.shape.warm_s, max(one.times["candidate"])
    if warm_s is not None and warm_s > recipe.overlap * longest_s + recipe.overlap_s:
        figures = f"{1e6 * longest_s:.3g} us after a flush of the L2 cache, {1e6 * warm_s:.3g} us without one"
        found.append(Fault("benchmark.overlap", f"{place}: a call takes {figures}: it runs beside the flush"))
    unchanged_s, usual_s = one.shape.unchanged_s, min(one.times["candidate"])
    if recipe.decides and unchanged_s is not None and unchanged_s < recipe.remembered * usual_s:
        share = unchanged_s / usual_s
        reason = f"{place}: on contents that do not change a call takes {share:.2g} of its time: it keeps results"
        found.append(Fault("benchmark.remembered", reason))
    return found


def not_quiet(shapes: Sequence[Measured], recipe: Recipe) -> str | None:
    """Why the machine was not quiet enough to measure; None where it was."""
    for one in shapes:
        low, middle, high = statistics.quantiles([pair.walls["blank"] for pair in one.pairs], n=4)
        if (high - low) / middle > recipe.disturbed:
            share = (high - low) / middle
            return f"at shape {one.shape.name} the same work took times that differ by {share:.2g}: something else ran"
    return None


def clock_difference(one: Measured, role: Role) -> float:
    """Seconds a block by which a process' events tell less than the judge's clock, what is usual taken away."""
    usual = statistics.median(pair.walls["blank"] - pair.said["blank"] for pair in one.pairs)
    return statistics.median(pair.walls[role] - pair.said[role] for pair in one.pairs) - usual


def figures(one: Measured, ceilings: Ceilings | None) -> dict[str, Fact | dict[str, Fact] | None]:
    """A shape as the record has it."""
    shape = one.shape
    record: dict[str, Fact | dict[str, Fact] | None] = {
        **one.interval.as_dict(),
        "pairs": len(one.pairs),
        "calls": shape.calls,
        "rounds": shape.rounds,
        "input_sets": shape.sets,
        "answers_checked": shape.checked,
        "blank_us": round(1e6 * statistics.median(pair.walls["blank"] for pair in one.pairs), 1),
        "launch_floor_us": None if shape.launch_s is None else round(1e6 * shape.launch_s, 3),
        "unchanged_us": None if shape.unchanged_s is None else round(1e6 * shape.unchanged_s, 3),
        "warm_us": None if shape.warm_s is None else round(1e6 * shape.warm_s, 3),
        "bytes": one.moved,
        "flops": one.flops,
        "floor_us": None if ceilings is None else round(ceilings.floor_us(one.moved, one.flops), 3),
    }
    for role in SIDES:
        record[role] = {
            "us": round(one.us(role), 3),
            "spread": round(one.spread(role), 4),
            "first_call_s": round(shape.setup_s.get(role, 0.0), 3),
            "clock_difference_us": round(1e6 * clock_difference(one, role), 1),
            **({"chosen": shape.chosen[role]} if role in shape.chosen else {}),
            **({"of_floor": round(ceilings.floor_us(one.moved, one.flops) / one.us(role), 4)} if ceilings else {}),
        }
    return record


def _clocks_differ(one: Measured, recipe: Recipe) -> str | None:
    """Why the candidate's events cannot be right; None where they agree with the judge's clock."""
    out_s = clock_difference(one, "candidate")
    block_s = statistics.median(pair.walls["candidate"] for pair in one.pairs)
    if abs(out_s) <= max(recipe.clock_s, recipe.clock_share * block_s):
        return None
    return (
        f"the process' events and the judge's clock differ by {1e6 * out_s:.3g} us in a block of {1e6 * block_s:.4g} us"
        ": work is done outside what the events see, or they are not true"
    )


def _line(one: Measured, confidence: float) -> str:
    return (
        f"{one.shape.name}: {one.us('candidate'):.4g} us, champion {one.us('champion'):.4g} us, ratio "
        f"{one.interval.ratio:.4g} ({said_interval(one.interval, confidence)})"
    )
