"""Prompt texts in the form of docs/formats.md, written by hand: a change of the prompt's code cannot hide here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CHAMPIONS = ROOT / "kernelgen" / "targets" / "champions"
TARGETS = ("moe_dispatch_384expert", "mla_decode_fp8")

PROMPT = """[SYSTEM] You are a GPU kernel engineer optimizing for NVIDIA H200 SXM (sm_90a).

Be brief.

[CONSTRAINTS — from database, always injected]
HARD: cannot be overridden
{hard}
SOFT: prefer to avoid unless you have a specific reason
- (c_soft) Eight warps were slower. [rule: num_warps < 8]
POSITIVE: this approach worked before
- none

[PROFILE — from /profile-kernel output]
Current bottleneck: memory_bound (DRAM bandwidth 61 % of the ceiling)
Limiting factor: The gather waits for memory [long scoreboard: smsp = 7.1]
Target metric: time

[CHAMPION — current best]
Champion: {champion_id} (naive), {language}, entry point {target}
````python
{source}````
Performance: TFLOPS not measured, BW not measured, occupancy not measured

[STATE VECTOR — current approach]
You are at State {state}: an approach: its description
Instructions: do it
May change: much
Look at: all
{attempts}

[TASK]
Generate an optimized kernel that improves on the champion.
Explain your optimization hypothesis in the header comment.

Target: {target}
DSL: triton
Entry point: {target}

````text
[KERNEL]
Entry point: {target}
```python
the complete source
```
````
"""


def champion_source(target: str) -> str:
    return (CHAMPIONS / f"{target}.py").read_text("utf-8")


def prompt(state: int = 0, target: str = TARGETS[0], source: str | None = None, **changes: Any) -> str:
    """A prompt; `hard` is a list of (id, rule), `attempts` a list of (state, reason, configs)."""
    hard = [f"- ({name}) A limit. [rule: {rule}] [evidence: a log]" for name, rule in changes.pop("hard", [])]
    attempts = [
        f"- State {at}, g{number}: failed at L3: {reason}" + (f" configs: {json.dumps(configs)}" if configs else "")
        for number, (at, reason, configs) in enumerate(changes.pop("attempts", []))
    ]
    values = {"champion_id": "naive", "language": "python", **changes}
    return PROMPT.format(
        state=state,
        target=target,
        source=champion_source(target) if source is None else source,
        hard="\n".join(hard) or "- none",
        attempts="\n".join(["Previous states attempted:", *attempts]),
        **values,
    )


def block(reply: str, section: str, language: str) -> str:
    """The fenced block of one section of a reply."""
    _, _, rest = reply.partition(f"[{section}]\n")
    return rest.partition(f"```{language}\n")[2].partition("\n```")[0] + "\n"


def autotune_of(reply: str) -> dict[str, list[dict[str, Any]]]:
    """The [AUTOTUNE] section."""
    table: dict[str, list[dict[str, Any]]] = json.loads(block(reply, "AUTOTUNE", "json"))
    return table


def module_of(reply: str) -> str:
    """The reply's kernel with the table above it, as a candidate file has it."""
    lines = ["import triton", "AUTOTUNE_CONFIGS = {"]
    for kernel, rows in autotune_of(reply).items():
        configs = ", ".join(
            f"triton.Config({row['kwargs']!r}, num_warps={row['num_warps']}, num_stages={row['num_stages']})"
            for row in rows
        )
        lines.append(f"    {kernel!r}: [{configs}],")
    return "\n".join([*lines, "}", block(reply, "KERNEL", "python")])
