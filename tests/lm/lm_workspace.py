"""A folder in which `kernelgen generate` can run, what it does there, and everything it left behind."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from kernelgen import cli
from kernelgen.eventlog.store import EventLog
from kernelgen.events import Event, GenerationFailed, stored_texts

TARGET = "moe_dispatch_384expert"
PROFILE = Path(__file__).resolve().parents[2] / "examples" / "profiles" / f"{TARGET}.ncu_raw.csv"
REPLY = f"""[HYPOTHESIS]
Fewer launches.

[KERNEL]
Entry point: {TARGET}
```python
def {TARGET}(**inputs):
    raise NotImplementedError
```
"""


class Workspace:
    """One folder, and the command line run in it."""

    def __init__(self, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.shown = ""
        """Everything that was printed, both streams."""
        self._capfd = capfd

    def run(self, *arguments: str) -> int:
        self._capfd.readouterr()
        code = cli.main(arguments)
        self.shown += "".join(self._capfd.readouterr())
        return code

    def generate(self, *overrides: str) -> int:
        return self.run("generate", "judge=none", f"target={TARGET}", "state=1", *overrides)

    def events(self, *kinds: str) -> list[Event]:
        with EventLog.read(self.folder / "events.db") as log:
            return [row.event for row in log.rows(kinds=kinds or None)]

    def causes(self) -> list[str]:
        return [event.cause for event in self.events("generation_failed") if isinstance(event, GenerationFailed)]

    def replays(self) -> bool:
        return self.run("replay", "--all") == 0 and self.run("log", "verify") == 0

    def everything(self) -> str:
        """All texts that are anywhere: the log's events and stored texts, every other file, and what was printed."""
        with EventLog.read(self.folder / "events.db") as log:
            rows = list(log.rows())
            texts = [log.text(ref) for row in rows for ref in stored_texts(row.event)]
        events = [json.dumps(row.event.model_dump(mode="json"), ensure_ascii=False) for row in rows]
        files = [path.read_bytes().decode("utf-8", "replace") for path in self.folder.rglob("*") if path.is_file()]
        return "\n".join([*events, *texts, *files, self.shown])


def prepare(folder: Path) -> None:
    """Constraints and a profile, for copies to begin from."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert cli.main(["constraints", "seed", "hardware=h200"]) == 0
        assert cli.main(["profile", "import", str(PROFILE), f"target={TARGET}", "shape=t4096"]) == 0


def copy(prepared: Path, folder: Path) -> Path:
    shutil.copytree(prepared, folder, dirs_exist_ok=True)
    return folder
