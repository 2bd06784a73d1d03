"""What the corpus expects of the real ladder, and what came: shared by the tests and the printed table."""

from __future__ import annotations

from dataclasses import dataclass, field

from kernelgen.judging.header import check_header
from kernelgen.ladder.results import Result
from kernelgen.ladder.subject import Goal
from kernelgen.targets.check import check
from kernelgen.targets.findings import Task
from tests.attacks.attack import Attack
from tests.attacks.d7_false_header import TWIN, FalseHeader, facts
from tests.attacks.ladder_run import Ladder, checks_of, refused

NEEDS_GPU = "needs a GPU"
# where nobody listens
NO_PORT = 9


@dataclass(frozen=True)
class Seen:
    """What became of a candidate."""

    level: str = ""
    """The level that refused it; empty where none did."""
    checks: tuple[str, ...] = ()
    """Ids of what it was refused for."""
    reason: str = ""
    """The deciding result in a sentence."""
    results: list[Result] = field(default_factory=list)
    """Each level's result, in order."""


def see(ladder: Ladder, attack: Attack, source: str) -> Seen:
    """What the levels make of a cheat or a twin."""
    if attack.level == "target" and source == attack.cheat:
        refusals = target_refusals(attack.goal)
        return Seen("target", refusals, "; ".join(refusals)) if refusals else Seen()
    source = attack.asking(NO_PORT) if source == attack.cheat else source
    subject = attack.subject(source)
    results = ladder.judge(subject, attack.known)
    if attack.closed_loop and not attack.gpu and not refused(results[-1]):
        twin = attack.subject(attack.twin)
        results.append(ladder.benchmark(subject, twin, held_out=attack.level == "L4"))
    last = results[-1]
    if not refused(last):
        return Seen("", (), last.reason, results)
    return Seen(last.level, checks_of(last), last.reason, results)


def is_as_expected(attack: Attack, seen: Seen) -> bool:
    """Whether the cheat was refused in time and for a reason that is its own, or won nothing."""
    if attack.wins_nothing:
        return not seen.level and [result.outcome for result in seen.results] == ["passed"] * len(seen.results)
    in_time = seen.level == "target" if attack.level == "target" else "" < seen.level <= attack.level
    return in_time and any(check.startswith(prefix) for check in seen.checks for prefix in attack.checks)


def why_not_yet(attack: Attack, seen: Seen) -> str | None:
    """Why nothing refused it here, where that is as it must be."""
    if seen.level:
        return None
    return NEEDS_GPU if attack.seen_on_gpu or attack.gpu else None


def has_passed(attack: Attack, seen: Seen) -> bool:
    """Whether an honest candidate passed all that this machine can tell of it."""
    allowed = ("passed", "inconclusive") if attack.dsl == "cuda" else ("passed",)
    done = [result.level for result in seen.results if result.outcome in allowed]
    # a CPU's clock refuses cheats of timing and decides no speed
    return done[:3] == ["L0", "L1", "L2"] and not seen.level


def target_refusals(goal: Goal) -> tuple[str, ...]:
    """The checks that a target itself fails."""
    task = Task(
        module=goal.module,
        folder=goal.folder or "",
        inputs=list(goal.inputs),
        scalars=goal.scalars,
        outputs=list(goal.outputs),
        smoke=goal.smoke,
        shapes={**goal.smoke, **goal.edge, **goal.tune, **goal.heldout},
        kinds=list(goal.kinds),
        tolerance=goal.tolerance,
    )
    return tuple(line["name"] for line in check(task).lines() if line["status"] == "failed")


def header_checks(cheat: FalseHeader | None) -> tuple[str, ...]:
    """Ids of what is wrong with a header; None for the true one."""
    return tuple(finding.check for finding in check_header(TWIN if cheat is None else cheat.cheat, facts()))
