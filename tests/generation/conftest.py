"""A workspace with seeded constraints and both real profiles, and the command line run in it."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kernelgen import cli
from kernelgen.eventlog.store import EventLog

ROOT = Path(__file__).resolve().parents[2]
PROFILES = ROOT / "examples" / "profiles"
TARGETS = {"moe_dispatch_384expert": "t4096", "mla_decode_fp8": "b64_s4096_h64"}


def kernelgen(*arguments: str) -> int:
    """One command in the working folder; its exit code."""
    return cli.main(list(arguments))


@pytest.fixture(scope="session")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that is made once: constraints seeded, both profiles imported."""
    folder = tmp_path_factory.mktemp("seeded")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert kernelgen("constraints", "seed", "hardware=h200") == 0
        for target, shape in TARGETS.items():
            file = str(PROFILES / f"{target}.ncu_raw.csv")
            assert kernelgen("profile", "import", file, f"target={target}", f"shape={shape}") == 0
    return folder


@pytest.fixture
def workspace(seeded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh copy of it, as the working folder."""
    folder = tmp_path / "work"
    folder.mkdir()
    for path in seeded.iterdir():
        if path.is_file():
            shutil.copy(path, folder)
    assert kernelgen("log", "adopt", f"events={folder / 'events.db'}") == 0
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def generated(workspace: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., dict[str, Any]]:
    """`generate --json` with overrides: the printed record."""

    def run(*overrides: str, code: int = 0) -> dict[str, Any]:
        capsys.readouterr()
        assert kernelgen("generate", "judge=none", "--json", *overrides) == code
        record: dict[str, Any] = json.loads(capsys.readouterr().out)
        return record

    return run


@contextmanager
def log(folder: Path) -> Iterator[EventLog]:
    with EventLog.read(folder / "events.db") as found:
        yield found


def kinds(folder: Path) -> list[str]:
    """Kinds of the events since the workspace was seeded."""
    with log(folder) as found:
        return [
            row.event.kind for row in found.rows() if row.event.kind not in ("constraint_added", "profile_imported")
        ]


SOURCES = {
    "triton": "import torch\nimport triton\n\n\ndef {entry}(**inputs):\n    return tuple(inputs.values())\n",
    "tilelang": "import tilelang\nimport torch\n\n\ndef {entry}(**inputs):\n    return tuple(inputs.values())\n",
    "cuda": '#include <cuda_runtime.h>\n\nextern "C" int {entry}(void* stream) {{\n    return 0;\n}}\n',
}


def scripted_reply(prompt: str, **changes: Any) -> str:
    """A reply in the right form to any prompt, in the DSL it asks for; a stand-in for a model, no good kernel."""
    entry = re.search(r"^Entry point: (\w+)$", prompt, re.M)
    dsl = re.search(r"^DSL: (\w+)$", prompt, re.M)
    assert entry is not None, "the prompt names the entry point"
    assert dsl is not None, "the prompt names the DSL"
    source = SOURCES[dsl[1]].format(entry=entry[1])
    parts = {
        "HYPOTHESIS": "Fewer launches.",
        "KERNEL": f"Entry point: {entry[1]}\n```{'cuda' if dsl[1] == 'cuda' else 'python'}\n{source}```",
        "OVERRIDES": f"```json\n{json.dumps(changes.pop('overrides', []))}\n```",
        **changes,
    }
    return "\n\n".join(f"[{name}]\n{body}" for name, body in parts.items() if body is not None)
