"""What candidate code raised, in one line for a person and whole for a record. Imports nothing heavy."""

from __future__ import annotations

import re
import traceback
from pathlib import Path
from types import TracebackType

LINE_LENGTH = 300
# how Triton's compiler begins: line and column within the kernel, then source and caret, then why
_PLACE = re.compile(r"^(?:\w+: )?at \d+:\d+:$")


class Attempt:
    """A `with` block around candidate code: whatever leaves it, `SystemExit` included, is a result and goes no further.

    `error` is what was raised, `failure` says it in one line and `detail` whole; all None where the block ran through.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self.error: BaseException | None = None
        self.failure: str | None = None
        self.detail: str | None = None

    def __enter__(self) -> Attempt:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if error is not None:
            self.error = error
            self.failure = one_line(error, self._file)
            self.detail = "".join(traceback.format_exception(error))
        return True


def explain(error: BaseException) -> str:
    """An error with its causes: Triton's compiler says where in the outer one and why in the inner."""
    parts: list[str] = []
    link: BaseException | None = error
    while link is not None:
        said = str(link).strip()
        if said and not any(said in part for part in parts):
            parts.append(f"{type(link).__name__}: {said}")
        link = link.__cause__
    return "\n".join(parts) or type(error).__name__


def shorten(explained: str) -> str:
    """The telling line of an explanation: place and reason of a compiler's error, else the first line."""
    lines = [line.strip() for line in explained.splitlines() if line.strip()]
    line = f"{lines[0]} {lines[-1]}" if _PLACE.match(lines[0]) and len(lines) > 1 else lines[0]
    return line if len(line) <= LINE_LENGTH else f"{line[: LINE_LENGTH - 1]}…"


def one_line(error: BaseException, file: Path) -> str:
    """An error in one line, with the line of the candidate's file that it left last."""
    said = f"called sys.exit({error.code!r})" if isinstance(error, SystemExit) else shorten(explain(error))
    frames = traceback.extract_tb(error.__traceback__)
    numbers = [frame.lineno for frame in frames if Path(frame.filename) == file]
    return f"{said} ({file.name}, line {numbers[-1]})" if numbers else said
