"""A reply in the form of docs/formats.md: hypothesis, kernel, autotune table, honoured constraints, no overrides."""

from __future__ import annotations

import json
import re

from kernelgen.playbook.reading import Request
from kernelgen.records import AutotuneConfig


def render(request: Request, hypothesis: str, source: str, configs: dict[str, list[AutotuneConfig]]) -> str:
    """The reply's text; every hard constraint of the prompt is honoured, since no configuration is kept against one."""
    longest = max((len(run) for run in re.findall(r"`+", source)), default=0)
    fence = "`" * max(3, longest + 1)
    table = ",\n".join(f"  {json.dumps(kernel)}: {_rows(rows)}" for kernel, rows in configs.items())
    honoured = json.dumps([constraint.id for constraint in request.hard])
    return "\n".join(
        [
            "[HYPOTHESIS]",
            " ".join(hypothesis.split()),
            "",
            "[KERNEL]",
            f"Entry point: {request.entry_point}",
            f"{fence}python",
            source.rstrip("\n"),
            fence,
            "",
            "[AUTOTUNE]",
            "```json",
            f"{{\n{table}\n}}" if table else "{}",
            "```",
            "",
            "[HONOURED]",
            "```json",
            honoured,
            "```",
            "",
            "[OVERRIDES]",
            "```json",
            "[]",
            "```",
            "",
        ]
    )


def _rows(rows: list[AutotuneConfig]) -> str:
    return "[\n" + ",\n".join(f"    {json.dumps(row.model_dump())}" for row in rows) + "\n  ]"
