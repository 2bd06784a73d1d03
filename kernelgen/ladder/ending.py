"""How a child ended, as its keeper says it: cause, sentence, output, and what it attempted."""

from __future__ import annotations

import json
import signal
from dataclasses import dataclass, replace

from kernelgen.errors import HarnessError
from kernelgen.ladder.containment.limits import MIB, Limits
from kernelgen.ladder.containment.order import OUT_OF_MEMORY_CODE

EXITED, CRASHED, HUNG = "process.exited", "process.crashed", "process.hung"
FLOODED, OUT_OF_MEMORY, REACHED_OUT = "process.flooded", "process.out_of_memory", "process.reached_out"
# what a library may try by itself: a name service, a driver's helper
HARMLESS = frozenset({"open a unix socket", "open a netlink socket"})


@dataclass(frozen=True)
class Ended:
    """How a child ended."""

    cause: str | None
    """Check id, such as `process.crashed`; None where it ended with code 0, or lived until its session was closed."""
    sentence: str
    """In words: `killed by SIGSEGV`."""
    output: str
    """The end of what it printed, both streams together."""
    attempts: tuple[str, ...] = ()
    """What it tried that no honest kernel does, and was refused: `open a network socket`."""
    seconds: float = 0.0
    """Wall time of the session."""


class ChildEnded(Exception):
    """The child died, hung, flooded or sent what is no message; a result on the candidate."""

    def __init__(self, ended: Ended) -> None:
        super().__init__(ended.sentence)
        self.ended = ended
        self.cause = ended.cause or EXITED
        self.sentence = ended.sentence
        self.output = ended.output


def with_word(ended: Ended, said: bytes, limits: Limits) -> Ended:
    """What the parent saw, corrected by what the keeper said.

    Raises:
        HarnessError: the keeper could not set the session up.
    """
    word = json.loads(said)
    if "error" in word:
        raise HarnessError(f"A session could not be set up: {word['error']}")
    ended = replace(ended, attempts=tuple(word["attempts"]))
    if "limit" in word:
        cause, sentence = word["limit"]
        ended = replace(ended, cause=cause, sentence=sentence)
    elif "code" in word and ended.cause in (None, EXITED):
        cause, sentence = meaning(word["code"], limits)
        ended = replace(ended, cause=cause, sentence=sentence)
    telling = [attempt for attempt in ended.attempts if attempt not in HARMLESS]
    if telling and ended.cause is None:
        return replace(ended, cause=REACHED_OUT, sentence=f"tried to {', to '.join(telling)}")
    return ended


def meaning(code: int, limits: Limits) -> tuple[str | None, str]:
    """Cause and sentence of an exit code, negative for a signal; no cause for 0."""
    if code == OUT_OF_MEMORY_CODE:
        return OUT_OF_MEMORY, f"found no more memory: {limits.memory_bytes / MIB:g} MiB are allowed"
    if code >= 0:
        return (EXITED if code else None), f"ended with exit code {code}"
    if -code == signal.SIGXCPU:
        return HUNG, "used more processor time than it is allowed"
    try:
        name = signal.Signals(-code).name
    except ValueError:  # a real-time signal has no name
        name = f"signal {-code}"
    return CRASHED, f"killed by {name}"
