from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chat_server import request_of
from lm_workspace import Workspace, copy, prepare

from kernelgen.config import LmConfig
from kernelgen.lm import build, to_answer, translate
from kernelgen.records import Answer


@pytest.fixture(autouse=True)
def _direct(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def config() -> Callable[..., LmConfig]:
    def make(**changed: Any) -> LmConfig:
        base = {"name": "test", "door": "openai_compatible", "model": "big-model", "timeout_s": 5, "retries": 0}
        return LmConfig.model_validate(base | changed)

    return make


@pytest.fixture
def ask() -> Callable[..., Answer]:
    """Ask the config's model, as the generate verb does: the answer, or kernelgen's own error."""

    def asked(config: LmConfig, **doors: Any) -> Answer:
        lm = build(config, **doors)
        begun = time.monotonic()
        try:
            response = lm(request_of(lm.model))
        except Exception as error:  # noqa: BLE001 whatever it is, translate has to know it
            raise translate(error, config) from None
        return to_answer(response, config, time.monotonic() - begun)

    return asked


@pytest.fixture(scope="session")
def prepared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prepared")
    prepare(folder)
    return folder


@pytest.fixture
def workspace(
    prepared_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Workspace:
    """A folder with constraints and a profile, as the working folder."""
    monkeypatch.chdir(copy(prepared_folder, tmp_path))
    return Workspace(tmp_path, capfd)
