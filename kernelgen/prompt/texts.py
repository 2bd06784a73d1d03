"""The long texts of the prompt, from `text/*.md`, with their placeholders filled.

A placeholder is a lower-case name in braces. All are replaced in one pass, so that braces in a value, such as those of
kernel source, are never touched. A placeholder without a value is kernelgen's own fault: KeyError.
"""

from __future__ import annotations

import functools
import re
from importlib import resources

_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


@functools.cache
def text(name: str) -> str:
    """The text `text/{name}.md`, without its final newline."""
    return resources.files("kernelgen.prompt").joinpath("text", f"{name}.md").read_text(encoding="utf-8").rstrip("\n")


def fill(name: str, **values: str) -> str:
    """The text `name` with every placeholder replaced by its value."""
    return _PLACEHOLDER.sub(lambda match: values[match[1]], text(name))
