"""A fresh log and a filled one."""

from __future__ import annotations

from pathlib import Path

import pytest
from eventlog_samples import reply, small

from kernelgen.eventlog import EventLog


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a log will be."""
    return tmp_path / "events.db"


@pytest.fixture
def filled(path: Path) -> Path:
    """A closed log of six events, the fourth with two texts."""
    with EventLog.open(path) as log:
        log.append_all([(small(number), ()) for number in range(3)])
        log.append(reply("g1", "the reply"), ["the reply", "[]"])
        log.append_all([(small(number), ()) for number in range(4, 6)])
    return path
