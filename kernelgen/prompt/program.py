"""Prompt programs: DSPy's saved state, read as data. No DSPy here.

The file is what `dspy.Predict(GenerateKernel).save(path)` writes. Taken from it are the instructions and the
demonstrations; each demonstration, inputs and outputs of the signature, is rendered as a message pair without section
headings, so that it can never stand in for a section of the request.
"""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

from kernelgen.errors import BadInput, ConfigError
from kernelgen.prompt import assemble
from kernelgen.prompt.inputs import ask_of
from kernelgen.prompt.markdown import fenced
from kernelgen.prompt.reply import write
from kernelgen.prompt.texts import fill
from kernelgen.prompt.wording import one_line
from kernelgen.records import Demonstration, Program, Reply

MEND = "save one with dspy.Predict(GenerateKernel).save(path)"


def load_program(name: str, path: Path) -> Program:
    """The program saved at `path`. Raises ConfigError where the file is missing, no saved state, or holds a section."""
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"Program {name}: {path} cannot be read ({error.strerror}); {MEND}.") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"Program {name}: {path} is not JSON ({error}); {MEND}.") from error
    try:
        instructions, demos = state["signature"]["instructions"], state["demos"]
    except (KeyError, TypeError) as error:
        raise ConfigError(f"Program {name}: {path} is not DSPy's saved state of one predictor; {MEND}.") from error
    try:
        return program_of(name, instructions, demos)
    except ConfigError:
        raise
    except BadInput as error:
        raise ConfigError(f"Program {name}: {path}: {error}") from error


def program_of(name: str, instructions: Any, demos: Any) -> Program:
    """A program of a signature's instructions and a predictor's demos. Raises BadInput where they cannot be used."""
    if not isinstance(instructions, str) or not isinstance(demos, list | tuple):
        raise BadInput("the instructions must be a text and the demos a list.")
    program = Program(
        name=name,
        # as DSPy reads them
        instructions=inspect.cleandoc(instructions),
        demonstrations=tuple(demonstration(demo, number) for number, demo in enumerate(demos, start=1)),
    )
    assemble.check(program)
    return program


def demonstration(demo: Any, number: int) -> Demonstration:
    """One demo as a message pair: one already, or a mapping of the signature's fields.

    Raises BadInput naming the field that is wrong.
    """
    if isinstance(demo, Demonstration):
        return demo
    try:
        fields = dict(demo)
        ask = ask_of(fields)
        answer = Reply.model_validate({name: fields[name] for name in Reply.model_fields if name in fields})
    except (TypeError, ValueError) as error:
        raise BadInput(f"demo {number} is not a mapping of the signature's fields.") from error
    except BadInput as error:
        raise BadInput(f"demo {number}: {error}") from error
    user = fill(
        "example",
        target=ask.target.name,
        hardware=f"{ask.hardware.title} ({ask.hardware.arch})",
        dsl=ask.approach.dsl,
        entry_point=ask.target.entry_point,
        state=f"{ask.approach.number} ({one_line(ask.approach.name)})",
        limiting_factor=one_line(ask.profile.limiting_factor.sentence),
        target_metric=one_line(ask.profile.target_metric),
        summary=ask.target.summary,
        signature=fenced(ask.target.signature, "text"),
    )
    return Demonstration(user=user, assistant=write(answer))
