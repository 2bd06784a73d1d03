"""Tokens are counted offline, in a named encoding."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from kernelgen import tokens
from kernelgen.errors import ConfigError, HarnessError


@pytest.fixture
def fresh_encodings():
    """Nothing loaded before or after, here or in tiktoken."""
    import tiktoken.registry

    kept = dict(tiktoken.registry.ENCODINGS)
    for clear in (tiktoken.registry.ENCODINGS.clear, tokens._load.cache_clear, tokens._cached_count.cache_clear):
        clear()
    yield
    tiktoken.registry.ENCODINGS.update(kept)
    tokens._load.cache_clear()


@pytest.fixture
def no_network(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("the network was touched")

    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.mark.parametrize(("encoding", "expected"), [("o200k_base", 3), ("cl100k_base", 3)])
def test_a_known_text_has_its_known_count(encoding, expected):
    assert tokens.count("tl.dot(", encoding) == expected


def test_the_default_encoding_is_o200k_base():
    text = "Mehr Speicher für größere Kacheln: 共有メモリ"
    assert tokens.count(text) == tokens.count(text, "o200k_base") != tokens.count(text, "cl100k_base")


def test_special_tokens_are_plain_text():
    assert tokens.count("<|endoftext|>") > 1


def test_a_long_text_counts_like_its_lines():
    line = "BLOCK_M = 128\n"
    assert tokens.count(line * 2000) == 2000 * tokens.count(line)


def test_a_lone_surrogate_is_counted():
    assert tokens.count("\ud800") >= 1


def test_an_unknown_encoding_names_the_nearest():
    with pytest.raises(ConfigError, match="o200k_base"):
        tokens.count("x", "o200k_bas")


def test_loading_leaves_the_environment_as_it_was(fresh_encodings, no_network, monkeypatch, tmp_path):
    monkeypatch.setenv(tokens.CACHE_DIR_VARIABLE, str(tmp_path))
    assert tokens.count("x") == 1
    assert os.environ[tokens.CACHE_DIR_VARIABLE] == str(tmp_path)
    monkeypatch.delenv(tokens.CACHE_DIR_VARIABLE)
    assert tokens.count("x", "cl100k_base") == 1
    assert tokens.CACHE_DIR_VARIABLE not in os.environ


def test_a_users_folder_that_holds_the_encoding_is_used(fresh_encodings, no_network, monkeypatch, tmp_path):
    name = tokens.ENCODINGS["cl100k_base"].name
    bundled = next(folder for folder in tokens._folders() if (folder / name).is_file())
    shutil.copy(bundled / name, tmp_path / name)
    monkeypatch.setenv(tokens.CACHE_DIR_VARIABLE, str(tmp_path))
    monkeypatch.setattr(tokens.importlib.util, "find_spec", lambda name: None)
    assert tokens.count("tl.dot(", "cl100k_base") == 3


def test_a_missing_or_damaged_file_is_an_error_and_never_fetched(fresh_encodings, no_network, monkeypatch, tmp_path):
    damaged = tmp_path / tokens.ENCODINGS["o200k_base"].name
    damaged.write_text("damaged")
    monkeypatch.setenv(tokens.CACHE_DIR_VARIABLE, str(tmp_path))
    monkeypatch.setattr(tokens.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(HarnessError, match="reinstall litellm"):
        tokens.count("x")
    assert damaged.read_text() == "damaged"


def test_counting_does_not_import_litellm():
    code = "import sys; from kernelgen import tokens; tokens.count('x'); print('litellm' in sys.modules)"
    folder = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=folder)
    assert done.stdout.strip() == "False"
