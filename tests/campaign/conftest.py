"""Working folders with seeded constraints and a real profile."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.campaign.campaign_desk import ROOT, SHAPE, TARGET, Desk


@pytest.fixture(scope="session")
def seeded_campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that is made once."""
    desk = Desk(tmp_path_factory.mktemp("seeded_campaign"))
    desk.command("constraints", "seed", "hardware=h200")
    profile = str(ROOT / "examples" / "profiles" / f"{TARGET}.ncu_raw.csv")
    desk.command("profile", "import", profile, f"target={TARGET}", f"shape={SHAPE}")
    return desk.folder


@pytest.fixture
def new_desk(seeded_campaign: Path, tmp_path: Path) -> Callable[[str], Desk]:
    """Makes fresh copies of it by name."""

    def made(name: str) -> Desk:
        folder = tmp_path / name
        folder.mkdir()
        for path in seeded_campaign.iterdir():
            if path.is_file():
                shutil.copy(path, folder)
        desk = Desk(folder)
        desk.command("log", "adopt")
        return desk

    return made


@pytest.fixture
def desk(new_desk: Callable[[str], Desk]) -> Desk:
    return new_desk("work")
