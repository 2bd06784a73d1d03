"""Verdict lines that were brought back before, as answers to the jobs of a round: a campaign without a GPU.

A line of this very bundle is taken as it is. Another one answers a job where the same text was measured against the
same champion, on the card that the job is for; it is then told again as this job's line, with the line it came from in
its machine. Of several that fit the first counts, or the best of many tries would win; a further one answers where the
candidate was sent once more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from kernelgen.campaign.cost import RECORDED
from kernelgen.errors import BadInput
from kernelgen.ladder.results import Result
from kernelgen.ladder.work import lines
from kernelgen.ladder.work.jobs import Job
from kernelgen.ladder.work.levels import same_card
from kernelgen.ladder.work.lines import Line

MEASURED = ("L3", "L4")
DECIDED = ("passed", "failed", "suspect")


class Recorded:
    """Recorded lines."""

    def __init__(self, texts: Iterable[str]) -> None:
        """Of the lines of a file; what cannot be read is in `unread`."""
        self.unread: list[str] = []
        self._texts: dict[tuple[str, int], str] = {}
        self._lines: list[Line] = []
        for number, text in enumerate(texts, 1):
            if text.strip():
                self._take(number, text)

    def _take(self, number: int, text: str) -> None:
        try:
            line = lines.parsed(text)
        except BadInput as error:
            self.unread.append(f"line {number}: {error}")
            return
        self._texts.setdefault((line.bundle, line.job), text)
        self._lines.append(line)

    def answer(self, bundle: str, job: Job, used: Collection[str] = ()) -> str | None:
        """The line of a job, or None where none fits; `used` are digests of lines that its candidate had before."""
        own = self._texts.get((bundle, job.number))
        if own is not None:
            return own
        found = next((line for line in self._lines if line.digest not in used and _fits(line, job)), None)
        if found is None:
            return None
        machine = {**found.machine, RECORDED: found.digest}
        return lines.line(bundle, job, [_of_this_job(result, job) for result in found.results], machine)


def _fits(line: Line, job: Job) -> bool:
    """Whether a line tells of this candidate against this champion, on such a card."""
    if job.champion is None or line.champion is None:
        return False
    if (line.candidate, line.champion[1]) != (job.digest, job.champion.digest):
        return False
    was_measured = any(result.level in MEASURED and result.outcome in DECIDED for result in line.results)
    return not was_measured or same_card(job, line.machine.get("gpu", ""), job.subject.goal.compute_capability)


def _of_this_job(result: Result, job: Job) -> Result:
    """A result with the champion's id as this log has it: the source is the same."""
    if job.champion is None or "champion" not in result.details:
        return result
    champion = {"id": job.champion.id, "digest": job.champion.digest}
    return replace(result, details={**result.details, "champion": champion})
