"""The worker of a bundle: `cd DIR && python -m kernelgen_worker > verdicts.jsonl`, or with `out=verdicts.jsonl`.

It refuses a folder that is not as the bundle was made, then judges job after job, each in a process of its own, and
leaves one JSON line a job, on the disk before the next begins. Run again, it does what has no whole line yet. Needs
Python, torch and the DSL alone. Nothing a candidate does can end the run; what contains it is in every line.
"""

from __future__ import annotations

import fcntl
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import BinaryIO

from kernelgen.errors import BadInput, KernelgenError
from kernelgen.ladder import containment
from kernelgen.ladder.install import KERNELS_LINE
from kernelgen.ladder.results import Result
from kernelgen.ladder.work import lines, machine, sums
from kernelgen.ladder.work.jobs import Job, Work, read_work
from kernelgen.ladder.work.running import results_of

JOURNAL = "journal.jsonl"
"""Where the lines are kept when they go to the standard output: a resumed run prints them again."""
USAGE = "the worker takes out=FILE and containment=off, as in `python -m kernelgen_worker out=verdicts.jsonl`"
ALONE = "none (asked for)"


@dataclass(frozen=True)
class Options:
    """What the command line says."""

    out: Path | None = None
    """Where the lines go; None for the standard output."""
    contained: bool = True
    """Whether candidates are contained."""


def main(arguments: Sequence[str], folder: Path) -> int:
    """Judge what has no line yet; exit code 1 where the harness fell in a job, 2 where the bundle cannot be used."""
    try:
        return _run(_options(arguments), folder)
    except KernelgenError as error:
        print(f"kernelgen_worker: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("kernelgen_worker: interrupted; run it again, and it goes on from here.", file=sys.stderr)
        return 130


def _options(arguments: Sequence[str]) -> Options:
    """The options. Raises BadInput for others."""
    out, contained = None, True
    for argument in arguments:
        key, _, value = argument.partition("=")
        if key == "out" and value:
            out = Path(value).absolute()
        elif argument == "containment=off":
            contained = False
        elif argument != "containment=on":
            raise BadInput(f"There is no '{argument}': {USAGE}.")
    return Options(out, contained)


def _run(options: Options, folder: Path) -> int:
    differs = sums.wrong(folder)
    if differs is not None:
        raise BadInput(f"{differs}: bundle again, or copy the folder again.")
    bundle, work = sums.bundle_id(folder), read_work(folder, place=folder)
    if find_spec("torch") is None:
        raise BadInput(f"torch is not installed here: {KERNELS_LINE}")
    here = machine.described({"containment": _containment(options.contained)})
    path = options.out or folder / JOURNAL
    fallen = 0
    with _journal(path) as journal:
        kept = lines.kept(path, bundle)
        for job in work.jobs:
            text, whole = kept.get(job.number), True
            if text is None:
                results, whole = _judged(job, work, folder, here, options.contained)
                text = lines.line(bundle, job, *results)
                lines.append(journal, text)
                _tell(job, len(work.jobs), results[0])
            fallen += not whole
            if options.out is None:
                lines.append(sys.stdout.buffer, text)
    return 1 if fallen else 0


def _judged(
    job: Job, work: Work, folder: Path, here: dict[str, str], contained: bool
) -> tuple[tuple[list[Result], dict[str, str]], bool]:
    """The results and the machine while they came, and whether the harness lasted."""
    began, before = time.time(), machine.reading()
    results, whole = results_of(job, work.settings, folder, contained=contained)
    after = machine.reading()
    seen = {f"{name}_before": said for name, said in before.items()}
    seen |= {f"{name}_after": said for name, said in after.items()}
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(began))
    return (results, {**here, **seen, "judged_at": when}), whole


def _containment(contained: bool) -> str:
    """What contains candidates here. Raises BadInput where that does not suffice."""
    if not contained:
        return ALONE
    holds = containment.holds()
    missing = containment.broken(holds)
    if missing:
        raise BadInput(
            f"Candidates cannot be contained on this machine: {'; '.join(missing)}. containment=off judges without, "
            "and every line says so."
        )
    return containment.summary(holds)


@contextmanager
def _journal(path: Path) -> Iterator[BinaryIO]:
    """The file of lines, held against another worker. Raises BadInput where it cannot be used."""
    try:
        file = path.open("ab")
    except OSError as error:
        raise BadInput(f"{path} cannot be written ({error.strerror}); name another file with out=.") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise BadInput(f"Another worker writes {path} ({error.strerror}); wait for it, or end it.") from error
        if os.path.samestat(os.fstat(file.fileno()), os.fstat(sys.stdout.fileno())):
            raise BadInput(f"{path} is kept by the worker itself: name it with out= in place of redirecting to it.")
        yield file


def _tell(job: Job, count: int, results: Sequence[Result]) -> None:
    """A line for a person on standard error."""
    last = results[-1]
    print(f"{job.number}/{count} {job.iteration_id}: {last.level} {last.outcome}: {last.reason}", file=sys.stderr)
