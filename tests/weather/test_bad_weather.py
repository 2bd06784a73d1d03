"""Full disks, folders that cannot be written, odd paths: one sentence or all of the work, and a log that verifies."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.weather.weather_makers import GENERATE, files, one_sentence, run, seed


@pytest.fixture(scope="module")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return seed(tmp_path_factory.mktemp("weather"))


def copied(seeded: Path, to: Path) -> Path:
    """The seeded workspace under another path."""
    to.mkdir(parents=True, exist_ok=True)
    for name in ("constraints.jsonl", "events.db", "events.db.head"):
        (to / name).write_bytes((seeded / name).read_bytes())
    return to


def verifies(folder: Path) -> None:
    done = run(folder, "log", "verify")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("limit", [0, 50, 4096])
def test_on_a_full_disk_no_constraint_file_and_no_log_is_begun_by_halves(tmp_path: Path, limit: int) -> None:
    one_sentence(run(tmp_path, "constraints", "seed", limit=limit))
    left = {name: (tmp_path / name).stat().st_size for name in files(tmp_path)}
    assert left.get("constraints.jsonl", 0) == 0, left
    assert run(tmp_path, "constraints", "seed").returncode == 0, "with room it goes on from what was left"
    verifies(tmp_path)


@pytest.mark.parametrize("room", [0, 4096, 20_000, 60_000])
def test_a_generation_on_a_full_disk_writes_nothing_by_halves_and_the_next_goes_on(
    seeded: Path, tmp_path: Path, room: int
) -> None:
    folder = copied(seeded, tmp_path / "w")
    done = run(folder, *GENERATE, limit=max(path.stat().st_size for path in folder.iterdir()) + room)
    if done.returncode:
        one_sentence(done)
    verifies(folder)
    assert run(folder, *GENERATE).returncode == 0
    verifies(folder)
    assert run(folder, "replay", "--all").returncode == 0


def test_a_constraint_line_on_a_full_disk_is_whole_or_absent(seeded: Path, tmp_path: Path) -> None:
    folder = copied(seeded, tmp_path / "w")
    path = folder / "constraints.jsonl"
    before = path.read_bytes()
    # the log has room, the file that is added to has not
    path.write_bytes(before + b"\n" * 2_000_000)
    padded = path.stat().st_size
    one_sentence(
        run(folder, "constraints", "add", "severity=soft", "Small tiles.", limit=padded + 20), "constraints.jsonl"
    )
    assert path.stat().st_size == padded
    verifies(folder)


def test_a_folder_that_cannot_be_written_is_said_in_one_sentence(seeded: Path, tmp_path: Path) -> None:
    folder = copied(seeded, tmp_path / "w")
    (folder / "file").touch()
    one_sentence(run(folder, *GENERATE, "out=file"), "file")
    one_sentence(run(folder, "constraints", "seed", "events=file/events.db"), "file")
    one_sentence(run(folder, "constraints", "seed", "constraints=file/c.jsonl"), "c.jsonl")
    verifies(folder)


@pytest.fixture
def read_only(seeded: Path, tmp_path: Path) -> Path:
    """A workspace that another user may read and not write, under folders that they may enter."""
    folder = copied(seeded, tmp_path / "w")
    for path in folder.iterdir():
        path.chmod(0o444)
    folder.chmod(0o555)
    for parent in folder.parents:
        if parent == Path("/tmp"):
            break
        parent.chmod(parent.stat().st_mode | 0o555)
    if run(folder, "--version", root=False).returncode:
        pytest.skip("another user may not run this Python")
    if run(folder, "constraints", "seed", root=False).returncode == 0:
        pytest.skip("permissions do not hold here")
    return folder


def test_a_read_only_folder_can_be_read_and_refuses_to_be_written_in_one_sentence(read_only: Path) -> None:
    before = files(read_only)
    for arguments in (("log",), ("log", "verify"), ("profile",), ("headroom",), ("status",)):
        done = run(read_only, *arguments, root=False)
        assert done.returncode == 0, (arguments, done.stderr)
    one_sentence(run(read_only, *GENERATE, root=False), "events.db")
    one_sentence(run(read_only, "constraints", "seed", root=False), "events.db")
    assert files(read_only) == before


@pytest.mark.parametrize(
    "name",
    [
        b"with spaces and = and 'both' \"quotes\"",
        b"comma,colon:{brace}[bracket]$(x)${y}%20?#",
        "größe共有".encode(),
        b"latin-1 \xe9\xff",
        b"deep/" + b"/".join([b"d" * 50] * 4),
    ],
)
def test_a_whole_generation_works_under_an_odd_path(seeded: Path, tmp_path: Path, name: bytes) -> None:
    folder = copied(seeded, Path(os.fsdecode(os.path.join(os.fsencode(tmp_path), name))))
    done = run(folder, *GENERATE, "--json")
    assert done.returncode == 0, done.stderr
    assert Path(json.loads(done.stdout)["files"][0]).exists()
    verifies(folder)
    assert run(folder, "replay", "--all").returncode == 0


def test_a_path_longer_than_sqlite_takes_is_a_sentence(seeded: Path, tmp_path: Path) -> None:
    folder = copied(seeded, tmp_path / "/".join(["d" * 100] * 20))
    one_sentence(run(folder, *GENERATE), "events.db")


@pytest.mark.parametrize(
    "arguments",
    [
        ("log", b"events=no\xff\xfe.db"),
        ("constraints", "seed", b"constraints=no\xff/c.jsonl"),
        ("profile", "import", b"no\xff.csv", "target=mla_decode_fp8", "shape=b64_s4096_h64"),
        ("log", "events=" + "x" * 300),
        ("log", "events=" + "y/" * 3000 + "e.db"),
        ("champion", "import", "z" * 5000 + ".py", "target=mla_decode_fp8"),
        (*GENERATE, "pr=" + "p" * 300),
        (*GENERATE, b"lm=\xff"),
        (*GENERATE, b"shape=\xff"),
    ],
)
def test_a_path_that_is_not_there_or_cannot_be_is_refused_in_one_sentence(
    seeded: Path, tmp_path: Path, arguments: tuple[str | bytes, ...]
) -> None:
    folder = copied(seeded, tmp_path / "w")
    if any(isinstance(word, str) and word.startswith("pr=") for word in arguments):
        arguments = tuple("state=4" if word == "state=1" else word for word in arguments)
    one_sentence(run(folder, *arguments))
    verifies(folder)
