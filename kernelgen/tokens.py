"""Counting tokens offline, in a named encoding.

The encodings are tiktoken's; their BPE files come from the user's `TIKTOKEN_CACHE_DIR` where it holds them, else from
the wheel of litellm, which bundles them. A file is used only with the digest tiktoken expects, so that tiktoken never
falls back to fetching it: the network is never touched. Special tokens in a text count as the plain text they are.
The count is that of the named encoding, not of any provider's model.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from kernelgen.errors import ConfigError, HarnessError, nearest

if TYPE_CHECKING:
    from tiktoken import Encoding

DEFAULT_ENCODING = "o200k_base"
CACHE_DIR_VARIABLE = "TIKTOKEN_CACHE_DIR"
LONGEST_CACHED = 4096
"""Characters; longer texts are counted anew, so that the cache stays small."""


class BpeFile(NamedTuple):
    """A BPE file as tiktoken stores it."""

    name: str
    """File name in a tiktoken cache folder: SHA-1 of the address it was published at."""
    sha256: str
    """Digest of its bytes, as tiktoken checks it."""


ENCODINGS: Mapping[str, BpeFile] = MappingProxyType(
    {
        "o200k_base": BpeFile(
            "fb374d419588a4632f3f557e76b4b70aebbca790",
            "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
        ),
        "cl100k_base": BpeFile(
            "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
            "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
        ),
    }
)
_loading = threading.Lock()


def count(text: str, encoding: str = DEFAULT_ENCODING) -> int:
    """Tokens of a text. ConfigError for an unknown encoding, HarnessError where its file is not on this machine."""
    if len(text) > LONGEST_CACHED:
        return _count(text, encoding)
    return _cached_count(text, encoding)


@lru_cache(maxsize=16384)
def _cached_count(text: str, encoding: str) -> int:
    return _count(text, encoding)


def _count(text: str, encoding: str) -> int:
    return len(_load(encoding).encode(text, disallowed_special=()))


@lru_cache(maxsize=len(ENCODINGS))
def _load(encoding: str) -> Encoding:
    if encoding not in ENCODINGS:
        raise ConfigError(f"The token encoding '{encoding}' is not known{nearest(encoding, ENCODINGS)}")
    import tiktoken

    # the lock guards the environment, which tiktoken reads the folder's name from
    with _loading, _cache_dir(_folder_with(ENCODINGS[encoding], encoding)):
        return tiktoken.get_encoding(encoding)


def _folder_with(file: BpeFile, encoding: str) -> Path:
    for folder in _folders():
        path = folder / file.name
        if path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == file.sha256:
            return folder
    raise HarnessError(
        f"The token encoding '{encoding}' is not on this machine: reinstall litellm, which bundles it "
        f"(`pip install --force-reinstall litellm`), or set {CACHE_DIR_VARIABLE} to a folder that has {file.name}"
    )


def _folders() -> Iterator[Path]:
    if chosen := os.environ.get(CACHE_DIR_VARIABLE):
        yield Path(chosen)
    # finding a top-level package does not import it; importing litellm takes seconds
    spec = importlib.util.find_spec("litellm")
    for location in (spec.submodule_search_locations or []) if spec else []:
        yield Path(location) / "litellm_core_utils" / "tokenizers"


@contextmanager
def _cache_dir(folder: Path) -> Iterator[None]:
    """Point tiktoken at a folder for as long as it loads, and put the user's setting back."""
    before = os.environ.get(CACHE_DIR_VARIABLE)
    os.environ[CACHE_DIR_VARIABLE] = str(folder)
    try:
        yield
    finally:
        if before is None:
            del os.environ[CACHE_DIR_VARIABLE]
        else:
            os.environ[CACHE_DIR_VARIABLE] = before
