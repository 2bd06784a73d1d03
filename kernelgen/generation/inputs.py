"""The further inputs of states 4 and 5: an upstream pull request, and the parts of a composition."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Protocol

from kernelgen.catalog import read_yaml
from kernelgen.errors import BadInput, Refused
from kernelgen.records import Champion, Part, Parts, PullRequest

PR_NUMBER = re.compile(r"[0-9]{1,18}")
PR_KEYS = ("Repository", "Number", "Licence")
PR_FORM = "it must begin with the lines 'Repository: owner/name', 'Number: 123' and 'Licence: SPDX-id', then the diff"


class ChampionOf(Protocol):
    """Finds the champion of a target; a function of the log."""

    def __call__(self, target: str) -> Champion | None: ...


def read_text(path: Path, what: str) -> str:
    """A user's text file. Raises BadInput naming it."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise BadInput(f"The {what} {path} cannot be read: {error.strerror}; check the path.") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"The {what} {path} is not UTF-8 text (byte {error.start}); save it as UTF-8.") from error
    except ValueError as error:
        raise BadInput(f"The {what} {str(path)!r} cannot be read: {error}; check the path.") from error


def read_pull_request(path: Path) -> PullRequest:
    """One upstream change: three header lines, then a unified diff. Raises BadInput naming the file and the mend."""
    text = read_text(path, "diff file")
    head, fields = text.lstrip().splitlines()[: len(PR_KEYS)], {}
    for line in head:
        key, _, value = line.partition(":")
        fields[key.strip()] = value.strip()
    missing = [key for key in PR_KEYS if not fields.get(key)]
    if missing:
        raise BadInput(f"The diff file {path} lacks {', '.join(missing)}: {PR_FORM}.")
    if not PR_NUMBER.fullmatch(fields["Number"]):
        raise BadInput(f"The diff file {path} has Number: {fields['Number']!r}, which is not a number: {PR_FORM}.")
    diff = "\n".join(text.lstrip().splitlines()[len(PR_KEYS) :]).strip("\n") + "\n"
    if not any(line.startswith(("+", "-")) and line[:3] not in ("+++", "---") for line in diff.splitlines()):
        raise BadInput(f"The diff file {path} has no changed line: {PR_FORM}.")
    return PullRequest(
        repository=fields["Repository"], number=int(fields["Number"]), licence=fields["Licence"], diff=diff
    )


def read_parts(path: Path, champion_of: ChampionOf) -> Parts:
    """The parts of a composition: yaml with `targets:`, a list, and `reference:`, a Python file beside it.

    Raises BadInput for a file that is not that, Refused for a target whose champion was not promoted.
    """
    data = read_yaml(path)
    targets, reference = data.get("targets"), data.get("reference")
    if not isinstance(targets, list) or len(targets) < 2 or not isinstance(reference, str):
        raise BadInput(
            f"The parts file {path} needs `targets:`, a list of two or more, and `reference:`, a Python file."
        )
    parts = []
    for name in targets:
        champion = champion_of(str(name))
        if champion is None or champion.origin != "promoted":
            raise Refused(f"State 5 combines promoted champions, and {name} has none yet; promote one first.")
        parts.append(Part(target=str(name), champion=champion.id, language=champion.language, source=champion.source))
    return Parts(champions=tuple(parts), reference=read_text(path.parent / reference, "composed reference"))
