"""`python -m tests.attacks [ID…]`: which level refuses each cheat, by which check, and whether its twin passes.

Exit code 1 when a cheat is not refused as it must be, or a twin does not pass. `later` is for the levels to come, `GPU`
for what a CPU cannot see.
"""

from __future__ import annotations

import sys

from tests.attacks.attack import Attack
from tests.attacks.corpus import attacks
from tests.attacks.d7_false_header import CHEATS
from tests.attacks.ladder_run import Ladder
from tests.attacks.verdicts import has_passed, header_checks, is_as_expected, see, why_not_yet

ROW = "{:<4} {:<31} {:<6} {:<10} {:<32} {}"
REFUSED_NOT = "NOT"


def main(ids: list[str]) -> int:
    """Print the table of the ids named, or of all."""
    print(ROW.format("id", "kind", "level", "refused at", "by check", "twin passed"), flush=True)
    twins: dict[tuple[str, str, str], str] = {}
    bad = 0
    with Ladder() as ladder:
        for attack in attacks():
            if ids and attack.id not in ids:
                continue
            at, by, good = _refusal(ladder, attack)
            key = (attack.twin, attack.goal.name, attack.dsl)
            if key not in twins:
                twins[key] = _passing(ladder, attack)
            bad += not good or twins[key].startswith(REFUSED_NOT)
            print(ROW.format(attack.id, attack.face, attack.level, at, by, twins[key]), flush=True)
    if not ids or "D7" in ids:
        bad += _headers()
    print(f"{bad} bad" if bad else "every cheat refused, every twin passed")
    return 1 if bad else 0


def _refusal(ladder: Ladder, attack: Attack) -> tuple[str, str, bool]:
    """Where and by what a cheat was refused, and whether that is as it must be."""
    seen = see(ladder, attack, attack.cheat)
    elsewhere = why_not_yet(attack, seen)
    if elsewhere is not None:
        return "GPU", "", True
    good = is_as_expected(attack, seen)
    if attack.wins_nothing and good:
        return "-", "wins nothing", True
    by = next((c for c in seen.checks if c.startswith(attack.checks)), seen.checks[0] if seen.checks else "")
    return seen.level if good else f"{REFUSED_NOT} {seen.level}".strip(), by, good


def _passing(ladder: Ladder, attack: Attack) -> str:
    """Whether a twin passed, as far as this machine can tell, or what refused it."""
    seen = see(ladder, attack, attack.twin)
    if not has_passed(attack, seen):
        return f"{REFUSED_NOT}: {seen.level} {', '.join(seen.checks)}"
    unknown = [result.level for result in seen.results if result.outcome == "inconclusive"]
    return f"yes; {' and '.join(unknown)} inconclusive here" if unknown else "yes"


def _headers() -> int:
    """The rows of headers that lie; how many are bad."""
    bad = 0
    is_true = header_checks(None) == ()
    for cheat in CHEATS:
        found = header_checks(cheat)
        good = cheat.check in found
        bad += not good or not is_true
        at = "L0" if good else REFUSED_NOT
        print(ROW.format("D7", cheat.face, "L0", at, cheat.check if good else "", "yes" if is_true else REFUSED_NOT))
    return bad


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
