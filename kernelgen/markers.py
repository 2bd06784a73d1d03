"""The two lines between which a candidate file holds the model's part, byte for byte.

The comment sign before them is the language's; a source that holds their text could end its own part early.
"""

from __future__ import annotations

from kernelgen.records import Language

_TITLE = "==== kernelgen: the model's part"
COMMENT: dict[Language, str] = {"python": "#", "cuda": "//"}


def begin(language: Language) -> str:
    """The line above the model's part."""
    return f"{COMMENT[language]} {_TITLE} begins ====\n"


def end(language: Language) -> str:
    """The line below the model's part."""
    return f"{COMMENT[language]} {_TITLE} ends ====\n"


def holds_marker(source: str) -> bool:
    """Whether a source holds the text of a marker line."""
    return _TITLE in source
