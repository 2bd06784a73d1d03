"""Whether a candidate's header says the truth: every statement in it that the generation's events can prove or refute.

The header of a file on disk may have been edited; the model never writes it. A header that lies is a finding of L0.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernelgen.candidates import read_back, read_header
from kernelgen.errors import BadInput
from kernelgen.eventlog.store import EventLog
from kernelgen.events import CandidateGenerated, GenerationRequested, ReplyReceived
from kernelgen.ids import digest_text
from kernelgen.records import Ask, Finding


@dataclass(frozen=True)
class HeaderFacts:
    """What the header must say, by its keys; lines as `read_header` gives them."""

    values: dict[str, tuple[str, ...]]
    """Key and lines."""
    override_ids: tuple[str, ...] = ()
    """Soft constraints set aside, in order; the reasons are the model's words."""
    source: str = ""
    """Digest of the model's part that the generation logged."""


def facts_of(log: EventLog, asked: GenerationRequested, generated: CandidateGenerated, ask: Ask) -> HeaderFacts:
    """What the events of a generation say."""
    replies = (row.event for row in log.iteration(asked.iteration_id))
    reply = next(
        event.text for event in replies if isinstance(event, ReplyReceived) and event.attempt == generated.attempt
    )
    logged = log.text(next(iter(generated.files.values())))
    values = {
        "candidate": (asked.iteration_id,),
        "target": (asked.target,),
        "state": (str(asked.state),),
        "state chosen by": (asked.chosen_by,),
        "dsl": (ask.approach.dsl,),
        "entry point": (ask.target.entry_point,),
        "hypothesis": tuple(generated.hypothesis.split("\n")),
        "prompt": (asked.messages,),
        "reply": (reply,),
        "constraints honoured": generated.honoured,
        "constraints left out": ask.selection.left_out,
        "constraints applied": tuple(
            f"{entry.severity} {', '.join(entry.ids)}: {entry.statement}" for entry in ask.selection.chosen
        ),
    }
    return HeaderFacts(values, generated.overridden, digest_text(read_back(logged).kernel.code))


def check_header(text: str, about: HeaderFacts) -> list[Finding]:
    """Where the header of a candidate's text differs from the facts, a finding each; empty where it is true."""
    try:
        said, part = read_header(text), read_back(text)
    except BadInput as error:
        return [Finding(check="header.missing", reason=str(error))]
    found = [
        _lie(key, wanted, said.get(key, ())) for key, wanted in about.values.items() if said.get(key, ()) != wanted
    ]
    overridden = tuple(line.partition(":")[0] for line in said.get("overrides", ()))
    if overridden != about.override_ids:
        found.append(_lie("overrides", about.override_ids, overridden))
    source = digest_text(part.kernel.code)
    if source != about.source:
        reason = "The model's part is not the one that the generation logged; restore the file from the log."
        found.append(
            Finding(check="header.model_part", reason=reason, detail=f"logged {about.source}\nhere   {source}")
        )
    elif said.get("model part") != (source,):
        found.append(_lie("model part", (source,), said.get("model part", ())))
    return found


def _lie(key: str, wanted: tuple[str, ...], said: tuple[str, ...]) -> Finding:
    """One line of the header that is not true."""
    place = next((i for i, (a, b) in enumerate(zip(wanted, said, strict=False)) if a != b), min(len(wanted), len(said)))
    should = wanted[place] if place < len(wanted) else "nothing more"
    does = said[place] if place < len(said) else "nothing"
    return Finding(
        check=f"header.{key.replace(' ', '_')}",
        reason=f"The header's '{key}' is not true: it says {does!r}, and the log says {should!r}.",
        detail="\n".join(["the log:", *wanted, "the header:", *said]),
    )
