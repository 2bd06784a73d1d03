"""The lines that a worker leaves, one a job: written whole and on the disk before the next job begins.

`kept` reads what an earlier run left: a line that is cut, or belongs to another bundle, counts for nothing. `parsed`
is the one reader of a line, here and where verdicts are ingested.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from kernelgen.errors import BadInput
from kernelgen.ladder.results import Result, result_from
from kernelgen.ladder.work.jobs import FORMAT, LEVELS, Job
from kernelgen.ladder.work.sums import canonical, digest_text

FIELDS = frozenset({"format", "bundle", "job", "iteration_id", "candidate", "champion", "results", "machine", "line"})
OUTCOMES = ("passed", "failed", "suspect", "inconclusive")


@dataclass(frozen=True)
class Line:
    """One job's outcome."""

    bundle: str
    """Id of the bundle."""
    job: int
    """The job's number in it."""
    iteration_id: str
    """The candidate."""
    candidate: str
    """Digest of the text that was judged."""
    champion: tuple[str, str] | None
    """Id and digest of what it was measured against; None below L3."""
    results: tuple[Result, ...]
    """Of each level, in order."""
    machine: dict[str, str]
    """Where it was judged."""
    digest: str
    """Of the line itself."""


def line(bundle: str, job: Job, results: Sequence[Result], machine: dict[str, str]) -> str:
    """The line of a job's outcome, without its line break."""
    champion = None if job.champion is None else {"id": job.champion.id, "digest": job.champion.digest}
    record = {
        "format": FORMAT,
        "bundle": bundle,
        "job": job.number,
        "iteration_id": job.iteration_id,
        "candidate": job.digest,
        "champion": champion,
        "results": [result.as_dict() for result in results],
        "machine": machine,
    }
    plain = _finite(record)
    return json.dumps({**plain, "line": digest_text(canonical(plain))}, sort_keys=True, separators=(",", ":"))


def parsed(text: str) -> Line:
    """A line as its parts. Raises BadInput where it is cut, changed, or of another form."""
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"it is no whole line of a worker ({error})") from error
    if not isinstance(record, dict) or set(record) != FIELDS:
        raise BadInput("it has other fields than a worker's line")
    if record["format"] != FORMAT:
        raise BadInput(f"it has format {record['format']}, and this kernelgen reads {FORMAT}")
    try:
        if digest_text(canonical({name: value for name, value in record.items() if name != "line"})) != record["line"]:
            raise BadInput("it is not as the worker wrote it: its own digest differs")
        return _checked(record)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadInput(f"its fields have another form ({type(error).__name__}: {error})") from error


def kept(path: Path, bundle: str) -> dict[int, str]:
    """The whole lines of a bundle in a file, by job; a file that ends within a line is cut back to its last whole one.

    Raises BadInput where the file cannot be read or written.
    """
    try:
        data = path.read_bytes() if path.exists() else b""
        whole, end, rest = data.rpartition(b"\n")
        if rest:
            with path.open("r+b") as file:
                file.truncate(len(whole) + len(end))
                os.fsync(file.fileno())
    except OSError as error:
        raise BadInput(f"{path} cannot be used for the worker's lines: {error.strerror}.") from error
    found = {}
    for text in whole.decode("utf-8", "replace").split("\n"):
        try:
            one = parsed(text)
        except BadInput:
            continue  # its job is done again
        if one.bundle == bundle:
            found[one.job] = text
    return found


def append(file: BinaryIO, text: str) -> None:
    """Write a line and wait until it is on the disk, where the file is on one."""
    file.write(text.encode("utf-8") + b"\n")
    file.flush()
    try:
        os.fsync(file.fileno())
    except OSError:  # a pipe or a terminal keeps nothing
        return


def _finite(value: Any) -> Any:
    """The value as JSON of every reader can hold it: numbers that are not finite become their names."""
    if isinstance(value, dict):
        return {str(name): _finite(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _checked(record: dict[str, Any]) -> Line:
    """The parts, each of its type. Raises KeyError, TypeError or ValueError."""
    results = tuple(result_from(result) for result in record["results"])
    levels = [result.level for result in results]
    if not levels or levels != list(LEVELS[: len(levels)]):
        raise ValueError(f"levels {levels} are not L1 and what follows it")
    if any(result.outcome not in OUTCOMES for result in results):
        raise ValueError("an outcome is none that a level has")
    if any(result.outcome in ("failed", "suspect") for result in results[:-1]):
        raise ValueError("it goes on behind a level that refuses the candidate")
    champion = record["champion"]
    if len(levels) >= LEVELS.index("L3") + 1 and champion is None:
        raise ValueError("it was measured against no champion")
    return Line(
        bundle=_text(record["bundle"]),
        job=_number(record["job"]),
        iteration_id=_text(record["iteration_id"]),
        candidate=_text(record["candidate"]),
        champion=None if champion is None else (_text(champion["id"]), _text(champion["digest"])),
        results=results,
        machine={_text(name): _text(value) for name, value in record["machine"].items()},
        digest=record["line"],
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise TypeError(f"{value!r} is no number of a job")
    return value
