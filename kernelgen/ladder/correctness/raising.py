"""What candidate code raised, told for a record: frames of its own file alone, which goes by its name.

Also cuts the stack that a dying process printed, and tells what Triton's interpreter lacks from what a candidate does
wrong: `lacking` names the construct.
"""

from __future__ import annotations

import re
import traceback
from pathlib import Path
from typing import Any

from kernelgen.ladder.reasons import explain, shorten

DETAIL_LENGTH = 20_000
# a builtin that the interpreter does not put its own in place of
UNPATCHED = "Did you forget to add @triton.jit"
INTERPRETER = "triton/runtime/interpreter.py"
# as faulthandler prints them
_FRAME = re.compile(r'^\s*File "(?P<file>[^"]*)", line (?P<line>\d+) in (?P<name>.*)$')
_NOISE = ("Extension modules:", "  <no Python frame>", "  ...")


class NotInterpreted(NotImplementedError, AttributeError):
    """Triton's interpreter has no such construct; the message names it."""


def told(error: BaseException, file: str, lines_above: int) -> dict[str, Any]:
    """In a line, whole, the candidate's line that was left last, and what the interpreter lacks where it is that."""
    said = f"called sys.exit({error.code!r})" if isinstance(error, SystemExit) else shorten(explain(error))
    line, lacks = None, None
    link: BaseException | None = error
    while link is not None:
        frames = traceback.extract_tb(link.__traceback__)
        numbers = [frame.lineno for frame in frames if frame.filename == file and frame.lineno]
        line = numbers[-1] - lines_above if numbers else line
        lacks = lacking(link, frames) or lacks
        link = link.__cause__ or link.__context__
    detail = _own_frames(error, file, lines_above)[-DETAIL_LENGTH:]
    return {"failure": said.replace(f"{Path(file).parent}/", ""), "detail": detail, "line": line, "lacks": lacks}


def lacking(error: BaseException, frames: traceback.StackSummary) -> str | None:
    """The construct that Triton's interpreter has not, where that is what this error says."""
    if isinstance(error, NotInterpreted):
        return str(error)
    last = frames[-1] if frames else None
    if last is None or "/triton/" not in last.filename:
        return None
    if isinstance(error, NotImplementedError) and last.filename.endswith(INTERPRETER):
        return str(error).partition(" ")[0]
    if isinstance(error, ValueError) and UNPATCHED in str(error):
        return next((frame.line for frame in reversed(frames) if "/triton/" not in frame.filename), "such builtin")
    return None


def _own_frames(error: BaseException, file: str, lines_above: int) -> str:
    """A traceback of the candidate's frames alone."""
    whole = traceback.TracebackException.from_exception(error)
    part: traceback.TracebackException | None = whole
    seen = set()
    while part is not None and id(part) not in seen:
        seen.add(id(part))
        own = [frame for frame in part.stack if frame.filename == file]
        part.stack = traceback.StackSummary.from_list(
            [(Path(file).name, (frame.lineno or 0) - lines_above, frame.name, frame.line) for frame in own]
        )
        part = part.__cause__ or part.__context__
    return "".join(whole.format()).replace(f"{Path(file).parent}/", "")


def own_output(output: str, name: str, lines_above: int) -> str:
    """What a process printed, without the judge's frames where a stack is part of it."""
    kept = []
    for text in output.splitlines():
        frame = _FRAME.match(text)
        if frame is None:
            kept += [] if text.startswith(_NOISE) else [text]
        elif Path(frame["file"]).name == name:
            kept.append(f'  File "{name}", line {int(frame["line"]) - lines_above} in {frame["name"]}')
    return "\n".join(kept)
