"""Clocks that go back, and two versions of kernelgen on one log."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from kernelgen import cli, ids
from kernelgen.eventlog import migrations
from kernelgen.eventlog.store import EventLog
from kernelgen.events import RegionFrozen
from tests.weather.weather_makers import one_sentence, run


@pytest.fixture
def backwards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at the clock is an hour before the last."""
    moment = datetime(2026, 11, 30, 12, tzinfo=UTC)

    def earlier() -> datetime:
        nonlocal moment
        moment -= timedelta(hours=1)
        return moment

    monkeypatch.setattr(ids, "utc_now", earlier)
    monkeypatch.setattr("kernelgen.eventlog.store.utc_now", earlier)
    monkeypatch.setattr("kernelgen.door.constraints.utc_now", earlier)


@pytest.mark.usefixtures("backwards")
def test_ids_still_sort_as_they_were_made() -> None:
    made = [ids.new_id("g") for _ in range(20)]
    assert made == sorted(made)


@pytest.mark.usefixtures("backwards")
def test_the_log_keeps_its_order_and_verifies(tmp_path: Path) -> None:
    with EventLog.open(tmp_path / "events.db") as log:
        for number in range(5):
            log.append(RegionFrozen(target="t", hardware="h200", why=str(number)))
        rows = list(log.rows())
        assert [row.event.why for row in rows if isinstance(row.event, RegionFrozen)] == list("01234")
        assert all(before.time > after.time for before, after in pairwise(rows)), "the clock did go back"
        assert log.verify().problems == ()


@pytest.mark.usefixtures("backwards")
def test_what_happened_last_counts_whatever_the_clock_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for command in ("freeze", "unfreeze", "freeze"):
        assert cli.main([command, "mla_decode_fp8", "--why", f"{command} it"]) == 0
    assert cli.main(["unfreeze", "mla_decode_fp8", "--why", "done"]) == 0
    assert cli.main(["constraints", "add", "severity=soft", "Small tiles."]) == 0
    added = capsys.readouterr().out.split("added ")[1].split(":")[0]
    assert cli.main(["constraints", "retract", added, "--why", "wrong"]) == 0
    assert cli.main(["constraints", "list"]) == 0
    assert added not in capsys.readouterr().out.splitlines()[-1]


@pytest.fixture
def newer(tmp_path: Path) -> Path:
    """A log that a kernelgen of the next schema wrote."""
    with EventLog.open(tmp_path / "events.db") as log:
        log.append(RegionFrozen(target="t", hardware="h200", why="by the newer"))
    with sqlite3.connect(tmp_path / "events.db") as db:
        db.execute(f"PRAGMA user_version={len(migrations.scripts()) + 1}")
    db.close()
    return tmp_path


@pytest.mark.parametrize("command", ["log", "log verify", "log adopt", "constraints seed", "status"])
def test_the_older_kernelgen_says_upgrade_and_leaves_a_newer_log_alone(newer: Path, command: str) -> None:
    before = {path.name: path.read_bytes() for path in newer.iterdir()}
    one_sentence(run(newer, *command.split()), "newer kernelgen", "upgrade")
    assert {path.name: path.read_bytes() for path in newer.iterdir()} == before


def test_an_event_of_a_kind_that_came_later_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    payload = '{"hardware":"h200","kind":"later","target":"t"}'
    monkeypatch.setattr("kernelgen.eventlog.store.to_payload", lambda _event: payload)
    monkeypatch.setattr("kernelgen.eventlog.store.from_payload", lambda _text: event)
    event = RegionFrozen(target="t", hardware="h200", why="stands for one of a kind that came later")
    monkeypatch.setitem(event.__dict__, "kind", "later")  # the database holds that both places agree
    with EventLog.open(tmp_path / "events.db") as log:
        log.append(event)
    one_sentence(run(tmp_path, "log"), "events.db", "event 1")
    assert run(tmp_path, "log", "verify").returncode == 1
