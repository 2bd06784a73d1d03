"""Which constraints say the same, so that a prompt says it once with a count.

Two are the same if their severity is, and either they have the same rule and the same statement but for its figures, or
one of them has no rule and the statements are the same, case and final full stop aside. Two different rules are never
merged. A rule-less one that fits several joins the most recent. Scopes play no part: only what holds here is compared.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from kernelgen.records import Constraint

_FIGURE = re.compile(r"\d+(?:[.,]\d+)*")


def normalised(statement: str) -> str:
    """A statement without what does not change its meaning: case, blanks, the final full stop."""
    return " ".join(statement.casefold().split()).rstrip(" .")


class Merger:
    """The meanings of constraints, numbered once; positions are those of the sequence given, the most recent first."""

    def __init__(self, constraints: Sequence[Constraint]) -> None:
        self._meaning_of: list[int] = []
        self._members: list[list[int]] = []
        numbers: dict[tuple[str, str, str], int] = {}
        ruled: dict[tuple[str, str, str], set[int]] = {}
        for position, constraint in enumerate(constraints):
            statement = normalised(constraint.statement)
            plain = (constraint.severity, "", statement)
            if constraint.rule is None:
                meaning = plain
            else:
                meaning = (constraint.severity, "".join(constraint.rule.split()), _FIGURE.sub("#", statement))
            number = numbers.setdefault(meaning, len(numbers))
            if number == len(self._members):
                self._members.append([])
            self._members[number].append(position)
            self._meaning_of.append(number)
            if constraint.rule is not None:
                ruled.setdefault(plain, set()).add(number)
        self._twins = {numbers[plain]: twins for plain, twins in ruled.items() if plain in numbers}
        self._joining: dict[int, list[int]] = {}
        for number, twins in self._twins.items():
            for twin in twins:
                self._joining.setdefault(twin, []).append(number)

    def group(self, position: int, holds: Callable[[int], bool]) -> list[int]:
        """All positions that hold here and say the same as this one, in order."""
        number = self._home(self._meaning_of[position], holds)
        numbers = [number, *(other for other in self._joining.get(number, ()) if self._home(other, holds) == number)]
        return sorted(member for number in numbers for member in self._members[number] if holds(member))

    def _home(self, number: int, holds: Callable[[int], bool]) -> int:
        """The meaning a rule-less one joins here: the most recent with its statement and a rule, else its own."""
        firsts = [
            (first, twin)
            for twin in self._twins.get(number, ())
            if (first := next(filter(holds, self._members[twin]), None)) is not None
        ]
        return min(firsts)[1] if firsts else number
