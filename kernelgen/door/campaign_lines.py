"""A campaign's progress for a person, a line for each thing that happens, and as JSON records, one a line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from shlex import quote
from typing import Any

from kernelgen.campaign import told
from kernelgen.campaign.settings import Campaign
from kernelgen.campaign.summary import Summary
from kernelgen.door.console import bold, coloured_outcome, complain, emit, good, warn

OPENING = 72
"""Characters of a hypothesis in a line."""
REASON = 160
"""Characters of a reason in a line."""
NAMES = {
    told.Judged: "judged",
    told.NoCandidate: "no_candidate",
    told.Note: "note",
    told.Waiting: "waiting",
    told.Ended: "ended",
}
"""`record` of each kind in JSON."""


def header(campaign: Campaign, model: str) -> tuple[dict[str, Any], str]:
    """What begins or goes on, as record and line."""
    settings = campaign.settings
    budget = [f"{settings.iterations} iterations"] if settings.iterations is not None else []
    budget += [f"{settings.minutes:g} minutes"] if settings.minutes is not None else []
    where = "measured here" if settings.gpu == "here" else f"rounds of {settings.round_size} for a GPU elsewhere"
    line = (
        f"{bold(campaign.id)}: {campaign.target} on {campaign.hardware}, lm={model}, at most "
        f"{' and '.join(budget)}, {where}{'' if settings.learned else ', without what verdicts taught'}"
    )
    record = {"record": "campaign", "campaign": campaign.id, "target": campaign.target, "hardware": campaign.hardware}
    return {**record, "lm": model, **asdict(settings)}, line


def tell(said: told.Told, campaign: Campaign, beside: Sequence[str], *, as_json: bool) -> None:
    """Print one thing that happened; a note goes to standard error.

    `beside` are the words that `kernelgen ingest` must be given too: places, policy, folders of configs.
    """
    if isinstance(said, told.Note) and not as_json:
        complain(said.text)
        return
    record = {"record": NAMES[type(said)], "campaign": campaign.id, **asdict(said)}
    emit(record, _line(said, beside), as_json=as_json)


def _line(said: told.Told, beside: Sequence[str]) -> str:
    if isinstance(said, told.Judged):
        return _judged(said)
    if isinstance(said, told.NoCandidate):
        return f"     state {said.state}  {warn('no candidate')}: {_cut(said.why, REASON)}"
    if isinstance(said, told.Waiting):
        return _waiting(said, beside)
    return "" if isinstance(said, told.Note) else f"{good('over')}: {said.why}"


def _judged(said: told.Judged) -> str:
    ratio = "" if said.ratio is None else f"  {said.ratio:.3f} x"
    head = f"{said.number:4} state {said.state}  {said.level} {coloured_outcome(said.outcome)}{ratio}"
    lines = [f"{head}  {_cut(said.hypothesis, OPENING)}"]
    if said.outcome != "passed":
        lines.append(f"       {_cut(said.reason, REASON)}")
    if said.learned:
        lines.append(f"       learned {', '.join(said.learned)}")
    return "\n".join(lines if said.promotion is None else [*lines, f"       {said.promotion}"])


def _waiting(said: told.Waiting, beside: Sequence[str]) -> str:
    verdicts = str(Path(said.folder) / "verdicts.jsonl")
    return "\n".join(
        [
            f"{warn('waiting')} for verdicts of round {said.round}: {len(said.candidates)} of {said.of} candidates",
            f"  copy {said.folder} to the machine with the GPU, and there:",
            f"    cd {quote(Path(said.folder).name)} && python -m kernelgen_worker out=verdicts.jsonl",
            "  then here, with the file brought back:",
            f"    kernelgen ingest {' '.join(map(quote, (verdicts, *beside)))}",
            "  and the same command again goes on",
        ]
    )


def tell_summary(summary: Summary, *, as_json: bool) -> None:
    """Print what came of a campaign."""
    emit({"record": "summary", **asdict(summary)}, _summary(summary), as_json=as_json)


def _summary(summary: Summary) -> str:
    ended = "open" if summary.ended is None else f"{summary.cause}: {summary.ended}"
    gain = "" if summary.over_first is None else f", {summary.over_first:.3f} x the first of its line"
    share = "" if summary.share_of_floor is None else f", at {summary.share_of_floor:.1%} of its floor"
    lines = [
        f"{bold(summary.campaign)}: {summary.target} on {summary.hardware}; {ended}",
        f"  champion {summary.champion}{gain}{share}",
        *(f"  {line}" for line in _champions(summary)),
        f"  {summary.iterations} asked, {summary.candidates} candidates, {summary.measured} measured, "
        f"{summary.rounds} rounds; {summary.gpu_seconds:.1f} GPU seconds, {summary.minutes:.1f} minutes of asking and "
        "judging",
        f"  learned {len(summary.constraints_learned)} constraints"
        f"{_listed(summary.constraints_learned)}; {summary.prompts_with_learned} prompts carried what verdicts taught",
        f"  pruned by a learned rule before any GPU time: {len(summary.pruned)} candidates"
        f"{_listed(tuple(f'{id} by {rule}' for id, rule in summary.pruned.items()))}, "
        f"{summary.configurations_pruned} configurations of others",
    ]
    return "\n".join(lines)


def _champions(summary: Summary) -> list[str]:
    lines = []
    for one in summary.champions:
        ratio = "" if one.ratio is None else f" {one.ratio:.3f} x"
        times = ", ".join(f"{shape} {us:.4g} us" for shape, us in one.times_us.items())
        fate = "" if one.fate == "stands" else f" ({one.fate.replace('_', ' ')})"
        lines.append(f"  {one.champion} over {one.over}{ratio}{fate}, after {one.gpu_seconds:.1f} GPU seconds; {times}")
    return lines


def _listed(names: tuple[str, ...]) -> str:
    return f" ({', '.join(names)})" if names else ""


def _cut(text: str, most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
