"""The prompt: from an Ask and a Program to messages, by text work alone. No DSPy.

Deterministic byte for byte: the same records give the same messages, which is what replay compares. The system
message begins with the specification's sentence, the user message has the five other sections in its order, under any
program; a program whose text could pass for a section is refused. Demonstrations are message pairs between the two.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from kernelgen.errors import ConfigError
from kernelgen.prompt import sections
from kernelgen.records import Ask, HardwareBrief, Program

Message = dict[str, str]
"""`role` and `content`, as chat models take them."""

_SECTION = re.compile(r"[^\w\[]*\[\s*(SYSTEM|CONSTRAINTS|PROFILE|CHAMPION|STATE\s+VECTOR|TASK)\b", re.IGNORECASE)


def messages(ask: Ask, program: Program, *, notes: Mapping[str, str] | None = None) -> list[Message]:
    """The messages of a request: system, the program's demonstrations, user.

    `notes` are further named texts for the end of [TASK], in the order given. Raises ConfigError for a program whose
    instructions or demonstrations hold a section heading.
    """
    check(program)
    pairs = [
        message
        for shown in program.demonstrations
        for message in (_message("user", shown.user), _message("assistant", shown.assistant))
    ]
    user = (
        sections.constraints(ask.selection),
        sections.profile(ask),
        sections.champion(ask.champion),
        sections.state_vector(ask.approach, ask.position),
        sections.task(ask, notes or {}),
    )
    return [
        _message("system", system(ask.hardware, program.instructions)),
        *pairs,
        _message("user", "\n\n".join(user)),
    ]


def system(hardware: HardwareBrief, instructions: str) -> str:
    """[SYSTEM]: the specification's sentence, then the program's instructions."""
    sentence = f"[SYSTEM] You are a GPU kernel engineer optimizing for {hardware.title} ({hardware.arch})."
    return f"{sentence}\n\n{instructions.strip()}" if instructions.strip() else sentence


def check(program: Program) -> None:
    """Raise ConfigError where a text of the program has a line that begins like a section of the prompt."""
    texts = {"instructions": program.instructions}
    for number, shown in enumerate(program.demonstrations, start=1):
        texts[f"demonstration {number} (user)"] = shown.user
        texts[f"demonstration {number} (assistant)"] = shown.assistant
    for place, text in texts.items():
        for line in text.splitlines():
            if found := _SECTION.match(line):
                raise ConfigError(
                    f"Program {program.name}: a line of the {place} begins with [{found[1]}, as only a section of the "
                    "prompt may; reword it."
                )


def _message(role: str, content: str) -> Message:
    return {"role": role, "content": content}
