"""What the playbook reads from a prompt: the text of docs/formats.md and nothing else.

Sections begin with their heading at the start of a line outside fences; lines nobody expects are passed over. What an
answer cannot do without (state, target, DSL, entry point, architecture, champion) must be there: where it is not,
NoPlay names it. The first section of a name counts, so that messages of a re-ask change nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from pydantic import TypeAdapter, ValidationError

from kernelgen.constraints.render import HEADINGS, read_entry
from kernelgen.errors import NoPlay
from kernelgen.records import AutotuneConfig

_SECTION = re.compile(r"\[(CONSTRAINTS|PROFILE|CHAMPION|STATE VECTOR|TASK)\b[^\]]*\]")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_HARDWARE = re.compile(r"^\[SYSTEM\].* optimizing for (?P<title>.+) \((?P<arch>\w+)\)\.", re.MULTILINE)
_STATE = re.compile(r"^You are at State (\d)\b", re.MULTILINE)
_CHAMPION = re.compile(r"^Champion: (?P<id>\S+) .*?, (?P<language>\w+), entry point (?P<entry>\w+)", re.MULTILINE)
_ATTEMPT = re.compile(r"^- State (?P<state>\d), (?P<id>[^:\s]+): (?P<said>.*)$", re.MULTILINE)
_TENSOR = re.compile(r"^  (\w+): (\w+) \[", re.MULTILINE)
_CONFIGS_MARK = " configs: "
_CONFIGS = TypeAdapter(dict[str, tuple[AutotuneConfig, ...]])


@dataclass(frozen=True)
class HardConstraint:
    """One hard constraint of the prompt."""

    id: str
    """Its id."""
    rule: str | None
    """Its checkable rule, where it has one."""


@dataclass(frozen=True)
class PastAttempt:
    """One line of `Previous states attempted`."""

    state: int
    """Its state."""
    said: str
    """Outcome and reason; for a candidate its hypothesis."""
    configs: dict[str, tuple[AutotuneConfig, ...]]
    """The autotune configurations it tried, by kernel; empty where none are told."""


@dataclass(frozen=True)
class Request:
    """One prompt, as far as the playbook understands it."""

    state: int
    """State number, 0 to 5."""
    target: str
    """Target name."""
    dsl: str
    """What the kernel is to be written in."""
    entry_point: str
    """Host function to define."""
    hardware: str
    """The vendor's name of the GPU."""
    arch: str
    """Compiler target, as in `sm_90a`."""
    hard: tuple[HardConstraint, ...]
    """Hard constraints, in the prompt's order."""
    bottleneck: str
    """The profile's `Current bottleneck`, without its figures."""
    limiting: str
    """The profile's `Limiting factor`, without the metric."""
    champion_id: str
    """Id of the champion."""
    champion_language: str
    """python or cuda."""
    champion_source: str
    """Its source, ending in one newline."""
    attempts: tuple[PastAttempt, ...]
    """What was tried, oldest first."""
    dtypes: dict[str, str] = field(default_factory=dict)
    """torch's names of the dtypes of the entry point's tensors, as far as the task tells them."""

    def tried(self, kernel: str) -> list[AutotuneConfig]:
        """Every configuration of a kernel that earlier attempts list."""
        return [config for attempt in self.attempts for config in attempt.configs.get(kernel, ())]


def read(prompt: str) -> Request:
    """The request in a prompt. Raises NoPlay naming what is missing."""
    parts = _sections(prompt)
    for name in ("PROFILE", "CHAMPION", "STATE VECTOR", "TASK"):
        if name not in parts:
            raise NoPlay(f"The prompt has no [{name}] section: it is not laid out as docs/formats.md says.")
    champion = _search(_CHAMPION, parts["CHAMPION"], "a `Champion: ID (origin), LANGUAGE, entry point NAME` line")
    hardware = _search(_HARDWARE, prompt, "a [SYSTEM] sentence that names the hardware and its (arch)")
    state_text = parts["STATE VECTOR"]
    return Request(
        state=int(_search(_STATE, state_text, "a `You are at State N` line")[1]),
        target=_value("Target", parts["TASK"]),
        dsl=_value("DSL", parts["TASK"]),
        entry_point=_value("Entry point", parts["TASK"]),
        hardware=hardware["title"],
        arch=hardware["arch"],
        hard=_hard(parts.get("CONSTRAINTS", "")),
        bottleneck=_value("Current bottleneck", parts["PROFILE"]).partition(" (")[0],
        limiting=_value("Limiting factor", parts["PROFILE"]).partition(" [")[0].rstrip("."),
        champion_id=champion["id"],
        champion_language=champion["language"],
        champion_source=_first_block(parts["CHAMPION"]),
        attempts=tuple(_attempt(found) for found in _ATTEMPT.finditer(state_text)),
        dtypes=dict(_TENSOR.findall(parts["TASK"].partition("\nreturns")[0])),
    )


def _sections(prompt: str) -> dict[str, str]:
    """Bodies by section name, the first of each name; fences are jumped over."""
    found: dict[str, list[str]] = {}
    current: list[str] | None = None
    fence = ""
    for line in prompt.split("\n"):
        heading = None if fence else _SECTION.match(line)
        fence = _fence_after(line, fence)
        if heading:
            current = found.setdefault(heading[1], []) if heading[1] not in found else None
        elif current is not None:
            current.append(line)
    return {name: "\n".join(lines) for name, lines in found.items()}


def _fence_after(line: str, fence: str) -> str:
    """The fence that is open after a line; empty for none."""
    found = _FENCE.match(line)
    if found is None:
        return fence
    if not fence:
        return found[1]
    return "" if found[1].startswith(fence) and not found[2].strip() else fence


def _first_block(text: str) -> str:
    """What the first fenced block of a text holds."""
    lines: list[str] = []
    fence = ""
    for line in text.split("\n"):
        after = _fence_after(line, fence)
        if fence and not after:
            return "\n".join(lines) + "\n"
        if fence:
            lines.append(line)
        fence = after
    raise NoPlay("The [CHAMPION] section has no complete fenced source.")


def _search(pattern: re.Pattern[str], text: str, what: str) -> re.Match[str]:
    found = pattern.search(text)
    if found is None:
        raise NoPlay(f"The prompt lacks {what}.")
    return found


def _value(name: str, text: str) -> str:
    """What stands after `name:` at the start of a line."""
    return _search(re.compile(rf"^{name}: (.+)$", re.MULTILINE), text, f"a `{name}: …` line")[1].strip()


def _hard(text: str) -> tuple[HardConstraint, ...]:
    """The entries under the HARD heading."""
    entries: list[HardConstraint] = []
    severity = ""
    for line in text.split("\n"):
        severity = next((name for name, heading in HEADINGS.items() if line == heading), severity)
        entry = read_entry(line) if severity == "hard" else None
        if entry is not None:
            entries.append(HardConstraint(entry.id, entry.rule))
    return tuple(entries)


def _attempt(found: re.Match[str]) -> PastAttempt:
    """One attempt; its configs are the JSON object after the last mark, if that is one."""
    said, _, tail = found["said"].rpartition(_CONFIGS_MARK)
    try:
        configs = _CONFIGS.validate_json(tail) if said else {}
    except ValidationError:  # the words happen to stand in the reason
        said, configs = "", {}
    return PastAttempt(int(found["state"]), said or found["said"], configs)
