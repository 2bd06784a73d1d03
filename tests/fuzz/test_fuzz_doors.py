"""Whatever comes through a door is taken, or refused in one sentence with nothing half-written."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from kernelgen.errors import BadInput, HarnessError
from tests.fuzz import fuzz_property
from tests.fuzz.__main__ import DOORS
from tests.fuzz.fuzz_property import TEST_CASES, Door, Hang, fuzz, hold


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.name)
def test_a_door_takes_or_refuses_in_one_sentence(door: Door, tmp_path: Path) -> None:
    least = 1 if fuzz_property.CASES in os.environ else TEST_CASES // 2
    assert fuzz(door, tmp_path) >= least


def _refuses(error: Exception, *, writes: bool = False) -> Door:
    def enter(_case: object, folder: Path) -> None:
        if writes:
            (folder / "half").touch()
        raise error

    return Door("broken", DOORS[0].cases, lambda _, folder: None, enter)


@pytest.mark.parametrize(
    "door",
    [
        _refuses(BadInput("")),
        _refuses(BadInput("not written"), writes=True),
        _refuses(HarnessError("kernelgen is broken")),
        _refuses(ZeroDivisionError()),
    ],
)
def test_the_property_finds_a_broken_door(door: Door, tmp_path: Path) -> None:
    with pytest.raises((AssertionError, ZeroDivisionError)):
        hold(door, b"", tmp_path / "case")


def test_the_property_stops_a_hang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz_property, "LIMIT_S", 0.05)
    slow = Door("slow", DOORS[0].cases, lambda _, folder: None, lambda _, folder: time.sleep(5))
    with pytest.raises(Hang):
        hold(slow, b"", tmp_path / "case")
